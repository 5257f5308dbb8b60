"""An actor that does what a test tells it, and writes down what reached it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ClassVar, assert_never

import anyio

from actors.kernel import Actor, Command, Context, Query, Ref, Reply, Restart, System, Terminated

AT_ONCE = Restart(intensity=3, period=60.0, backoff=(0.0, 0.0))


@dataclass(frozen=True)
class Note(Command):
    """Write `what` down."""

    what: object


@dataclass(frozen=True, slots=True)
class Urgent(Command):
    """Write `what` down; goes by the control queue."""

    control: ClassVar[bool] = True
    what: object


@dataclass(frozen=True)
class Latest(Command):
    """Write `what` down; a newer one replaces one still queued."""

    control: ClassVar[bool] = True
    coalesces: ClassVar[bool] = True
    what: object


@dataclass(frozen=True)
class Do(Command):
    """Await `deed` in the handler."""

    deed: Callable[["Probe"], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Look(Query[tuple[object, ...]]):
    """Ask what has been written down."""


@dataclass(frozen=True)
class Keep(Query[str]):
    """Ask, and be answered by nobody for now: the reply is kept."""


@dataclass(frozen=True)
class Solve(Query[str]):
    """Ask with `deed` in the handler, which answers or not."""

    deed: Callable[["Probe", Reply[str]], Awaitable[object]]


Probed = Note | Urgent | Latest | Do | Look | Keep | Solve | Terminated


class Probe(Actor[Probed]):
    """Keeps its notes in a list that the test may share, so that they survive a restart."""

    def __init__(self, notes: list[object] | None = None) -> None:
        self.notes: list[object] = [] if notes is None else notes
        self.kept: list[Reply[str]] = []
        self.context: Context[Probed] | None = None

    async def started(self, context: Context[Probed]) -> None:
        self.context = context

    async def receive(self, command: Probed) -> None:
        match command:
            case Note(what=what) | Urgent(what=what) | Latest(what=what):
                self.notes.append(what)
            case Do(deed=deed):
                await deed(self)
            case Look(reply=reply):
                reply.send(tuple(self.notes))
            case Keep(reply=kept):
                self.kept.append(kept)
            case Solve(deed=solve, reply=answer):
                await solve(self, answer)
            case Terminated(name=name, faulted=faulted):
                self.notes.append((name, "faulted" if faulted else "stopped"))
            case _:
                assert_never(command)

    @property
    def hold(self) -> Context[Probed]:
        """The context it was started with."""
        assert self.context is not None
        return self.context


@dataclass
class Gate:
    """Something a handler waits in, and that says when it has come to it."""

    reached: anyio.Event = field(default_factory=anyio.Event)
    opened: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, _probe: Probe, _reply: Reply[str] | None = None) -> None:
        self.reached.set()
        await self.opened.wait()


async def boom(_probe: Probe, _reply: Reply[str] | None = None) -> None:
    """Crash."""
    raise ValueError("boom")


@asynccontextmanager
async def law(seconds: float = 60, **settings: float) -> AsyncIterator[System]:
    """A system whose accounts must balance at any time the test looks, and with nothing left at its end."""
    with anyio.fail_after(seconds):
        async with System(seed=1, **settings) as system:  # type: ignore[arg-type]  # floats serve for the ints too
            yield system
            assert system.counts().balanced, system.counts()
        counts = system.counts()
    assert counts.balanced, counts
    assert counts.queued == counts.running == counts.pending == 0, counts


async def blocked(ref: Ref[Probed]) -> Gate:
    """Have the actor wait in its handler, and return the gate it waits at."""
    gate = Gate()
    await ref.tell(Do(gate))
    await gate.reached.wait()
    return gate
