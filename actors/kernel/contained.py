"""Contain foreign code: run each piece in a task of its own, which the piece may corrupt.

A tool may leave a task group open, swallow its cancellation, raise an exit, or never end. On trio, a task that leaves
a nursery open fails the nursery in which it runs, and the entire run if that is the system's. So each piece runs in a
nursery that a containing task keeps for one piece at a time, and the containing tasks run in a nursery of the host.
An intact nursery is reused. On asyncio, a task of the loop is a sufficient container.

A piece is asked to end by cancelling its scope. If it continues regardless, it is detached: its inner scope is
shielded from then on, because a cancelled scope raises at every wait, and a task that swallows that would spin. When
the host leaves, the piece is dropped: this module drives its coroutine step by step, so it can close it at any step
without waiting.
"""

import contextvars
import sys
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from actors.interrupts import is_delivered
from actors.kernel.event_loop import Changes, EventLoop
from actors.kernel.tasks import Ended, Work, prime, priming_point

if TYPE_CHECKING:
    import trio

Run: TypeAlias = Coroutine[Any, Any, None]  # Any: as in `Work`

SPARES = 16  # idle nurseries that are kept
PASSES = 64  # turns of the event loop that dropped code has to end


class Dropped(BaseException):
    """Raised in a contained task that was dropped."""


class ContainedTask:
    """One running piece of foreign code. Created by `Containment.start`."""

    name: str
    about: object
    cancelled: bool
    dropped: bool

    def __init__(
        self, containment: "Containment", work: Work, ended: Ended, name: str, about: object
    ) -> None:
        self._containment, self._work, self._ended = containment, work, ended
        self.name, self.about = name, about
        self._loop = loop = containment.loop
        self._outer, self._inner = loop.scope(shield=True), loop.scope()
        self._task: Any = None  # Any: the task of either backend
        self._at: object = None  # the trap that it currently waits for
        self.cancelled = self.dropped = False

    def cancel(self) -> None:
        """Ask the piece to end. Repeated calls have no effect."""
        self.cancelled = True
        self._outer.cancel()

    def detach(self) -> None:
        """Stop cancelling the piece, which ignored its cancellation and continues by itself."""
        self._inner.shield = True

    def drop(self) -> None:
        """Close the coroutine at its current step. An uninterruptible wait, such as for a thread, still continues."""
        self.dropped = True
        self.cancel()
        if self._task is None or self._at is None:
            return
        if (abort := getattr(self._task, "_attempt_abort", None)) is None:  # asyncio
            self._task.cancel()
        elif self._task._abort_func is not None:  # trio has no other way past a shield of the task's own
            abort(_drop)

    async def run(self) -> None:
        """Run the piece in the task that it may corrupt, and report its end. Nothing may be awaited afterwards."""
        raised: BaseException | None = None
        try:
            await priming_point()
            self._task = self._loop.task()
            with self._outer, self._inner:
                await self.drive()
        except BaseException as error:  # any exception ends here
            raised = error
            self._outer.cancel()  # ends a task group that was left open, on asyncio
        self._task = None
        ended = self._ended
        del self._ended, self._work  # they refer to the owner: break the cycle
        self._containment.record_end(self, is_sound=raised is None and not self.cancelled)
        try:
            ended(raised)
            if raised is not None and is_delivered(raised):
                self._containment.on_interrupt(raised)
        finally:
            del raised  # its traceback holds this frame

    @types.coroutine
    def drive(self) -> Generator[Any, Any, None]:  # Any: the event loop's own traps and answers pass through
        """Run the work step by step until it ends or is dropped."""
        coroutine, containment = self._work(), self._containment
        value: Any = None  # Any: as above
        error: BaseException | None = None
        while True:
            if self.dropped:
                with suppress(BaseException):  # errors during the close are ignored
                    coroutine.close()
                raise Dropped
            containment.step = (self, monotonic())
            try:
                self._at = coroutine.send(value) if error is None else coroutine.throw(error)
            except StopIteration:
                return
            finally:
                containment.step = None
            value = error = None
            try:
                value = yield self._at
            except BaseException as raised:
                error = raised
            self._at = None


class Containment:
    """The pieces of foreign code of one host. Open it in the host's task.

    Args:
        loop: The event loop of the host.
    """

    def __init__(self, loop: EventLoop) -> None:
        self.loop = loop
        self.step: tuple[ContainedTask, float] | None = None
        """The piece that is running at this moment, and its start by `time.monotonic`. Read by other threads."""
        self.on_start: Callable[[], object] = _nothing
        """Called whenever a piece with `about` starts."""
        self.on_interrupt: Callable[[BaseException], object] = _nothing
        """Called with an interrupt that a signal raised in a piece: it is meant for the program."""
        self.named: int = 0
        """Number of running pieces with `about`."""
        self._nursery: trio.Nursery | None = None
        self._spare: list[trio.Nursery] = []  # nurseries without a piece
        self._running: dict[ContainedTask, object] = {}
        self._changes = Changes(loop)

    @property
    def names(self) -> list[str]:
        """Names of the running pieces."""
        return [contained.name for contained in self._running]

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Open the containment. Leave it after `close`; on trio, which cannot lose a task, this waits for remaining
        pieces."""
        if (trio := sys.modules.get("trio")) is None or not trio.lowlevel.in_trio_run():
            yield
            return
        # deliver interrupts to the host, where no tool can swallow them
        trio.lowlevel.enable_ki_protection(ContainedTask.run)
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            yield
            self._spare.clear()
            nursery.cancel_scope.cancel()  # ends the containing tasks; pieces are shielded

    def start(
        self, work: Work, ended: Ended, name: str, context: contextvars.Context, about: object = None
    ) -> ContainedTask:
        """Start `work` in a task that it may corrupt. `ended` and `context` as in `Tasks.start`.

        `about` describes the work to readers of `step`.
        """
        contained = ContainedTask(self, work, ended, name, about)
        run = prime(contained.run())
        self._running[contained] = None
        self.named += about is not None
        if self._nursery is None:
            self._running[contained] = self.loop.spawn(run, name, context)
        elif self._spare:
            _enter(self._spare.pop(), run, name, context)
        else:
            contextvars.Context().run(self._nursery.start_soon, self._contain, run, name, context)
        if about is not None:
            self.on_start()
        return contained

    def record_end(self, contained: ContainedTask, *, is_sound: bool) -> None:
        """Record the end of a piece, which is the running task. `is_sound`: its nursery is intact."""
        del self._running[contained]
        self.named -= contained.about is not None
        if self._nursery is not None:
            self._reuse_nursery(is_sound=is_sound)
        if not self._running:
            self._changes.tell()

    async def _contain(self, run: Run, name: str, context: contextvars.Context) -> None:
        """Keep a nursery for one piece at a time. A corrupted nursery ends."""
        trio = sys.modules["trio"]
        with suppress(BaseException):
            async with trio.open_nursery() as nursery:
                _enter(nursery, run, name, context)
                del run, context  # they refer to a session, and this task may outlive it by far
                await trio.sleep_forever()

    def _reuse_nursery(self, *, is_sound: bool) -> None:
        """Keep the nursery of the running piece, which has ended, for reuse, or end it."""
        nursery = sys.modules["trio"].lowlevel.current_task().parent_nursery
        if is_sound and len(self._spare) < SPARES:
            self._spare.append(nursery)
        else:
            nursery.cancel_scope.cancel()

    async def close(self, grace: float) -> None:
        """End all pieces: cancel them, wait for `grace` seconds, and drop the rest. A few may continue regardless."""
        fresh = [contained for contained in self._running if not contained.cancelled]
        for contained in fresh:
            contained.cancel()
        with anyio.move_on_after(grace if fresh else 0):  # earlier ones had their time
            await self._changes.until(lambda: not self._running)
        for contained in tuple(self._running):
            contained.drop()
        for _ in range(PASSES):
            if not self._running:
                break
            await checkpoint()


def _enter(nursery: "trio.Nursery", run: Run, name: str, context: contextvars.Context) -> None:
    context.run(partial(nursery.start_soon, lambda: run, name=name))


def _nothing(*_: object) -> None:
    """Do nothing."""


def _drop() -> None:
    raise Dropped
