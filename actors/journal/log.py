"""Write and replay the log of one session, for its actors.

The session writes its events through `LogWriter`; after a crash, its actors are rebuilt from a `Replay`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import anyio
from msgspec import Struct

from actors.core.data.record import replace
from actors.core.lanes.lane import Lane, Rendered
from actors.core.ledger import NO_CALLS
from actors.core.log.events import Configured, LogEvent, Opened, SwitchApplied
from actors.core.session.lanes import Lanes, Rules
from actors.core.session.rebuild import LogFold
from actors.core.session.recovery import last_round, repeatable_calls
from actors.core.session.state import SessionState
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding
from actors.journal.commands import JournalCommand, OnDurable
from actors.journal.holding import MemoryUse
from actors.journal.live_events import LiveEvents
from actors.journal.outbox import Outbox
from actors.journal.pages import read_log
from actors.kernel import Context, Ref
from actors.kernel.turnstile import turnstile

SENT = 16
"""Events of one session that handlers may have in flight; then the session handles nothing, so that others are
written."""


class LogWriter:
    """Writes a session's own events. An event changes the state in the step in which it is sent or held.

    The ledger writes the events of calls and tracks the calls, so the state here has no ledger.

    Args:
        state: The state at the end of the log.
        journal: The journal's address.
        generation: The session's actors until the next crash.
        on_configured: Called when an event is durable that changes the session's target, system prompt or tools.
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
        self._outbox, self._holding = generation.outbox, generation.holding
        self.resume(state)
        self._sent = 0  # unacknowledged calls of `send`; a failed one crashes the owner

    @property
    def is_settled(self) -> bool:
        """True if the entire state is written."""
        return self._outbox.is_empty and not self._sent

    def resume(self, state: SessionState) -> None:
        """Continue from the state at the end of the log."""
        self.state = replace(state, ledger=NO_CALLS)
        self._holding.count("messages", state.size)

    def _apply(self, event: LogEvent) -> None:
        self.state = self.state.apply(event)
        self._holding.count("messages", self.state.size)

    def hold(self, event: LogEvent, on_durable: OnDurable | None = None) -> None:
        """Hold an event for the session's next append; nothing waits for it until then."""
        self._apply(event)
        self._outbox.hold(event, on_durable)

    async def write(self, event: LogEvent, on_durable: OnDurable | None = None) -> int:
        """Write an event; return its number when it is durable.

        `on_durable` is called even if the caller is cancelled in the meantime.

        Raises:
            JournalError: The event is not written. The state is then ahead of the log, and the caller crashes with
                it.
        """
        self._apply(event)
        if isinstance(event, SwitchApplied | Configured):
            on_durable = partial(self._report_change, event, on_durable)
        return await self._journal.ask(self._outbox.append(event, on_durable=on_durable))

    def send(
        self,
        event: LogEvent,
        on_durable: OnDurable | None,
        context: Context[Any],  # Any: the owner's commands
    ) -> None:
        """Write an event from a handler of `context`, which crashes if it is not written."""

        def on_written(seq: int) -> None:
            self._sent -= 1
            if self._sent == SENT - 1:
                context.release()
            self._report_change(event, on_durable, seq)

        self._sent += 1
        if self._sent == SENT:
            context.hold()
        self._apply(event)
        append = self._outbox.append(event, on_durable=on_written, on_failure=context.fail)
        context.send(self._journal, append)

    def _report_change(self, event: LogEvent, on_durable: OnDurable | None, seq: int) -> None:
        """React to a durable event that may change the target or the configuration."""
        if isinstance(event, SwitchApplied | Configured):
            self._on_configured(event)
        if on_durable is not None:
            on_durable(seq)


class Replay(Struct, frozen=True):
    """The result of replaying a log.

    Args:
        state: The session's state.
        lanes: The session's lanes, which the renderer takes over.
        seq: The number of the last event; 0 if it is not needed.
        repeatable: The calls that may run again, if the log breaks off.
        opened: The first event, if it opens a session.
        round: The round of the last request of the last turn; 0 if that sent none.
    """

    state: SessionState
    lanes: Lanes
    seq: int = 0
    repeatable: tuple[ToolCall, ...] = ()
    opened: Opened | None = None
    round: int = 0


SLICE = 256
"""Events replayed between two polls of the event loop: a few milliseconds."""


async def fold_in_slices(events: Sequence[LogEvent], rules: Rules) -> tuple[SessionState, Lanes]:
    """Return the session that wrote a log, as `rebuild` does; a long log does not hold up the event loop."""
    folding = LogFold(rules)
    for first in range(0, len(events), SLICE):
        if first:
            await turnstile().yield_turn()
        folding.add(events[first : first + SLICE])
    return folding.end()


def replay_of(events: Sequence[LogEvent], state: SessionState, lanes: Lanes) -> Replay:
    """Return the replay of a log that folds to this state and these lanes."""
    first = events[0] if events else None
    opened = first if isinstance(first, Opened) else None
    return Replay(state, lanes, len(events), repeatable_calls(state, events), opened, last_round(events))


async def read_replay(journal: Ref[JournalCommand], session: str, rules: Rules) -> Replay:
    """Read the log of a session and replay it, after every append that its earlier actors sent.

    Raises:
        JournalError: The log cannot be read, or one of its records is not an event.
    """
    events = await read_log(journal, session, anew=True)
    return replay_of(events, *await fold_in_slices(events, rules))


TAKERS = 3
"""The actors that continue from the log: the session, its renderer and its ledger."""


class Generation:
    """A session's actors between a start and the crash that ends them all, and the source of their state.

    Args:
        session: The session's id.
        fence: The fence of the session's claim.
        journal: Reads the log.
        rules: The rendering rules of each binding.
        holding: Counts the memory of the session.
        number: 0 for actors that are created from a state. Later generations take over a replay of the log.
        replay: A replay that is already available; otherwise the log is read.
    """

    __slots__ = (
        "_journal",
        "_read",
        "_replay",
        "_rules",
        "_session",
        "_takers",
        "fence",
        "holding",
        "live",
        "number",
        "outbox",
        "sent_lanes",
    )

    fence: int
    holding: MemoryUse
    number: int

    def __init__(
        self,
        session: str,
        fence: int,
        journal: Ref[JournalCommand],
        rules: Rules,
        holding: MemoryUse,
        number: int = 0,
        replay: Replay | None = None,
    ) -> None:
        self._session, self._journal, self._rules = session, journal, rules
        self._read: anyio.Event | None = None
        self._replay = replay
        self._takers = TAKERS
        self.fence, self.holding, self.number = fence, holding, number
        self.live: LiveEvents = LiveEvents()
        self.outbox: Outbox = Outbox(session, fence, self.live)
        self.sent_lanes: dict[Binding, Lane] = {}
        """The lanes of requests that are in the log, until the renderer adopts them."""

    def next_generation(self, replay: Replay | None = None) -> "Generation":
        """Return the next generation, which starts from the log. `replay`: a replay of the current log, if any."""
        number = self.number + 1
        return Generation(self._session, self.fence, self._journal, self._rules, self.holding, number, replay)

    def note_sent(self, binding: Binding, rendered: Rendered) -> None:
        """Store the lane of a request that is in the log, until the renderer adopts it."""
        self.sent_lanes[binding] = rendered.lane
        self.holding.count("lanes", self.holding.lanes + rendered.lane.size - rendered._before)

    def begin(self, context: Context[Any], then: Callable[[Replay], None]) -> None:  # Any: each of its actors
        """Let an actor of a later generation continue from the log. It handles nothing until `then` has received the
        replay."""
        if self.number:
            context.start(partial(self._go_on, then), name="replay", holds=True)

    async def _go_on(self, then: Callable[[Replay], None]) -> None:
        then(await self.replay())
        self._takers -= 1
        if not self._takers:  # all actors have taken it over: do not keep the old state in memory
            self._replay = None

    async def replay(self) -> Replay:
        """Return the replay of the log, read once for all actors. Raises as `read_replay` does."""
        if self._read is not None:
            await self._read.wait()
        elif self._replay is None:
            self._read = anyio.Event()
            self._replay = await read_replay(self._journal, self._session, self._rules)
            self._read.set()
        assert self._replay is not None
        return self._replay
