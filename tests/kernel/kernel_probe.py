"""An actor that does what a test tells it, and writes down what reached it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar, assert_never

import anyio

from actors.kernel import Actor, Command, Context, Query, Ref, Reply, Restart, System
from actors.kernel.account import State

AT_ONCE = Restart(intensity=3, period=60.0, backoff=(0.0, 0.0))


class Note(Command, frozen=True):
    """Write `what` down."""

    what: object


class Urgent(Command, frozen=True):
    """Write `what` down; goes by the control queue."""

    control: ClassVar[bool] = True
    what: object


class Do(Command, frozen=True):
    """Call `deed` in the handler."""

    deed: Callable[["Probe"], object]


class Look(Query[tuple[object, ...]], frozen=True):
    """Ask what has been written down."""


class Keep(Query[str], frozen=True):
    """Ask, and be answered by nobody for now: the reply is kept."""


class Solve(Query[str], frozen=True):
    """Ask with `deed` in the handler, which answers or not."""

    deed: Callable[["Probe", Reply[str]], object]


Probed = Note | Urgent | Do | Look | Keep | Solve


class Probe(Actor[Probed]):
    """Keeps its notes in a list that the test may share, so that they survive a restart."""

    def __init__(self, notes: list[object] | None = None) -> None:
        self.notes: list[object] = [] if notes is None else notes
        self.kept: list[Reply[str]] = []
        self._context: Context[Probed] | None = None

    def on_start(self, context: Context[Probed]) -> None:
        self._context = context

    def receive(self, command: Probed) -> None:
        match command:
            case Note(what=what) | Urgent(what=what):
                self.notes.append(what)
            case Do(deed=deed):
                deed(self)
            case Look(reply=reply):
                reply.send(tuple(self.notes))
            case Keep(reply=kept):
                self.kept.append(kept)
            case Solve(deed=solve, reply=answer):
                solve(self, answer)
            case _:
                assert_never(command)

    @property
    def context(self) -> Context[Probed]:
        """The context it was started with."""
        assert self._context is not None
        return self._context


class Low(Probe):
    """Stands below a `Probe`."""

    level = 5


def boom(_probe: Probe, _reply: Reply[str] | None = None) -> None:
    """Crash."""
    raise ValueError("boom")


def state(system: System, name: str) -> State:
    """Return where an actor that has not ended is in its life."""
    return system.cells[name].state


def restarts(system: System) -> list[int]:
    """Return how often each actor was restarted."""
    return [cell.restarts for cell in system.cells.values()]


@asynccontextmanager
async def law(seconds: float = 60, **settings: float) -> AsyncIterator[System]:
    """A system whose accounts must balance at any time the test looks, and with nothing left at its end."""
    with anyio.fail_after(seconds):
        async with System(seed=1, **settings) as system:  # type: ignore[arg-type]  # floats serve for the ints too
            yield system
            assert system.counts().is_balanced, system.counts()
        counts = system.counts()
    assert counts.is_balanced, counts
    assert counts.queued == counts.running == counts.pending == 0, counts


async def held(ref: Ref[Probed]) -> Context[Probed]:
    """Put an actor on hold; return the context that releases it."""
    contexts: list[Context[Probed]] = []

    def hold(probe: Probe) -> None:
        contexts.append(probe.context)
        probe.context.hold()

    await ref.send(Do(hold))
    return contexts[0]
