"""Own a session's lanes, and render requests from them.

Rendering is pure (`actors.core.render`, `actors.core.lanes.lane`), but each lane has a sent version, which needs an
owner. A render does not change that version. When a request is in the log, the session stores the request's lane in
their common `Generation`, and the renderer adopts this lane before its next command.
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
    """Render the messages of a history that a binding has not received, with a snapshot of the ledger.

    `is_side_request` means that the last message is not part of the session's history, and no later request continues
    this one.
    """

    binding: Binding
    history: History
    ledger: Ledger
    is_side_request: bool = False


class Invalidate(Command, frozen=True):
    """Begin a new epoch of a binding's lane, which `event` has logged. The history had `epoch_start` messages at that
    time.
    """

    event: EpochBegan
    epoch_start: int


class MarkStale(Command, frozen=True):
    """Report that the system prompt or the tools have changed. The log already contains the change."""


class Shrink(Command, frozen=True):
    """Report that results were trimmed or the history was compacted. The log gets `event` before the next request."""

    event: ResultsTrimmed | Compacted


class Rewind(Command, frozen=True):
    """Report that the history was rewound to `length` messages. The log gets the event before the next request."""

    length: int


class AdoptedLanes(Query[Mapping[Binding, Lane]], frozen=True):
    """Query the adopted lanes, by binding. A lane is the transcript that was sent to its binding."""


RendererCommand: TypeAlias = Render | Invalidate | MarkStale | Shrink | Rewind | AdoptedLanes


class RendererActor(Actor[RendererCommand]):
    """The owner of one session's lanes. A crash loses nothing: the lanes are rebuilt from the log to the same bytes."""

    level: ClassVar[int] = 3

    def __init__(self, lanes: Lanes, generation: Generation) -> None:
        self._lanes = lanes
        self._generation = generation
        self._context: Context[RendererCommand] | None = None
        self._count_lanes()

    @property
    def lanes(self) -> Lanes:
        """The lanes, including every sent request. Other code reads them only after the actor was passivated."""
        sent = self._generation.sent_lanes
        while sent:
            self._lanes.adopt(*sent.popitem())
        return self._lanes

    def _count_lanes(self) -> None:
        self._generation.holding.record_size("lanes", self._lanes.size)

    def on_start(self, context: Context[RendererCommand]) -> None:
        """After a crash, restore the lanes from the log."""
        self._context = context
        self._generation.start_actor(context, self._restore)

    async def _render_slices(self, command: Render) -> None:
        """Render a long history in slices. The actor handles nothing else meanwhile, but other sessions continue."""
        slices = self.lanes.render_in_slices(
            command.binding, command.history, command.ledger, aside=command.is_side_request
        )
        command.reply.send(await run_slices(slices))
        self._count_lanes()

    def _restore(self, replay: Replay) -> None:
        self._lanes = replay.lanes
        self._count_lanes()

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
        self._count_lanes()
