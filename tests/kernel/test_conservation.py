"""The conservation law, A8 and A9, under random histories: every message and query ends exactly once."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from actors.errors import KernelError
from actors.kernel import Context, Group, Ref, Restart, System
from tests.kernel.kernel_probe import Do, GetNotes, Keep, LowProbe, Note, Probe, Probed, Solve, Urgent, boom

pytestmark = pytest.mark.anyio

RESTART = Restart(intensity=2, backoff=(0.0, 0.001))


class Walk:
    """A seeded random walk over all operations on a few actors."""

    def __init__(
        self, seed: int, system: System, tasks: Any
    ) -> None:  # Any: anyio exports no common base class of both
        self.random = Random(seed)
        self.system = system
        self.tasks = tasks
        self.group = Group(system, RESTART)
        self.holds: list[Context[Probed]] = []
        self.inside = False
        self.crowded = False
        self.refs: list[Ref[Probed]] = []
        for number in range(4):
            self.spawn(f"probe {number}")

    def spawn(self, name: str) -> None:
        """Start an actor with a small mailbox, at a random level, in the group or alone."""
        capacity = self.random.randint(1, 4)
        group = self.random.choice([None, self.group])
        kind = self.random.choice([Probe, LowProbe])
        self.refs.append(self.system.spawn(kind, name, capacity=capacity, restart=RESTART, group=group))

    async def step(self) -> None:
        """Do one operation, and check the counts."""
        action: Callable[[Ref[Probed]], Awaitable[None]] = self.random.choice(
            [
                self.tell,
                self.tell,
                self.ask,
                self.ask,
                self.hold,
                self.release,
                self.crash,
                self.pass_on,
                self.child,
                self.stop,
            ]
        )
        await action(self.random.choice(self.refs))
        for _ in range(self.random.randint(0, 3)):
            await checkpoint()
        counts = self.system.counts()
        assert counts.is_balanced, counts

    async def tell(self, ref: Ref[Probed]) -> None:
        command = self.random.choice([Note(1), Urgent(2), GetNotes()])
        self.tasks.start_soon(self.send_with_timeout, ref.send, command)

    async def ask(self, ref: Ref[Probed]) -> None:
        query = self.random.choice([GetNotes(), Keep(), Solve(boom)])
        timeout = self.random.choice([None, 0.0, 0.001, 0.02])
        self.tasks.start_soon(self.send_with_timeout, lambda query: ref.ask(query, timeout=timeout), query)

    async def hold(self, ref: Ref[Probed]) -> None:
        def deed(probe: Probe) -> None:
            probe.context.hold_messages()
            self.holds.append(probe.context)

        self.tasks.start_soon(self.send_with_timeout, ref.send, Do(self.exclusive(deed)))

    async def pass_on(self, ref: Ref[Probed]) -> None:
        """Let a handler send to random actors, possibly more often than their mailboxes allow."""
        others = self.random.choices(self.refs, k=6)

        def deed(probe: Probe) -> None:
            for other in others:
                with suppress(KernelError):
                    probe.context.send(other, Note(1))

        self.tasks.start_soon(self.send_with_timeout, ref.send, Do(self.exclusive(deed)))

    def exclusive(self, deed: Callable[[Probe], None]) -> Callable[[Probe], None]:
        """Return a handler that notes if it runs inside another."""

        def handler(probe: Probe) -> None:
            self.crowded |= self.inside  # an assertion here would be a crash, which is allowed
            self.inside = True
            try:
                deed(probe)
            finally:
                self.inside = False

        return handler

    async def release(self, _ref: Ref[Probed]) -> None:
        if self.holds:
            self.holds.pop(0).release_messages()

    async def crash(self, ref: Ref[Probed]) -> None:
        self.tasks.start_soon(self.send_with_timeout, ref.send, Do(boom))

    async def child(self, ref: Ref[Probed]) -> None:
        async def work() -> None:
            await checkpoint()
            if self.random.random() < 0.3:
                raise ValueError("child")

        holds = self.random.random() < 0.5
        deed = Do(lambda probe: probe.context.start(work, holds=holds))
        self.tasks.start_soon(self.send_with_timeout, ref.send, deed)

    async def stop(self, ref: Ref[Probed]) -> None:
        if self.random.random() < 0.3:
            self.refs.remove(ref)
            self.tasks.start_soon(self.system.stop, ref)
            self.spawn(f"{ref.name}'")

    async def send_with_timeout(
        self, send: Callable[[Any], Awaitable[object]], command: object
    ) -> None:  # Any: messages of any actor
        """Send with a random timeout; a rejection is an answer."""
        with anyio.move_on_after(self.random.choice([0.001, 0.01, 1.0])):
            with suppress(KernelError):
                await send(command)


@pytest.mark.parametrize("seed", range(12))
async def test_every_message_is_handled_or_queued_or_becomes_a_dead_letter(seed: int) -> None:
    """A8, A9."""
    with anyio.fail_after(60):
        async with System(seed=seed, child_timeout=0.05) as system:
            async with anyio.create_task_group() as tasks:
                walk = Walk(seed, system, tasks)
                for _ in range(250):
                    await walk.step()
                for context in walk.holds:
                    context.release_messages()
            await system.drain(grace=0.2)
            counts = system.counts()
    assert not walk.crowded
    assert counts.is_balanced, counts
    assert counts.queued == counts.running == counts.pending == 0, counts
    assert counts.handled > 0
    assert counts.dead.total() > 0
