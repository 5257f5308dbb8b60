"""Hold the state that all actors of a system share: the event loop, the counters, the deadlines and the dispatcher.

Every message sent to an actor is in exactly one state: handled, dead, queued or running. So `sent = handled + dead +
queued + running` always holds. An unhandled message is recorded as a dead letter, and a rejected message counts as
dead. An ask is a query whose caller waits for the answer. It is counted as answered or unanswered when it ends.

One heap and one task manage all deadlines of a system, instead of a cancel scope per message. Most deadlines are
cancelled long before they pass, because the query is answered. A cancelled timer stays in the heap. The heap is rebuilt
when most of its timers are cancelled, so its size stays proportional to the number of pending timers.

The dispatcher schedules the handlers of actors. A handler is a plain function, so running it is a call. An idle actor
handles a message immediately, on the sender's stack, before `Ref.send` returns. Messages that a handler sends are
queued, and the outermost call handles them afterwards. So no handler runs inside another, nothing recurses, and the
messages of each sender stay in order. After `STRETCH` messages in a row, the remaining messages wait for the event
loop's next turn. So a task that asks in a loop yields regularly, and actors that send to each other endlessly do not
starve other tasks.
"""

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable
from contextvars import Context, copy_context
from contextvars import Context as Variables
from math import inf
from random import Random
from time import perf_counter
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from actors.interrupts import is_group
from actors.kernel.event_loop import Changes, EventLoop, event_loop
from actors.kernel.message import Command
from actors.kernel.tasks import OnEnd, Tasks, Work

QueueHandler: TypeAlias = Callable[[int], bool]
"""A function that handles at most the given number of an actor's queued messages, and returns True if messages remain.
It never raises."""
BATCH = 32  # number of messages that one actor handles before the next actor runs
STRETCH = 64  # number of messages handled before the event loop gets control
State: TypeAlias = Literal["running", "restarting", "stopping", "stopped", "faulted"]
"""The state of an actor. A `faulted` actor crashed too often and is not restarted."""
Reason: TypeAlias = Literal["stopped", "expired", "overflow", "unhandled", "poison", "draining"]
"""The reason why a message was not handled.

`stopped`: the receiver had ended, or ended before it handled the message. `expired`: the query's deadline passed.
`overflow`: the mailbox was full and the sender did not wait. `unhandled`: the receiver crashed too often. `poison`:
the handler raised. `draining`: the system was shutting down.
"""
RECENT_LETTERS = 256  # maximum number of dead letters that are kept
_SMALL = 64  # the heap is not rebuilt for this number of cancelled timers or fewer


class Dispatcher:
    """The scheduler of one system's handlers. It runs one handler at a time, in the context variables of the system.

    `busy` means that handlers are running. `acting` is the actor whose handler is running, and `command` is the message
    that it handles. `stretch` counts the messages handled since the event loop's last turn. `late` contains functions
    to call directly after the running handler. A message is handled immediately unless `busy` is set or `stretch` has
    reached `STRETCH`.
    """

    __slots__ = ("_called", "_loop", "acting", "busy", "command", "late", "ready", "run", "stretch")

    def __init__(self, loop: EventLoop, variables: Variables) -> None:
        self._loop = loop
        self._called = False
        self.run: Callable[..., Any] = variables.run  # Any: it runs functions of any type
        self.late: list[Callable[[], object]] = []
        self.ready: deque[QueueHandler] = deque()
        self.acting: object = None
        self.command: Command | None = None
        self.busy: bool = False
        self.stretch: int = 0

    @property
    def has_ready_actors(self) -> bool:
        """True if actors with queued messages wait for the event loop's next turn."""
        return bool(self.ready)

    def schedule(self, handler: QueueHandler) -> None:
        """Schedule an actor with queued messages: now if no handler is running, else after the running handler."""
        self.ready.append(handler)
        if not self.busy:
            self.run_ready()

    def run_after_handler(self, work: Callable[[], object]) -> None:
        """Call `work` now, or directly after the running handler if there is one.

        The call happens before another handler runs, and before the sender continues.
        """
        if self.acting is None:
            work()
        else:
            self.late.append(work)

    def run_deferred(self) -> None:
        """Call the functions that were deferred to the end of the running handler."""
        while self.late:
            self.late.pop(0)()

    def run_ready(self) -> None:
        """Let actors with queued messages handle up to `STRETCH` messages.

        Further messages wait for the event loop's next turn.
        """
        if self.stretch < STRETCH:
            self.busy = True
            try:
                self.run(self._handle_ready)
            finally:
                self.busy = False
        if self.ready and not self._called:
            self._called = True
            self._loop.next(self._on_next_turn)

    def _handle_ready(self) -> None:
        ready = self.ready
        while ready and self.stretch < STRETCH:
            handler = ready.popleft()
            if handler(min(BATCH, STRETCH - self.stretch)):
                ready.append(handler)

    def _on_next_turn(self) -> None:
        """Continue with the ready actors. Called by the event loop, after other tasks had their turn."""
        self._called = False
        self.stretch = 0
        self.run_ready()


class DeadLetter(Struct, frozen=True):
    """A record of one unhandled message: the receiver's name, the message's type, and the reason.

    The message itself is dropped, because it may be large or private.
    """

    actor: str
    message: str
    reason: Reason


class Account(Struct):
    """The counters of a system, its latest dead letters, and the number of dead letters by reason.

    `queued` and `running` are set only in the result of `System.counts`. `running` is 1 if `counts` was called by a
    handler, otherwise 0. `unanswered` counts asks that failed, timed out or were cancelled.
    """

    recent: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=RECENT_LETTERS))
    dead: Counter[Reason] = field(default_factory=Counter[Reason])
    sent: int = 0
    handled: int = 0
    queued: int = 0
    running: int = 0
    asked: int = 0
    answered: int = 0
    unanswered: int = 0

    def record_dead_letter(self, actor: str, message: object, reason: Reason) -> None:
        """Record `message` as a dead letter. `actor` is the name of the receiver."""
        self.dead[reason] += 1
        self.recent.append(DeadLetter(actor, type(message).__name__, reason))

    def record_rejection(self, actor: str, message: object, reason: Reason) -> None:
        """Record a message that an actor rejected. It counts as sent and as dead."""
        self.sent += 1
        self.record_dead_letter(actor, message, reason)

    @property
    def pending(self) -> int:
        """Number of asks that have not ended."""
        return self.asked - self.answered - self.unanswered

    @property
    def is_balanced(self) -> bool:
        """True if `sent` equals the sum of the handled, dead, queued and running messages."""
        known = self.handled + self.dead.total() + self.queued + self.running
        return self.sent == known and self.pending >= 0


class Timer(Struct, eq=False):
    """A scheduled action. `action` becomes None when the action runs or the timer is cancelled."""

    action: Callable[[], None] | None


class Deadlines:
    """A schedule of actions, each to be called at a given time.

    Actions for the same time are called in the order in which they were added. `pending` is the number of timers whose
    action has not run and that were not cancelled.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._now, self._scope = loop.now, loop.scope
        self._sooner = Changes(loop)
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self.pending: int = 0

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at the loop time `when`, in seconds. The task that executes `run` makes the call.

        `action` must not raise.
        """
        timer = Timer(action)
        heapq.heappush(self._heap, (when, next(self._count), timer))
        self.pending += 1
        if self._heap[0][2] is timer:
            self._sooner.notify()
        return timer

    def cancel(self, timer: Timer) -> None:
        """Cancel `timer`. This has no effect if its action has already run."""
        if timer.action is None:
            return
        timer.action = None
        self.pending -= 1
        if len(self._heap) > 2 * self.pending + _SMALL:
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapq.heapify(self._heap)

    async def run(self) -> None:
        """Call each action at its time, until this task is cancelled."""
        while True:
            while self._heap and self._heap[0][0] <= self._now():
                timer = heapq.heappop(self._heap)[2]
                action, timer.action = timer.action, None
                if action is not None:
                    self.pending -= 1
                    action()
            with self._scope(deadline=self._heap[0][0] if self._heap else inf):
                await self._sooner.wait_for_change()


def _do_nothing(*_: object) -> None:
    """Do nothing. The default for optional callbacks."""


class SystemState:
    """The state that the actors of one system share. Create it on the system's event loop.

    `account` counts messages and asks. `cells` contains the actors that have not ended, by name. `active` counts busy
    actors and running children. Handlers and children run in the context variables `variables`. `fatal` is called with
    an error that no actor caused, and ends the system.

    Args:
        seed: Seed for the random part of restart delays; None for a random seed.
        child_timeout: Seconds to wait for an actor's children to end when the actor ends.
        slow: Seconds after which a handler is reported as slow, since a handler blocks all others.
        on_crash: Called with the actor's name and the error at each crash. It must not raise.
        on_slow: Called with the actor's name, the message's type and the handler's duration in seconds. It must not
            raise.
    """

    cells: dict[str, Any]  # Any: cells, which cannot be imported, because their module imports this one
    fatal: Callable[[BaseException], None]
    now: Callable[[], float]
    clock: Callable[[], float]
    child_timeout: float
    slow: float
    on_crash: Callable[[str, BaseException], object]
    on_slow: Callable[[str, str, float], object]

    def __init__(
        self,
        *,
        seed: int | None = None,
        child_timeout: float = 5.0,
        slow: float = 0.1,
        on_crash: Callable[[str, BaseException], object] = _do_nothing,
        on_slow: Callable[[str, str, float], object] = _do_nothing,
    ) -> None:
        self.loop: EventLoop = event_loop()
        self.now, self.clock = self.loop.now, perf_counter
        self.random: Random = Random(seed)  # noqa: S311 - jitter, not secrets
        self.child_timeout, self.slow = child_timeout, slow
        self.on_crash, self.on_slow = on_crash, on_slow
        self.variables: Context = copy_context()
        self.account: Account = Account()
        self.cells = {}
        self.ranks: dict[tuple[int, int], tuple[int, int]] = {}  # actors of the same rank share one tuple
        self.dispatcher: Dispatcher = Dispatcher(self.loop, self.variables)
        self.tasks: Tasks = Tasks(self.loop)
        self.deadlines: Deadlines = Deadlines(self.loop)
        self.draining = False
        self.active: int = 0
        self.became_idle: Changes = Changes(self.loop)

    def launch(self, work: Work, on_end: OnEnd, name: str) -> None:
        """Start a task in the context variables of the system. `on_end` gets the task's exception, or None."""
        self.tasks.start(work, on_end, name, self.variables.copy())

    def decrement_active(self) -> None:
        """Decrement the number of busy actors and running children."""
        self.active -= 1
        if not self.active:
            self.became_idle.notify()

    def is_crash(self, error: BaseException) -> bool:
        """Return True if `error` counts as the crash of an actor.

        This is any `Exception`, and a cancellation that this system did not request.
        """
        if isinstance(error, Exception):
            return True
        if self.tasks.cancelled:
            return False
        if is_group(error):
            return error.split((self.loop.cancelled, Exception))[1] is None
        return isinstance(error, self.loop.cancelled)
