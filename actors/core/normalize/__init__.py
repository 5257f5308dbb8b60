"""Normalize messages of any shape into a normal history, the ledger of their results and a report.

A normal history has only the roles user and assistant. Tool calls are in assistant messages, each with a unique id and
a JSON object as arguments. The history contains no results: the ledger contains the completion of every call. Rendering
and the log rely on this, so all repairs are in this package and run once. `settle` moves every block to a message of
its own role, and gives every call a unique id. `pairing` gives every result its call; unmatched results become text.

Every `History` that is built from messages is normalized here, whether the messages come from `from_wire`, `open`, a
compaction or the application.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from actors.core.ledger import NO_CALLS, Ledger
from actors.core.normalize.settle import Normalizer, PositionedMessage, has_matching_role
from actors.core.values.content import Message
from actors.core.values.intake import ImportReport, ReportBuilder

__all__ = ["import_transcript", "normalize"]

Normal: TypeAlias = tuple[Sequence[Message], Ledger, ImportReport]
"""The normal messages, the ledger with the results from their blocks, and the report."""


def normalize(
    messages: Sequence[Message],
    ledger: Ledger = NO_CALLS,
    *,
    before: Iterable[Message] = (),
    known: Ledger = NO_CALLS,
) -> Normal:
    """Return messages in normal form, with the ledger of their results and a report.

    Args:
        messages: Messages of any shape.
        ledger: The authoritative ledger, if there is one. If a result has no call in `messages`, the call is restored
            from this ledger.
        before: Normal messages that precede `messages`.
        known: The results found in `before`; the returned ledger includes them.
    """
    if all(message.role == "user" and has_matching_role(message) for message in messages):
        return messages, known, ImportReport()
    normalizer = Normalizer(ledger, ReportBuilder(), mint_ids=False)
    normalizer.register_preceding(before, known)
    said = normalizer.normalize_messages(
        (f"messages[{number}]", message) for number, message in enumerate(messages)
    )
    return said, normalizer.merged_ledger(known), normalizer.remarks.build()


def import_transcript(messages: Iterable[PositionedMessage], remarks: ReportBuilder) -> Normal:
    """Return a provider's transcript in normal form. Each call gets a canonical id, in order of appearance.

    Args:
        messages: Messages with the provider's call ids, each with its position in the transcript.
        remarks: The report to which findings are added. It already contains those of the importing adapter.
    """
    normalizer = Normalizer(NO_CALLS, remarks, mint_ids=True)
    return normalizer.normalize_messages(messages), normalizer.merged_ledger(NO_CALLS), remarks.build()
