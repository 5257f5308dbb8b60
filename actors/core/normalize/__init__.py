"""Normalize messages of any shape into a normal history, the ledger of their results and a report.

A normal history has the roles user and assistant only. Tool calls are in assistant messages, each with a unique id and
a JSON object as arguments. It contains no results: the ledger holds the completion of every call. Rendering and the
log rely on this, so all repairs are in this package and run once:

    attribute   move every block to a message of its own role
    settle      give every call a unique id and every result its call; unmatched results become text

Every `History` built from messages passes through here: from `from_wire`, an opened session, a compaction or a host.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from actors.core.ledger import NO_CALLS, Ledger
from actors.core.normalize.attribute import Placed, is_attributed
from actors.core.normalize.settle import Normalizer
from actors.core.values.content import Message
from actors.core.values.intake import ImportReport, ReportBuilder

__all__ = ["import_transcript", "normalize"]

Normal: TypeAlias = tuple[Sequence[Message], Ledger, ImportReport]
"""The normal messages, the ledger of the results in their blocks, and the report."""


def normalize(
    messages: Sequence[Message],
    ledger: Ledger = NO_CALLS,
    *,
    before: Iterable[Message] = (),
    known: Ledger = NO_CALLS,
) -> Normal:
    """Return messages in normal form.

    Args:
        messages: Messages of any shape.
        ledger: The authoritative ledger, if there is one; it restores the calls of results that lost them.
        before: Normal messages that precede these.
        known: The results found in `before`; the returned ledger includes them.
    """
    if all(message.role == "user" and is_attributed(message) for message in messages):
        return messages, known, ImportReport()
    normalizer = Normalizer(ledger, ReportBuilder(), minted=False)
    normalizer.remember(before, known)
    said = normalizer.run((f"messages[{number}]", message) for number, message in enumerate(messages))
    return said, normalizer.ledger(known), normalizer.remarks.build()


def import_transcript(placed: Iterable[Placed], remarks: ReportBuilder) -> Normal:
    """Return a provider's transcript in normal form; `remarks` holds the oddities found while reading it.

    Its call ids are the provider's, and each call gets a canonical id by order of appearance.
    """
    normalizer = Normalizer(NO_CALLS, remarks, minted=True)
    return normalizer.run(placed), normalizer.ledger(NO_CALLS), remarks.build()
