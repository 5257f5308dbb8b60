"""The state that the actors of a system share: the event loop, the account, the deadlines and the dispatcher."""

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
from actors.kernel.tasks import Ended, Tasks, Work


def _nothing(*_: object) -> None:
    """Report nothing."""


class SystemState:
    """The shared state of the actors of one system. Created on its event loop.

    `account` has the dead letters, `cells` the actors that have not ended, by name; `active` counts busy actors and
    running children. Handlers and children run in the context `variables`. An error outside any actor is `fatal`.

    Args:
        seed: Seed of the restart jitter. None: a different one each time.
        patience: Seconds for the children of an actor to end when it does.
        slow: Seconds after which a handler is reported as slow, since it blocks all others.
        on_crash: Called with the actor's name and the error at each crash. It must not raise.
        on_slow: Called with the actor's name, the message's type and the handler's seconds. It must not raise.
    """

    cells: dict[str, Any]  # Any: the actors are made of this, and it cannot know them
    fatal: Callable[[BaseException], None]
    now: Callable[[], float]
    clock: Callable[[], float]
    patience: float
    slow: float
    crashed: Callable[[str, BaseException], object]
    lagged: Callable[[str, str, float], object]

    def __init__(
        self,
        *,
        seed: int | None = None,
        patience: float = 5.0,
        slow: float = 0.1,
        on_crash: Callable[[str, BaseException], object] = _nothing,
        on_slow: Callable[[str, str, float], object] = _nothing,
    ) -> None:
        self.loop: EventLoop = event_loop()
        self.now, self.clock = self.loop.now, perf_counter
        self.random: Random = Random(seed)  # noqa: S311 - jitter, not secrets
        self.patience, self.slow = patience, slow
        self.crashed, self.lagged = on_crash, on_slow
        self.variables: Context = copy_context()
        self.account: Account = Account()
        self.cells = {}
        self.ranks: dict[tuple[int, int], tuple[int, int]] = {}  # one object per rank, shared by actors
        self.dispatcher: Dispatcher = Dispatcher(self.loop, self.variables)
        self.tasks: Tasks = Tasks(self.loop)
        self.deadlines: Deadlines = Deadlines(self.loop)
        self.draining = False
        self.active: int = 0
        self.rested: Changes = Changes(self.loop)

    def launch(self, work: Work, ended: Ended, name: str) -> None:
        """Start a task in the context variables of the system."""
        self.tasks.start(work, ended, name, self.variables.copy())

    def rest(self) -> None:
        """Decrement the number of active actors and children."""
        self.active -= 1
        if not self.active:
            self.rested.tell()

    def is_crash(self, error: BaseException) -> bool:
        """Return True if `error` is the actor's: an exception, or a cancellation that this system did not request."""
        if isinstance(error, Exception):
            return True
        if self.tasks.cancelled:
            return False
        if is_group(error):
            return error.split((self.loop.cancelled, Exception))[1] is None
        return isinstance(error, self.loop.cancelled)
