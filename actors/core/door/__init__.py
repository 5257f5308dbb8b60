"""The door: messages of any shape come in, a normal history goes out, with what its blocks say and a report.

A normal history has speakers human and model only, tool calls in the model's messages alone, each under an id of its
own with arguments that are a JSON object, and no results: what became of a call is in the ledger. Render and the log
rely on it, so everything that repairs is in this room and runs once:

    attribute   every block under its own speaker
    settle      every call an id of its own, every result to its call; what finds none becomes words

It is entered by whoever makes a `History` of messages: `from_wire`, the opening of a session, a compaction, a host.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from actors.core.content import Message
from actors.core.diagnostics import Notes
from actors.core.door.attribute import attributed, is_attributed
from actors.core.door.settle import Settling
from actors.core.intake import Intake, Remarks
from actors.core.ledger import Ledger

__all__ = ["Normal", "normal"]


class Normal(NamedTuple):
    """What the door gives.

    Args:
        messages: The normal messages.
        ledger: What became of their calls, as far as the blocks say; with `before`, what was known there too.
        report: What was done.
    """

    messages: Sequence[Message]
    ledger: Ledger
    report: Intake


_NOTHING = Ledger()
_IN_ORDER = Intake()


def normal(
    messages: Sequence[Message],
    ledger: Ledger = _NOTHING,
    *,
    before: Iterable[Message] = (),
    known: Ledger = _NOTHING,
    wire: Sequence[str] | None = None,
    remarks: Remarks | None = None,
    left_out: tuple[tuple[str, int], ...] = (),
) -> Normal:
    """Return messages as a normal history has them.

    Args:
        messages: Oldest first, of any shape.
        ledger: The truth about calls, where there is one: a result without its call gets the call back that it knows.
        before: The normal messages that stand before them already.
        known: What the blocks of those said.
        wire: Where each of the messages stood in a provider's transcript, if they come from one: their call ids are
            that provider's, and each call gets a canonical id by order of appearance.
        remarks: What was odd about that transcript as it was read.
        left_out: What it held that was not read, as (path, how often).
    """
    if wire is None and all(message.speaker == "human" and is_attributed(message) for message in messages):
        return Normal(messages, known, _IN_ORDER)
    found = Notes(remarks=remarks or Remarks())
    settling = Settling(ledger, found, minted=wire is not None)
    settling.remember(before, known)
    places = [f"messages[{number}]" for number in range(len(messages))] if wire is None else wire
    said = settling.settled(attributed(messages, places, found))
    kept = Ledger([*known.interactions(), *settling.interactions()])
    report = Intake(tuple(found.findings), tuple(found.dedupe), found.remarks.lines(), left_out)
    return Normal(said, kept, report)
