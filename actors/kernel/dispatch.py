"""Schedule handlers: at once and on the sender's stack, unless another handler is running.

A handler is a plain function, so running it is a call. An idle actor handles a message before `tell` returns.
Messages sent by its handler are queued, and the outermost call handles them in turn: no handler runs inside another,
so nothing recurses, and the messages of a sender stay in order.

After `STRETCH` messages, the rest is left to the event loop's next turn. So a task that asks in a loop yields now and
then, and actors that send to each other endlessly do not starve other tasks.
"""

from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from typing import Any, TypeAlias

from actors.kernel.event_loop import EventLoop
from actors.kernel.message import Command

Visit: TypeAlias = Callable[[int], bool]
"""Handles up to this number of an actor's messages, and returns True if more remain. It never raises."""

BATCH = 32  # messages of one actor to handle before the next actor runs
STRETCH = 64  # messages handled before the event loop gets control


class Dispatcher:
    """Runs the handlers of one system, one at a time, in the context variables of the system instead of the sender's.

    `busy`: handlers are running. `acting`: the actor of the running handler, and `command` its message. `stretch`:
    messages handled since the event loop's last turn. `late`: work to do directly after the running handler. A
    message is handled at once unless `busy` is set or `stretch` is used up.
    """

    __slots__ = ("_called", "_loop", "acting", "busy", "command", "late", "ready", "run", "stretch")

    def __init__(self, loop: EventLoop, variables: Variables) -> None:
        self._loop = loop
        self._called = False
        self.run: Callable[..., Any] = variables.run  # Any: the result of what it runs
        self.late: list[Callable[[], object]] = []
        self.ready: deque[Visit] = deque()
        self.acting: object = None
        self.command: Command | None = None
        self.busy: bool = False
        self.stretch: int = 0

    @property
    def is_behind(self) -> bool:
        """True if messages wait for the event loop's next turn."""
        return bool(self.ready)

    def add(self, visit: Visit) -> None:
        """Schedule a visit of an actor: now, or after the running handler and earlier visits."""
        self.ready.append(visit)
        if not self.busy:
            self.serve()

    def afterwards(self, work: Callable[[], object]) -> None:
        """Call `work` now, or directly after the running handler: before other handlers, and before its sender
        continues."""
        if self.acting is None:
            work()
        else:
            self.late.append(work)

    def catch_up(self) -> None:
        """Do the work that was deferred to the end of the running handler."""
        while self.late:
            self.late.pop(0)()

    def serve(self) -> None:
        """Visit the ready actors, as many as `STRETCH` allows, and leave the rest to the event loop's next turn."""
        if self.stretch < STRETCH:
            self.busy = True
            try:
                self.run(self._visit_ready)
            finally:
                self.busy = False
        if self.ready and not self._called:
            self._called = True
            self._loop.next(self._turn)

    def _visit_ready(self) -> None:
        ready = self.ready
        while ready and self.stretch < STRETCH:
            visit = ready.popleft()
            if visit(min(BATCH, STRETCH - self.stretch)):
                ready.append(visit)

    def _turn(self) -> None:
        """Continue with the ready actors. Called by the event loop, after other tasks had their turn."""
        self._called = False
        self.stretch = 0
        self.serve()
