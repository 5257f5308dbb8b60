"""The commands of a session, from callers and from its own children.

The asks, results and decisions of callers wait in the session; `actors.session.pending` has those commands.
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
    """Send the next turn to `target`: at once if no ask is in flight, else when it has ended."""

    control: ClassVar[bool] = True
    target: str


class Configure(Query[SwitchOutcome], frozen=True):
    """Change the system prompt or the tools: at once if no ask is in flight, else when it has ended."""

    control: ClassVar[bool] = True
    change: Change


class Cancel(Query[bool], frozen=True):
    """Cancel the ask in flight. Answered when every call of it is closed: True, or False if it came too late."""

    control: ClassVar[bool] = True


class GetState(Query[SessionState], frozen=True):
    """Query the present state. It has no ledger: query the ledger actor for that."""

    control: ClassVar[bool] = True


class Finished(Command, frozen=True):
    """The ask in flight has ended, and `PendingAsks` has its result.

    `generation` is the generation of actors that drove the ask. A message outlives a crash, and the session ignores
    one from before it.
    """

    control: ClassVar[bool] = True
    generation: int


class ResolutionRecorded(Command, frozen=True):
    """The oldest queued results and decisions are recorded, or refused. `generation` as in `Finished`.

    Args:
        pending_calls: The calls that the turn still waits for.
        runs: The calls that are to be run when it goes on.
        seq: Number of the last event.
        error: Why it is refused, if it is.
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
    """Cancel the ask in flight, drop those that wait, and write that the session has ended."""

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
