"""Define the commands that a session receives from its callers and from its own child tasks.

`actors.session.pending` defines the commands that the session queues: `Submit` and `Resolve`.
"""

from typing import ClassVar, TypeAlias

from actors.core.session.state import SessionState
from actors.core.stream_events.ask_events import PendingCall, SwitchOutcome
from actors.core.values.content import ToolCall
from actors.errors import SessionError
from actors.kernel import Command, Query
from actors.session.configuration import ConfigChange
from actors.session.pending import Resolve, Submit


class Switch(Query[SwitchOutcome], frozen=True):
    """Switch to `target`. If an ask is in flight, the switch takes effect when that ask ends."""

    control: ClassVar[bool] = True
    target: str


class Configure(Query[SwitchOutcome], frozen=True):
    """Change the system prompt or the tools. If an ask is in flight, the change takes effect when that ask ends."""

    control: ClassVar[bool] = True
    change: ConfigChange


class Cancel(Query[bool], frozen=True):
    """Cancel the ask in flight. The reply arrives after all tool calls of the ask are closed.

    The reply is True if the ask was cancelled, and False if no ask was in flight or the ask had already ended.

    Args:
        is_leaving: True if this host is releasing the session. An ask with a key can then be continued, even on another
            host.
    """

    control: ClassVar[bool] = True
    is_leaving: bool = False


class GetState(Query[SessionState], frozen=True):
    """Query the current state of the session, without the ledger, which the ledger actor holds."""

    control: ClassVar[bool] = True


class Finished(Command, frozen=True):
    """Report that the ask in flight has ended. `PendingAsks` holds its result.

    `generation` is the number of the actor generation that drove the ask. Queued reports survive a crash of the actors,
    so the session ignores reports of earlier generations.
    """

    control: ClassVar[bool] = True
    generation: int


class ResolutionRecorded(Command, frozen=True):
    """Report that the oldest queued `Resolve` command was recorded or rejected.

    Args:
        generation: As in `Finished`.
        pending_calls: The calls that the turn still waits for.
        approved_calls: The approved calls, which run when the turn continues.
        seq: Number of the last recorded event.
        error: The reason for a rejection. `None` means that the results and decisions were recorded.
    """

    control: ClassVar[bool] = True
    generation: int
    pending_calls: tuple[PendingCall, ...] = ()
    approved_calls: tuple[ToolCall, ...] = ()
    seq: int = 0
    error: SessionError | None = None


class EndWritten(Command, frozen=True):
    """Report that the session's `Closed` event is durable. `generation` has the same meaning as in `Finished`."""

    control: ClassVar[bool] = True
    generation: int


class Close(Query[None], frozen=True):
    """Cancel the ask in flight, drop the queued asks, and log the end of the session."""

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
