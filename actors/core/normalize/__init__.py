"""The door: messages of any shape come in, a normal history goes out, with what its blocks say and a report.

A normal history has roles human and model only, tool calls in the model's messages alone, each under an id of its
own with arguments that are a JSON object, and no results: what became of a call is in the ledger. Render and the log
rely on it, so everything that repairs is in this room and runs once:

    attribute   every block under its own role
    settle      every call an id of its own, every result to its call; what finds none becomes words

Every `History` that is made of messages comes in here: that of `from_wire`, of a session that is opened, of a
compaction, of a host.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from actors.core.ledger import NO_CALLS, Ledger
from actors.core.normalize.attribute import Placed, is_attributed
from actors.core.normalize.settle import Settling
from actors.core.values.content import Message
from actors.core.values.intake import ImportReport, ReportBuilder

__all__ = ["imported", "normal"]

Normal: TypeAlias = tuple[Sequence[Message], Ledger, ImportReport]
"""The normal messages; what became of their calls, as far as the blocks say; what was done."""


def normal(
    messages: Sequence[Message],
    ledger: Ledger = NO_CALLS,
    *,
    before: Iterable[Message] = (),
    known: Ledger = NO_CALLS,
) -> Normal:
    """Return messages as a normal history has them.

    `ledger` is the truth about calls, where there is one: a result without its call gets the call back that it knows.
    `before` are the normal messages that stand before them already, and `known` what the blocks of those said; the
    ledger that is returned holds it too.
    """
    if all(message.role == "user" and is_attributed(message) for message in messages):
        return messages, known, ImportReport()
    settling = Settling(ledger, ReportBuilder(), minted=False)
    settling.remember(before, known)
    said = settling.settled((f"messages[{number}]", message) for number, message in enumerate(messages))
    return said, settling.ledger(known), settling.remarks.intake()


def imported(placed: Iterable[Placed], remarks: ReportBuilder) -> Normal:
    """Return a provider's transcript as a normal history has it; `remarks` say what was odd as it was read.

    Its call ids are that provider's, and each call gets a canonical id by order of appearance.
    """
    settling = Settling(NO_CALLS, remarks, minted=True)
    return settling.settled(placed), settling.ledger(NO_CALLS), remarks.intake()
