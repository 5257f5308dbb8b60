"""An actor for tests: it executes functions of the test, and records the messages that it handles."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar, assert_never

import anyio

from actors.kernel import Actor, Command, Context, Query, Ref, Reply, Restart, System
from actors.kernel.shared import State

AT_ONCE = Restart(intensity=3, period=60.0, backoff=(0.0, 0.0))


class Note(Command, frozen=True):
    """Record `what`."""

    what: object


class Urgent(Command, frozen=True):
    """Record `what`; uses the control queue."""

    control: ClassVar[bool] = True
    what: object


class Do(Command, frozen=True):
    """Call `deed` in the handler."""

    deed: Callable[["Probe"], object]


class GetNotes(Query[tuple[object, ...]], frozen=True):
    """Return the recorded messages."""


class Keep(Query[str], frozen=True):
    """Keep the reply of this query, so that it is not answered yet."""


class Solve(Query[str], frozen=True):
    """Call `deed` in the handler with the reply, which it may answer."""

    deed: Callable[["Probe", Reply[str]], object]


Probed = Note | Urgent | Do | GetNotes | Keep | Solve


class Probe(Actor[Probed]):
    """Records messages in a list that the test may share, so that they survive a restart."""

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
            case GetNotes(reply=reply):
                reply.send(tuple(self.notes))
            case Keep(reply=kept):
                self.kept.append(kept)
            case Solve(deed=solve, reply=answer):
                solve(self, answer)
            case _:
                assert_never(command)

    @property
    def context(self) -> Context[Probed]:
        """The context of its start."""
        assert self._context is not None
        return self._context


class LowProbe(Probe):
    """A probe at a lower level than `Probe`."""

    level = 5


def boom(_probe: Probe, _reply: Reply[str] | None = None) -> None:
    """Crash."""
    raise ValueError("boom")


def state(system: System, name: str) -> State:
    """Return the state of a running actor."""
    return system.cells[name].state


def restarts(system: System) -> list[int]:
    """Return how often each actor was restarted."""
    return [cell.restarts for cell in system.cells.values()]


@asynccontextmanager
async def checked_system(seconds: float = 60, **settings: float) -> AsyncIterator[System]:
    """Run a system whose message counts must balance whenever the test looks, with nothing left at the end."""
    with anyio.fail_after(seconds):
        async with System(seed=1, **settings) as system:  # type: ignore[arg-type]  # floats are valid ints here
            yield system
            assert system.counts().is_balanced, system.counts()
        counts = system.counts()
    assert counts.is_balanced, counts
    assert counts.queued == counts.running == counts.pending == 0, counts


async def hold_actor(ref: Ref[Probed]) -> Context[Probed]:
    """Put an actor on hold; return the context that releases it."""
    contexts: list[Context[Probed]] = []

    def hold(probe: Probe) -> None:
        contexts.append(probe.context)
        probe.context.hold_messages()

    await ref.send(Do(hold))
    return contexts[0]
