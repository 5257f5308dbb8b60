"""What the actors of one system share: the event loop, the accounts, the deadlines, and who runs their handlers."""

import contextvars
from collections.abc import Callable
from random import Random
from time import perf_counter

from actors.kernel.account import Tally
from actors.kernel.deadlines import Deadlines
from actors.kernel.dispatch import Dispatcher
from actors.kernel.mailbox import BoundedQueue
from actors.kernel.message import Command
from actors.kernel.parking import Parking, Scope, Waiter, wake
from actors.kernel.tasks import Tasks, Work


class Shared:
    """One for each system.

    Args:
        parking: The event loop.
        fatal: Called with an error outside any actor, which ends the system.
        variables: The context variables that handlers and children see.
        patience: Seconds that an actor's children may take to end.
        slow: Seconds from which a handler is reported as slow.
        random: For the jitter of restarts.
        on_crash: Called with an actor's name and the error at each crash.
        on_slow: Called with an actor's name, a message's type and the seconds its handler took.

    `active`: actors with something to do, and children.
    """

    def __init__(
        self,
        parking: Parking,
        fatal: Callable[[BaseException], None],
        variables: contextvars.Context,
        *,
        patience: float,
        slow: float,
        random: Random,
        on_crash: Callable[[str, BaseException], None] | None,
        on_slow: Callable[[str, str, float], None] | None,
    ) -> None:
        self.parking = parking
        self.now = parking.now
        self.clock = perf_counter
        self.fatal = fatal
        self.patience = patience
        self.slow = slow
        self.random = random
        self._on_crash = on_crash
        self._on_slow = on_slow
        self.variables = variables
        self.dispatcher = Dispatcher(parking, self.variables)
        self.spares: list[BoundedQueue[Command]] = []
        self.tasks = Tasks(parking)
        self.tally = Tally()
        self.deadlines = Deadlines(parking, self._launch_deadlines)
        self.draining = False
        self.active = 0
        self._quiet: Waiter | None = None

    def _launch_deadlines(self) -> Scope:
        return self.launch(self.deadlines.run, self._deadlines_ended, "deadlines")

    def _deadlines_ended(self, error: BaseException | None) -> None:
        """Watch the deadlines again after a cancellation that this system did not ask for."""
        if error is not None and self.is_crash(error):
            self._launch_deadlines()
        elif error is not None:
            self.fatal(error)

    def launch(self, work: Work, ended: Callable[[BaseException | None], None], name: str) -> Scope:
        """Start a task, in context variables of the system."""
        return self.tasks.start(work, ended, name, self.variables.copy())

    def became_idle(self) -> None:
        """Wake the task that waits until nothing is `active`."""
        wake(self._quiet)

    async def quiescent(self) -> None:
        """Wait until no actor has anything to do and no child runs."""
        while self.active:
            self._quiet = self.parking.waiter()
            await self._quiet

    def crashed(self, name: str, error: BaseException) -> None:
        """Report a crash of actor `name`, or an error of its that is seen nowhere else."""
        if self._on_crash is not None:
            self._on_crash(name, error)

    def lagged(self, name: str, command: Command, seconds: float) -> None:
        """Report a handler that held everybody up."""
        if self._on_slow is not None:
            self._on_slow(name, type(command).__name__, seconds)

    def is_crash(self, error: BaseException) -> bool:
        """Tell whether `error` is an actor's: an exception, or a cancellation that this system did not ask for."""
        if isinstance(error, Exception):
            return True
        if self.tasks.cancelled:
            return False
        if isinstance(error, BaseExceptionGroup):
            return error.split((self.parking.cancelled, Exception))[1] is None
        return isinstance(error, self.parking.cancelled)
