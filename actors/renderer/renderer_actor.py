"""The renderer actor: the owner of a session's lanes.

Rendering is pure (`actors.core.render`, `actors.core.lanes.lane`); what needs an owner is the version of each lane that
has been sent. A render adopts nothing. When a request is in the log, the session leaves its lane in their `Generation`,
and the renderer adopts the lane before its next command.
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
from actors.kernel.turnstile import in_turns

LONG = 256
"""The longest render, in messages, that runs in one piece: a few milliseconds."""


class Render(Query[Rendered], frozen=True):
    """Render the messages of a history that a binding has not seen, with a snapshot of the ledger.

    `aside`: the last message is not part of the session's history, and no later request continues this one.
    """

    binding: Binding
    history: History
    ledger: Ledger
    aside: bool = False


class Invalidate(Command, frozen=True):
    """Start a binding's lane over: its `EpochBegan` is durable. `epoch_start` is the history's length then."""

    event: EpochBegan
    epoch_start: int


class MarkStale(Command, frozen=True):
    """Note that the system prompt or the tools changed: the log says so."""


class Shrink(Command, frozen=True):
    """Note that the history was made shorter: the log says so, or will before the next request."""

    event: ResultsTrimmed | Compacted


class Rewind(Command, frozen=True):
    """Note that the history was rewound to so many messages: the log says so, or will before the next request."""

    length: int


class AdoptedLanes(Query[Mapping[Binding, Lane]], frozen=True):
    """Query the adopted lanes by binding: the transcript that each binding has been sent."""


RendererCommand: TypeAlias = Render | Invalidate | MarkStale | Shrink | Rewind | AdoptedLanes


class RendererActor(Actor[RendererCommand]):
    """The owner of one session's lanes. A crash loses nothing: the log rebuilds them to the same bytes."""

    level: ClassVar[int] = 3

    def __init__(self, lanes: Lanes, generation: Generation) -> None:
        self._lanes = lanes
        self._generation = generation
        self._context: Context[RendererCommand] | None = None
        self._count()

    @property
    def lanes(self) -> Lanes:
        """The lanes, with every request that was sent. Others read them only when the actor has been passivated."""
        sent = self._generation.sent_lanes
        while sent:
            self._lanes.adopt(*sent.popitem())
        return self._lanes

    def _count(self) -> None:
        self._generation.holding.count("lanes", self._lanes.size)

    def on_start(self, context: Context[RendererCommand]) -> None:
        """After a crash, go on from the log."""
        self._context = context
        self._generation.begin(context, self._go_on)

    async def _render(self, command: Render) -> None:
        """Render a long history in slices. The actor handles nothing else meanwhile, but other sessions go on."""
        slices = self.lanes.rendering(command.binding, command.history, command.ledger, aside=command.aside)
        command.reply.send(await in_turns(slices))
        self._count()

    def _go_on(self, replay: Replay) -> None:
        self._lanes = replay.lanes
        self._count()

    def receive(self, command: RendererCommand) -> None:
        lanes = self.lanes
        match command:
            case Render(binding=binding, history=history) if (
                lanes.unrendered_messages(binding, history) > LONG
            ):
                assert self._context is not None
                self._context.start(self._render, command, holds=True)
            case Render(binding=binding, history=history, ledger=ledger, aside=aside):
                command.reply.send(lanes.render(binding, history, ledger, aside=aside))
            case Invalidate(event=event, epoch_start=epoch_start):
                lanes.begin(event, epoch_start)
            case MarkStale():
                lanes.mark_stale()
            case Shrink(event=event):
                lanes.shrink(event)
            case Rewind(length=length):
                lanes.rewind(length)
            case AdoptedLanes():
                command.reply.send({binding: lanes.of(binding) for binding in lanes.bindings()})
            case _:
                assert_never(command)
        self._count()
