"""The commands of a session, from callers and from its own children.

`actors.session.pending` has the commands that the session queues: asks, and results and decisions of callers.
"""

from typing import ClassVar, TypeAlias

from actors.core.session.state import SessionState
from actors.core.stream_events.results import PendingCall, SwitchOutcome
from actors.core.values.content import ToolCall
from actors.errors import SessionError
from actors.kernel import Command, Query
from actors.session.configuration import Change
from actors.session.pending import Resolve, Submit


class Switch(Query[SwitchOutcome], frozen=True):
    """Switch to `target`: at once if no ask is in flight, otherwise when that ask has ended."""

    control: ClassVar[bool] = True
    target: str


class Configure(Query[SwitchOutcome], frozen=True):
    """Change the system prompt or the tools: at once if no ask is in flight, otherwise when that ask has ended."""

    control: ClassVar[bool] = True
    change: Change


class Cancel(Query[bool], frozen=True):
    """Cancel the ask in flight. The reply follows when its calls are closed: False if it had already ended.

    Args:
        is_leaving: Whether the session leaves this host, so that an ask with a key can be continued on another one.
    """

    control: ClassVar[bool] = True
    is_leaving: bool = False


class GetState(Query[SessionState], frozen=True):
    """Query the current state. It contains no ledger; the ledger actor has that."""

    control: ClassVar[bool] = True


class Finished(Command, frozen=True):
    """The ask in flight has ended, and `PendingAsks` has its result.

    `generation` is the generation of actors that drove the ask. A message survives a crash in the mailbox, and the
    session ignores messages of an earlier generation.
    """

    control: ClassVar[bool] = True
    generation: int


class ResolutionRecorded(Command, frozen=True):
    """The oldest queued results and decisions were recorded, or rejected. `generation` as in `Finished`.

    Args:
        pending_calls: The calls that the turn still waits for.
        runs: The approved calls, which run when the turn continues.
        seq: Number of the last recorded event.
        error: The reason for a rejection; None if the results and decisions were recorded.
    """

    control: ClassVar[bool] = True
    generation: int
    pending_calls: tuple[PendingCall, ...] = ()
    runs: tuple[ToolCall, ...] = ()
    seq: int = 0
    error: SessionError | None = None


class EndWritten(Command, frozen=True):
    """The log's last event is durable. `generation` as in `Finished`."""

    control: ClassVar[bool] = True
    generation: int


class Close(Query[None], frozen=True):
    """Cancel the ask in flight, drop queued asks, and log the end of the session."""

    control: ClassVar[bool] = True


SessionCommand: TypeAlias = (
    Submit
    | Resolve
    | Switch
    | Configure
    | Cancel
    | GetState
    | Finished
    | ResolutionRecorded
    | Close
    | EndWritten
)
