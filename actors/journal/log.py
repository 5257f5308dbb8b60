"""Write the log of one session, and replay it when the session's actors start again.

The session writes its events through a `LogWriter`. After a crash, the session, its renderer and its ledger are rebuilt
from a `Replay`.

Some events need not be durable at once. The user's message can wait until the request is sent, and the model's message
until its calls are scheduled. The session's next append, from any of its actors, includes the held events. So one
commit writes all of them, and the log keeps their order.

Each actor of a session counts the bytes of its own data: the session actor its messages, the ledger its calls, the
renderer its lanes. The host counts the actor objects themselves. So the memory use of all sessions is always known, and
need not be measured.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import anyio
from msgspec import Struct

from actors.core.data.record import replace
from actors.core.lanes.lane import Lane, Rendered
from actors.core.ledger import NO_CALLS
from actors.core.log.events import Configured, LogEvent, Opened, SwitchApplied
from actors.core.session.lanes import Lanes, LogReplay, Rules
from actors.core.session.open_asks import last_round, repeatable_calls
from actors.core.session.state import SessionState
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding
from actors.errors import JournalError
from actors.journal.commands import Append, JournalCommand, LiveEvents, OnDurable
from actors.journal.pages import read_log
from actors.kernel import Context, Ref
from actors.kernel.turnstile import turnstile

SizeCategory: TypeAlias = Literal["messages", "calls", "lanes", "objects"]
MAX_SENT = 16
"""Maximum number of unwritten events that one session's handlers may have sent. At this number, the session stops
handling messages, so that the journal can write other sessions' events.
"""


class TotalMemory(Struct, gc=False):
    """The memory that all sessions of a runtime use together, in bytes."""

    total: int = 0


class MemoryUse(Struct, gc=False):
    """The memory use of one session, in bytes.

    `runtime_total` is the sum over all sessions of the runtime. Each change of a session's sizes updates the sum.
    """

    runtime_total: TotalMemory
    messages: int = 0
    calls: int = 0
    lanes: int = 0
    objects: int = 0

    def record_size(self, category: SizeCategory, size: int) -> None:
        """Set the current size of one category of data, in bytes."""
        self.runtime_total.total += size - getattr(self, category)
        setattr(self, category, size)

    @property
    def total(self) -> int:
        """The session's memory use over all categories, in bytes."""
        return self.messages + self.calls + self.lanes + self.objects

    def release(self) -> None:
        """Set every size to 0, after the session's actors were removed from memory."""
        self.runtime_total.total -= self.total
        self.messages = self.calls = self.lanes = self.objects = 0


class Outbox:
    """The events of a session that will be written with its next append.

    All actors of the session share one outbox. A crash discards the events, and the actors start again from the log.

    Args:
        session: The session's id.
        fence: The fencing number of the session's claim.
        live: Publishes the events once they are durable.
    """

    __slots__ = ("_callbacks", "_events", "_fence", "_live", "_session")

    def __init__(self, session: str, fence: int, live: LiveEvents) -> None:
        self._session, self._fence, self._live = session, fence, live
        self._events: list[LogEvent] = []
        self._callbacks: list[tuple[int, OnDurable]] = []

    @property
    def is_empty(self) -> bool:
        """True if no event is held."""
        return not self._events

    def hold(self, event: LogEvent, on_durable: OnDurable | None = None) -> None:
        """Hold an event until the next append. Once the event is durable, `on_durable` receives its number."""
        if on_durable is not None:
            self._callbacks.append((len(self._events), on_durable))
        self._events.append(event)

    def append(
        self,
        *events: LogEvent,
        on_durable: OnDurable | None = None,
        on_failure: Callable[[JournalError], None] | None = None,
    ) -> Append:
        """Return the command that writes the held events followed by `events`, and empty the outbox.

        `on_durable` receives the number of the last event.
        """
        held, callbacks = self._events, self._callbacks
        self._events, self._callbacks = [], []
        if on_durable is not None:
            callbacks.append((len(held) + len(events) - 1, on_durable))
        written = (*held, *events)
        return Append(self._session, self._fence, written, tuple(callbacks), on_failure, self._live)


class LogWriter:
    """Writes the events of a session actor to the log, and keeps the session's state up to date.

    Each event changes the state as soon as the event is sent or held. The ledger actor writes the events of tool calls
    and tracks the calls, so this state has no ledger.

    Args:
        state: The state at the end of the log.
        journal: The address of the journal actor.
        generation: The current generation of the session's actors.
        on_configured: Called with each event that changes the session's target, system prompt or tools, once the event
            is durable.
    """

    state: SessionState

    def __init__(
        self,
        state: SessionState,
        journal: Ref[JournalCommand],
        generation: "Generation",
        on_configured: Callable[[SwitchApplied | Configured], None],
    ) -> None:
        self._journal, self._on_configured = journal, on_configured
        self._outbox, self._memory_use = generation.outbox, generation.memory_use
        self.resume(state)
        self._sent = 0  # number of events that `send` has sent and the journal has not acknowledged yet

    @property
    def is_settled(self) -> bool:
        """True if the log contains every event that was applied to the state."""
        return self._outbox.is_empty and not self._sent

    def resume(self, state: SessionState) -> None:
        """Replace the state with `state`, the state at the end of the log."""
        self.state = replace(state, ledger=NO_CALLS)
        self._memory_use.record_size("messages", state.size)

    def _apply_to_state(self, event: LogEvent) -> None:
        self.state = self.state.apply(event)
        self._memory_use.record_size("messages", self.state.size)

    def hold(self, event: LogEvent, on_durable: OnDurable | None = None) -> None:
        """Hold an event until the session's next append writes it."""
        self._apply_to_state(event)
        self._outbox.hold(event, on_durable)

    async def write(self, event: LogEvent, on_durable: OnDurable | None = None) -> int:
        """Write the held events and then `event`. Return the number of `event` once it is durable.

        `on_durable` is called even if the caller is cancelled in the meantime.

        Raises:
            JournalError: The event was not written. The state then contains an event that the log lacks, so the calling
                actor must crash with this error.
        """
        self._apply_to_state(event)
        if isinstance(event, SwitchApplied | Configured):
            on_durable = partial(self._report_change, event, on_durable)
        return await self._journal.ask(self._outbox.append(event, on_durable=on_durable))

    def send(
        self,
        event: LogEvent,
        on_durable: OnDurable | None,
        context: Context[Any],  # Any: actors of every command type call this method
    ) -> None:
        """Write an event from a message handler without waiting. If the event is not written, the actor of `context`
        crashes.
        """

        def on_written(seq: int) -> None:
            self._sent -= 1
            if self._sent == MAX_SENT - 1:
                context.release_messages()
            self._report_change(event, on_durable, seq)

        self._sent += 1
        if self._sent == MAX_SENT:
            context.hold_messages()
        self._apply_to_state(event)
        append = self._outbox.append(event, on_durable=on_written, on_failure=context.fail)
        context.send(self._journal, append)

    def _report_change(self, event: LogEvent, on_durable: OnDurable | None, seq: int) -> None:
        """Call the callbacks of a durable event: `on_configured` if the event changed the configuration, then
        `on_durable`.
        """
        if isinstance(event, SwitchApplied | Configured):
            self._on_configured(event)
        if on_durable is not None:
            on_durable(seq)


class Replay(Struct, frozen=True):
    """The state of a session, rebuilt from its log.

    Args:
        state: The session's state.
        lanes: The lanes of the session: the transcript that was sent for each binding.
        seq: The number of the last event; 0 if the number is not needed.
        repeatable: The unfinished calls that may run again.
        opened: The first event of the log; None if that event is not `Opened`.
        round: The round of the last request in the last turn; 0 if the turn sent no request.
    """

    state: SessionState
    lanes: Lanes
    seq: int = 0
    repeatable: tuple[ToolCall, ...] = ()
    opened: Opened | None = None
    round: int = 0


SLICE = 256
"""Number of events that are replayed before other tasks may run. This takes a few milliseconds."""


async def fold_in_slices(events: Sequence[LogEvent], rules: Rules) -> tuple[SessionState, Lanes]:
    """Rebuild a session's state and lanes from the events of its log, in slices, so that other tasks can run in
    between.
    """
    folding = LogReplay(rules)
    for first in range(0, len(events), SLICE):
        if first:
            await turnstile().yield_turn()
        folding.add(events[first : first + SLICE])
    return folding.result()


def make_replay(events: Sequence[LogEvent], state: SessionState, lanes: Lanes) -> Replay:
    """Return the replay of a log. `state` and `lanes` must have been rebuilt from the same events."""
    first = events[0] if events else None
    opened = first if isinstance(first, Opened) else None
    return Replay(state, lanes, len(events), repeatable_calls(state, events), opened, last_round(events))


async def read_replay(journal: Ref[JournalCommand], session: str, rules: Rules) -> Replay:
    """Read and replay a session's log, including every append that the session's actors sent earlier.

    Raises:
        JournalError: The log cannot be read, or a record does not contain a valid event.
    """
    events = await read_log(journal, session, as_writer=True)
    return make_replay(events, *await fold_in_slices(events, rules))


REPLAY_USERS = 3
"""Number of actors that start from a replay: the session, its renderer and its ledger."""


class Generation:
    """The data that the actors of a session share from their start until a crash. A crash ends all of these actors.

    Args:
        session: The session's id.
        fence: The fencing number of the session's claim.
        journal: The address of the journal actor, which reads the log.
        rules: The rendering rules of each binding.
        memory_use: Counts the memory that the session uses.
        number: The number of this generation. Actors of generation 0 are created from a state. Actors of later
            generations start from a replay of the log.
        replay: The replay of the current log. If None, the log is read when it is needed.
    """

    __slots__ = (
        "_journal",
        "_read",
        "_replay",
        "_rules",
        "_session",
        "_unserved_actors",
        "fence",
        "live",
        "memory_use",
        "number",
        "outbox",
        "sent_lanes",
    )

    fence: int
    memory_use: MemoryUse
    number: int

    def __init__(
        self,
        session: str,
        fence: int,
        journal: Ref[JournalCommand],
        rules: Rules,
        memory_use: MemoryUse,
        number: int = 0,
        replay: Replay | None = None,
    ) -> None:
        self._session, self._journal, self._rules = session, journal, rules
        self._read: anyio.Event | None = None
        self._replay = replay
        self._unserved_actors = REPLAY_USERS
        self.fence, self.memory_use, self.number = fence, memory_use, number
        self.live: LiveEvents = LiveEvents()
        self.outbox: Outbox = Outbox(session, fence, self.live)
        self.sent_lanes: dict[Binding, Lane] = {}
        """For each binding, the lane of the last logged request, until the renderer takes the lane over."""

    def next_generation(self, replay: Replay | None = None) -> "Generation":
        """Return the next generation, whose actors start from a replay of the log.

        `replay` is the replay of the current log. If None, the next generation reads the log.
        """
        number = self.number + 1
        return Generation(
            self._session, self.fence, self._journal, self._rules, self.memory_use, number, replay
        )

    def store_sent_lane(self, binding: Binding, rendered: Rendered) -> None:
        """Store the lane (the rendered transcript) of a logged request until the renderer takes it over."""
        self.sent_lanes[binding] = rendered.lane
        self.memory_use.record_size("lanes", self.memory_use.lanes + rendered.lane.size - rendered._before)

    def start_actor(
        self,
        context: Context[Any],  # Any: actors of every command type call this method
        on_replay: Callable[[Replay], None],
    ) -> None:
        """Let an actor of this generation restore its state: call `on_replay` with the replay of the log.

        The actor handles no messages until `on_replay` has returned. An actor of generation 0 already has a state, so
        `on_replay` is not called.
        """
        if self.number:
            context.start(partial(self._hand_over_replay, on_replay), name="replay", holds=True)

    async def _hand_over_replay(self, on_replay: Callable[[Replay], None]) -> None:
        """Call `on_replay` with the replay. Release the replay's memory once the last actor has received it."""
        on_replay(await self.replay())
        self._unserved_actors -= 1
        if not self._unserved_actors:
            self._replay = None

    async def replay(self) -> Replay:
        """Return the replay of the log. The log is read once for all actors of the generation.

        Raises:
            JournalError: The log cannot be read, or a record does not contain a valid event.
        """
        if self._read is not None:
            await self._read.wait()
        elif self._replay is None:
            self._read = anyio.Event()
            self._replay = await read_replay(self._journal, self._session, self._rules)
            self._read.set()
        assert self._replay is not None
        return self._replay
