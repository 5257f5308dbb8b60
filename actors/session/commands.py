"""What a session is asked to do, and what its own children tell it.

What callers submit and bring waits in the session, and is in `actors.session.pending`.
"""

from typing import ClassVar, TypeAlias

from actors.core.session.state import SessionState
from actors.core.stream_events.results import PendingCall, SwitchOutcome
from actors.core.values.content import ToolCall
from actors.errors import SessionError
from actors.kernel import Command, Query
from actors.session.configuration import Change
from actors.session.pending import Bring, Submit


class Switch(Query[SwitchOutcome], frozen=True):
    """Send the next turn to `target`: at once if no ask is in flight, else when it has ended."""

    control: ClassVar[bool] = True
    target: str


class Configure(Query[SwitchOutcome], frozen=True):
    """Have another system prompt or other tools: now if no ask is in flight, else when it has ended."""

    control: ClassVar[bool] = True
    change: Change


class Cancel(Query[bool], frozen=True):
    """Cancel the ask in flight. Answered when every call of it is closed: True, or False if it came too late."""

    control: ClassVar[bool] = True


class Look(Query[SessionState], frozen=True):
    """Ask for the present state. It has no ledger: ask the ledger for that."""

    control: ClassVar[bool] = True


class Finished(Command, frozen=True):
    """The ask in flight has ended, and the pending asks say how.

    `generation` is whose ask: mail outlives a crash, and what is told of an ask that it ended means nothing any more.
    """

    control: ClassVar[bool] = True
    generation: int


class Taken(Command, frozen=True):
    """What was brought first is recorded, or refused. `generation` as in `Finished`.

    Args:
        waits: The calls that the turn waits for still.
        runs: The calls that are to be run when it goes on.
        seq: Number of the last event.
        error: Why it is refused, if it is.
    """

    control: ClassVar[bool] = True
    generation: int
    waits: tuple[PendingCall, ...] = ()
    runs: tuple[ToolCall, ...] = ()
    seq: int = 0
    error: SessionError | None = None


class EndWritten(Command, frozen=True):
    """The log's last event is durable. `generation` as in `Finished`."""

    control: ClassVar[bool] = True
    generation: int


class End(Query[None], frozen=True):
    """Cancel the ask in flight, drop those that wait, and write that the session has ended."""

    control: ClassVar[bool] = True


SessionCommand: TypeAlias = (
    Submit | Bring | Switch | Configure | Cancel | Look | Finished | Taken | End | EndWritten
)
