"""Schedule the handlers of actors: a handler runs immediately, on the sender's stack, unless another handler is
running.

A handler is a plain function, so running it is a call. An idle actor handles a message before `Ref.send` returns.
Messages that a handler sends are queued, and the outermost call handles them afterwards. So no handler runs inside
another, nothing recurses, and the messages of each sender stay in order.

After `STRETCH` messages in a row, the remaining messages wait for the event loop's next turn. So a task that asks in a
loop yields regularly, and actors that send to each other endlessly do not starve other tasks.
"""

from collections import deque
from collections.abc import Callable
from contextvars import Context as Variables
from typing import Any, TypeAlias

from actors.kernel.event_loop import EventLoop
from actors.kernel.message import Command

QueueHandler: TypeAlias = Callable[[int], bool]
"""A function that handles up to this number of an actor's messages, and returns True if messages remain. It never
raises."""

BATCH = 32  # number of messages that one actor handles before the next actor runs
STRETCH = 64  # number of messages handled before the event loop gets control


class Dispatcher:
    """The scheduler of one system's handlers. It runs one handler at a time, in the context variables of the system.

    `busy` means that handlers are running. `acting` is the actor of the running handler, and `command` its message.
    `stretch` counts the messages handled since the event loop's last turn. `late` contains functions to call directly
    after the running handler. A message is handled immediately unless `busy` is set or `stretch` has reached `STRETCH`.
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
