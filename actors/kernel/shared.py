"""A system as its actors see it: the event loop, the account, the deadlines, and who runs their handlers."""

from collections.abc import Callable
from contextvars import copy_context
from random import Random
from time import perf_counter
from typing import Any

from actors.kernel.account import Account
from actors.kernel.deadlines import Deadlines
from actors.kernel.dispatch import Dispatcher
from actors.kernel.parking import Changes, parking
from actors.kernel.tasks import Ended, Tasks, Work


def _nothing(*_: object) -> None:
    """Report nothing."""


class SystemState:
    """What the actors of one system share. Made on its event loop.

    `account` has the dead letters, `cells` the actors that have not ended, by name; `active` is how many of them have
    something to do, and how many children run. Handlers and children see the context variables `variables`. An error
    outside any actor is `fatal`.

    Args:
        seed: Seed of the restart jitter. None: a different one each time.
        patience: Seconds that an actor's children may take to end when it does.
        slow: Seconds from which a handler is reported as slow: nobody can interrupt it, and all others wait.
        on_crash: Called with the actor's name and the error at each crash. It must not raise.
        on_slow: Called with the actor's name, the message's type and the seconds its handler took. It must not raise.
    """

    cells: dict[str, Any]  # Any: the actors are made of this, and it cannot know them
    fatal: Callable[[BaseException], None]

    def __init__(
        self,
        *,
        seed: int | None = None,
        patience: float = 5.0,
        slow: float = 0.1,
        on_crash: Callable[[str, BaseException], object] = _nothing,
        on_slow: Callable[[str, str, float], object] = _nothing,
    ) -> None:
        self.parking = parking()
        self.now, self.clock = self.parking.now, perf_counter
        self.random = Random(seed)  # noqa: S311 - jitter, not secrets
        self.patience, self.slow = patience, slow
        self.crashed, self.lagged = on_crash, on_slow
        self.variables = copy_context()
        self.account = Account()
        self.cells = {}
        self.ranks: dict[tuple[int, int], tuple[int, int]] = {}  # one object for all actors that stand alike
        self.dispatcher = Dispatcher(self.parking, self.variables)
        self.tasks = Tasks(self.parking)
        self.deadlines = Deadlines(self.parking)
        self.draining = False
        self.active = 0
        self.rested = Changes(self.parking)

    def launch(self, work: Work, ended: Ended, name: str) -> None:
        """Start a task, in context variables of the system."""
        self.tasks.start(work, ended, name, self.variables.copy())

    def rest(self) -> None:
        """Note that one thing less is active."""
        self.active -= 1
        if not self.active:
            self.rested.tell()

    def is_crash(self, error: BaseException) -> bool:
        """Tell whether `error` is an actor's: an exception, or a cancellation that this system did not ask for."""
        if isinstance(error, Exception):
            return True
        if self.tasks.cancelled:
            return False
        if isinstance(error, BaseExceptionGroup):
            return error.split((self.parking.cancelled, Exception))[1] is None
        return isinstance(error, self.parking.cancelled)
