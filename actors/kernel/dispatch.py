"""Who runs handlers, and when: at once, on the stack of the sender, if nothing prevents it.

A handler is a plain function, so running it takes nothing but a call. A message to an idle actor is handled before
`send` returns. What its handler sends on is queued, and handled in turn by the outermost call: no handler runs inside
another, so nothing recurses, and a sender's messages stay in order.

After `STRETCH` messages handled like that, the rest is left to the event loop, which serves it at its next turn. So a
task that asks again and again gives way now and then, and actors that send to each other without end starve nobody.
"""

from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from typing import TypeAlias

from actors.kernel.message import Command
from actors.kernel.parking import EventLoop

Visit: TypeAlias = Callable[[int], bool]
"""Handles up to so many messages that an actor has; says whether there are more. It raises nothing."""

BATCH = 32  # messages handled of one actor before the next has its turn
STRETCH = 64  # messages handled before the event loop has its turn


class Dispatcher:
    """Runs the handlers of one system, one at a time, in context variables of the system, not the sender's.

    `busy`: handlers run. `acting`: the actor whose handler does now, and `command` is what it handles. `stretch`:
    messages handled since the event loop had its turn. `late`: what is to be done right behind the handler that runs.
    An actor is handed a message while nothing is `busy` and `stretch` is not used up.
    """

    __slots__ = ("_called", "_parking", "acting", "busy", "command", "late", "ready", "run", "stretch")

    def __init__(self, parking: EventLoop, variables: Variables) -> None:
        self._parking = parking
        self._called = False
        self.run = variables.run
        self.late: list[Callable[[], object]] = []
        self.ready: deque[Visit] = deque()
        self.acting: object = None
        self.command: Command | None = None
        self.busy = False
        self.stretch = 0

    @property
    def is_behind(self) -> bool:
        """Whether messages wait for the event loop's next turn."""
        return bool(self.ready)

    def add(self, visit: Visit) -> None:
        """Have an actor visited: now, or as soon as the running handler and those before it are done."""
        self.ready.append(visit)
        if not self.busy:
            self.serve()

    def afterwards(self, work: Callable[[], object]) -> None:
        """Call `work` now, or right behind the handler that runs: before any other, and before its sender goes on."""
        if self.acting is None:
            work()
        else:
            self.late.append(work)

    def catch_up(self) -> None:
        """Do what was put off until the running handler was done."""
        while self.late:
            self.late.pop(0)()

    def serve(self) -> None:
        """Visit the actors that are ready: now, as far as that goes, and the others at the event loop's next turn."""
        if self.stretch < STRETCH:
            self.busy = True
            try:
                self.run(self._visit_ready)
            finally:
                self.busy = False
        if self.ready and not self._called:
            self._called = True
            self._parking.next(self._turn)

    def _visit_ready(self) -> None:
        ready = self.ready
        while ready and self.stretch < STRETCH:
            visit = ready.popleft()
            if visit(min(BATCH, STRETCH - self.stretch)):
                ready.append(visit)

    def _turn(self) -> None:
        """Go on. The event loop calls this, so other tasks had their turn."""
        self._called = False
        self.stretch = 0
        self.serve()
