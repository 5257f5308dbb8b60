"""Own a session's lanes, and render requests from them. A lane is the transcript that one binding has received.

Rendering is pure (`actors.core.render`, `actors.core.lanes.lane`). This actor keeps the version of each lane that was
sent last. A render returns a new version and does not change the kept one. Once the request is in the log, the session
stores the new version in `Generation.sent_lanes`, and the actor adopts it before its next command.
"""

from collections.abc import Mapping
from typing import ClassVar, TypeAlias, assert_never

from actors.core.history.history import History
from actors.core.lanes.lane import Lane, Rendered
from actors.core.ledger import Ledger
from actors.core.log.events import Compacted, EpochBegan, ResultsTrimmed
from actors.core.session.lanes import Lanes
from actors.core.values.identity import Binding
from actors.journal.log import Generation, Replay
from actors.kernel import Actor, Command, Context, Query
from actors.kernel.turnstile import run_slices

MAX_UNSLICED = 256
"""Maximum number of messages that are rendered without yielding, which takes a few milliseconds."""


class Render(Query[Rendered], frozen=True):
    """Render the messages of `history` that `binding` has not received yet.

    `ledger` is a snapshot that contains the results of the calls in these messages. `is_side_request` is True if the
    last message is not part of the session's history, so that no later request continues this one.
    """

    binding: Binding
    history: History
    ledger: Ledger
    is_side_request: bool = False


class Invalidate(Command, frozen=True):
    """Begin a new epoch of a binding's lane, in which the lane is rendered again from the start.

    The log already contains `event`. `epoch_start` is the number of messages in the history when the epoch begins.
    """

    event: EpochBegan
    epoch_start: int


class MarkStale(Command, frozen=True):
    """Report that the system prompt or the tools have changed. The log already contains the change."""


class Shrink(Command, frozen=True):
    """Report that results were trimmed or the history was compacted. `event` is logged before the next request."""

    event: ResultsTrimmed | Compacted


class Rewind(Command, frozen=True):
    """Report that the history was rewound to `length` messages. This is logged before the next request."""

    length: int


class AdoptedLanes(Query[Mapping[Binding, Lane]], frozen=True):
    """Query the lanes by binding. A lane is the transcript that its binding has received."""


RendererCommand: TypeAlias = Render | Invalidate | MarkStale | Shrink | Rewind | AdoptedLanes


class RendererActor(Actor[RendererCommand]):
    """The owner of one session's lanes. A crash loses nothing: the lanes are rebuilt from the log to the same bytes."""

    level: ClassVar[int] = 3

    def __init__(self, lanes: Lanes, generation: Generation) -> None:
        self._lanes = lanes
        self._generation = generation
        self._context: Context[RendererCommand] | None = None
        self._record_size()

    @property
    def lanes(self) -> Lanes:
        """The lanes, updated with every sent request. Other code may read them only once the actor is passivated."""
        sent = self._generation.sent_lanes
        if sent:
            for binding, lane in sent.items():
                self._lanes.adopt(binding, lane)
            sent.clear()  # unlike `popitem`, this frees the dict's table
        return self._lanes

    def _record_size(self) -> None:
        self._generation.memory_use.record_size("lanes", self._lanes.size)

    def on_start(self, context: Context[RendererCommand]) -> None:
        """After a crash, restore the lanes from the log."""
        self._context = context
        self._generation.start_actor(context, self._restore)

    async def _render_slices(self, command: Render) -> None:
        """Render a long history in slices. The actor handles no message meanwhile, but other sessions continue."""
        slices = self.lanes.render_in_slices(
            command.binding, command.history, command.ledger, aside=command.is_side_request
        )
        command.reply.send(await run_slices(slices))
        self._record_size()

    def _restore(self, replay: Replay) -> None:
        self._lanes = replay.lanes
        self._record_size()

    def receive(self, command: RendererCommand) -> None:
        lanes = self.lanes
        match command:
            case Render(binding=binding, history=history) if (
                lanes.unrendered_messages(binding, history) > MAX_UNSLICED
            ):
                assert self._context is not None
                self._context.start(self._render_slices, command, holds=True)
            case Render(binding=binding, history=history, ledger=ledger, is_side_request=aside):
                command.reply.send(lanes.render(binding, history, ledger, aside=aside))
            case Invalidate(event=event, epoch_start=epoch_start):
                lanes.begin_epoch(event, epoch_start)
            case MarkStale():
                lanes.mark_stale()
            case Shrink(event=event):
                lanes.apply_shortening(event)
            case Rewind(length=length):
                lanes.rewind(length)
            case AdoptedLanes():
                command.reply.send({binding: lanes.of(binding) for binding in lanes.bindings()})
            case _:
                assert_never(command)
        self._record_size()
