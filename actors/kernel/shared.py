"""Hold the state that all actors of a system share: the event loop, the counters, the deadlines and the dispatcher."""

from collections.abc import Callable
from contextvars import Context, copy_context
from random import Random
from time import perf_counter
from typing import Any

from actors.interrupts import is_group
from actors.kernel.account import Account
from actors.kernel.deadlines import Deadlines
from actors.kernel.dispatch import Dispatcher
from actors.kernel.event_loop import Changes, EventLoop, event_loop
from actors.kernel.tasks import OnEnd, Tasks, Work


def _do_nothing(*_: object) -> None:
    """Do nothing. The default for optional callbacks."""


class SystemState:
    """The state that the actors of one system share. Create it on the system's event loop.

    `account` counts messages and asks. `cells` contains the actors that have not ended, by name. `active` counts busy
    actors and running children. Handlers and children run in the context variables `variables`. `fatal` is called with
    an error that no actor caused.

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
    crashed: Callable[[str, BaseException], object]
    lagged: Callable[[str, str, float], object]

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
        self.crashed, self.lagged = on_crash, on_slow
        self.variables: Context = copy_context()
        self.account: Account = Account()
        self.cells = {}
        self.ranks: dict[tuple[int, int], tuple[int, int]] = {}  # actors of the same rank share one tuple
        self.dispatcher: Dispatcher = Dispatcher(self.loop, self.variables)
        self.tasks: Tasks = Tasks(self.loop)
        self.deadlines: Deadlines = Deadlines(self.loop)
        self.draining = False
        self.active: int = 0
        self.rested: Changes = Changes(self.loop)

    def launch(self, work: Work, on_end: OnEnd, name: str) -> None:
        """Start a task in the context variables of the system. `on_end` is called with its exception or None."""
        self.tasks.start(work, on_end, name, self.variables.copy())

    def decrement_active(self) -> None:
        """Decrement the number of busy actors and running children."""
        self.active -= 1
        if not self.active:
            self.rested.notify()

    def is_crash(self, error: BaseException) -> bool:
        """Return True if `error` is an actor's failure.

        An actor fails with an `Exception`, or with a cancellation that this system did not request.
        """
        if isinstance(error, Exception):
            return True
        if self.tasks.cancelled:
            return False
        if is_group(error):
            return error.split((self.loop.cancelled, Exception))[1] is None
        return isinstance(error, self.loop.cancelled)
