"""Containment: other people's code, each piece in a task of its own that it may spoil.

A tool may leave a task group open, swallow its cancellation, raise an exit, or never end. On trio a task that leaves a
nursery open fails whatever nursery it runs in, and the run itself if that is the system's; so each piece runs in a
nursery that a containing task keeps for one piece at a time, and these run in a nursery of the host's. One that was not
spoiled is used again. On asyncio a task of the loop's own is container enough.

A piece is told to end by cancelling its scope. If it goes on all the same, it is let be: its inner scope is shielded
from then on, because a cancelled scope raises at every wait, and a task that swallows that spins. When the host leaves,
it is dropped: its coroutine is driven from here, step by step, so it can be closed where it stands, without a wait.
"""

import contextvars
import sys
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio.lowlevel import checkpoint

from actors.interrupts import is_delivered
from actors.kernel.parking import Changes, EventLoop
from actors.kernel.tasks import Ended, Work, begun, primed

if TYPE_CHECKING:
    import trio

Run: TypeAlias = Coroutine[Any, Any, None]  # Any: as in `Work`

SPARES = 16  # nurseries that are kept for the next pieces
PASSES = 64  # turns of the event loop that dropped code has to end


class Dropped(BaseException):
    """Raised in a contained task that was dropped."""


class Contained:
    """One piece of foreign code while it runs. Made by `Containment.start`."""

    def __init__(
        self, containment: "Containment", work: Work, ended: Ended, name: str, about: object
    ) -> None:
        self._containment, self._work, self._ended = containment, work, ended
        self.name, self.about = name, about
        self._parking = parking = containment.parking
        self._outer, self._inner = parking.scope(shield=True), parking.scope()
        self._task: Any = None  # Any: the task of either backend
        self._at: object = None  # what it waits for, while it does
        self.cancelled = self.dropped = False

    def cancel(self) -> None:
        """Tell it to end. Telling again changes nothing."""
        self.cancelled = True
        self._outer.cancel()

    def let_be(self) -> None:
        """Tell it no longer: it did not listen, and goes on by itself."""
        self._inner.shield = True

    def drop(self) -> None:
        """Close it where it stands. What cannot be interrupted, as a wait for somebody's thread, still goes on."""
        self.dropped = True
        self.cancel()
        if self._task is None or self._at is None:
            return
        if (abort := getattr(self._task, "_attempt_abort", None)) is None:  # asyncio
            self._task.cancel()
        elif self._task._abort_func is not None:  # trio has no other way past a shield of the task's own
            abort(_drop)

    async def run(self) -> None:
        """Run it, in the task it may spoil, and say how it ended. Nothing may be awaited after it."""
        raised: BaseException | None = None
        try:
            await begun()
            self._task = self._parking.task()
            with self._outer, self._inner:
                await self.driven()
        except BaseException as error:  # it ends here, whatever it is
            raised = error
            self._outer.cancel()  # if it left a task group open, that is what ends the group on asyncio
        self._task = None
        ended = self._ended
        del self._ended, self._work  # they hold who holds this, and would be left to the garbage collector
        self._containment.left(self, is_sound=raised is None and not self.cancelled)
        try:
            ended(raised)
            if raised is not None and is_delivered(raised):
                self._containment.on_interrupt(raised)
        finally:
            del raised  # its traceback holds this frame

    @types.coroutine
    def driven(self) -> Generator[Any, Any, None]:  # Any: the event loop's own traps and answers pass through
        """Run the work step by step, unless it is dropped."""
        coroutine, containment = self._work(), self._containment
        value: Any = None  # Any: as above
        error: BaseException | None = None
        while True:
            if self.dropped:
                with suppress(BaseException):  # whatever it does about that
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
        parking: The host's.
    """

    def __init__(self, parking: EventLoop) -> None:
        self.parking = parking
        self.step: tuple[Contained, float] | None = None
        """The piece whose code runs at this moment, and since when, by `time.monotonic`. For a look from outside."""
        self.on_start: Callable[[], object] = _nothing
        """Called whenever a piece starts that says what it is."""
        self.on_interrupt: Callable[[BaseException], object] = _nothing
        """Called with an interrupt that a signal delivered to a piece: it is meant for the whole program."""
        self.named = 0
        """How many of those run."""
        self._nursery: trio.Nursery | None = None
        self._spare: list[trio.Nursery] = []  # containing nothing now
        self._running: dict[Contained, object] = {}
        self._changes = Changes(parking)

    @property
    def names(self) -> list[str]:
        """Names of those that run."""
        return [contained.name for contained in self._running]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Make room for them. Left after `close`: trio, which can lose no task, waits for what still runs then."""
        if (trio := sys.modules.get("trio")) is None or not trio.lowlevel.in_trio_run():
            yield
            return
        # an interrupt is for the host, not for a tool to lose
        trio.lowlevel.enable_ki_protection(Contained.run)
        async with trio.open_nursery() as self._nursery:
            yield
            self._spare.clear()
            self._nursery.cancel_scope.cancel()  # the containing tasks; what they contain is shielded from it

    def start(
        self, work: Work, ended: Ended, name: str, context: contextvars.Context, about: object = None
    ) -> Contained:
        """Start `work` in a task that it may spoil. `ended` and `context` as in `Tasks.start`.

        `about` says what it is, to whoever looks at `step`.
        """
        contained = Contained(self, work, ended, name, about)
        run = primed(contained.run())
        self._running[contained] = None
        self.named += about is not None
        if self._nursery is None:
            self._running[contained] = self.parking.spawn(run, name, context)
        elif self._spare:
            _enter(self._spare.pop(), run, name, context)
        else:
            contextvars.Context().run(self._nursery.start_soon, self._contain, run, name, context)
        if about is not None:
            self.on_start()
        return contained

    def left(self, contained: Contained, *, is_sound: bool) -> None:
        """Note that a piece has ended; it is the running task. `is_sound`: it spoiled nothing."""
        del self._running[contained]
        self.named -= contained.about is not None
        if self._nursery is not None:
            self._emptied(is_sound=is_sound)
        if not self._running:
            self._changes.tell()

    async def _contain(self, run: Run, name: str, context: contextvars.Context) -> None:
        """Keep a nursery for one piece at a time. If a piece spoils it, it ends."""
        trio = sys.modules["trio"]
        with suppress(BaseException):
            async with trio.open_nursery() as nursery:
                _enter(nursery, run, name, context)
                del run, context  # they hold a session, which this task may outlive by far
                await trio.sleep_forever()

    def _emptied(self, *, is_sound: bool) -> None:
        """Keep the nursery of the running piece, which has ended, for the next one, or have it end."""
        nursery = sys.modules["trio"].lowlevel.current_task().parent_nursery
        if is_sound and len(self._spare) < SPARES:
            self._spare.append(nursery)
        else:
            nursery.cancel_scope.cancel()

    async def close(self, grace: float) -> None:
        """End all of them: tell them, wait for `grace` seconds, and drop what is left. Some run on even so."""
        fresh = [contained for contained in self._running if not contained.cancelled]
        for contained in fresh:
            contained.cancel()
        with anyio.move_on_after(grace if fresh else 0):  # those that were told before have had their time
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
    """Nobody looks."""


def _drop() -> None:
    raise Dropped
