"""Tools that never end or block the event loop: they are named in the log, counted, and quarantined."""

import logging
import threading
import time
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest
from anyio.lowlevel import checkpoint

from actors.config import RuntimeLimits
from actors.kernel import System
from actors.kernel.tasks import ContainedTask
from actors.runtime.runtime import Runtime
from actors.scheduler.watchdog import RECHECK, STALL, LoopWatch
from actors.testing import Call, Say, Turn
from actors.tools import tool
from tests.runtime_support import bodies, openai, results, runtime_with
from tests.scripted import scripted
from tests.tools.test_toolsets import Bench

pytestmark = pytest.mark.anyio

PATIENCE = 30.0
SHORT = STALL / 5


@pytest.fixture
def short_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report a blocked loop after a fifth of the usual time."""
    monkeypatch.setattr("actors.scheduler.watchdog.STALL", SHORT)


def messages_of(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if f"event='{event}'" in record.getMessage()]


async def test_a_tool_that_blocks_the_loop_is_named_with_its_code_location(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[list[str]] = []

    @tool
    async def blocks() -> str:
        """Block the loop until the log reports it."""
        until = time.monotonic() + PATIENCE
        while not messages_of(caplog, "loop_stalled") and time.monotonic() < until:
            time.sleep(0.01)  # noqa: ASYNC251  the mistake under test
        seen.append(messages_of(caplog, "loop_stalled"))
        return "blocked"

    server = openai(Turn(Call("blocks")), Turn(Say("Done.")))
    with caplog.at_level(logging.WARNING, "actors.tools"):
        async with runtime_with(gpt=server) as runtime:
            session = await runtime.open("gpt", tools=[blocks], id="slow")
            assert runtime._watch.stalls.count == 0
            assert (await session.ask("Go.")).status == "complete"
            stalls = runtime._watch.stalls
    [[line]] = seen
    assert "session='slow' call='hist_tool_1' tool='blocks'" in line
    assert f"{__file__}:" in line
    assert "blocks" in line.split("place=")[1]
    assert stalls.count == 1
    assert stalls.seconds >= STALL


@pytest.mark.alternating  # takes a second and a half, and the watchdog does not depend on the event loop
async def test_a_tool_that_waits_does_not_count_as_a_stall_and_the_watchdog_ends_by_itself() -> None:
    looked = threading.Event()

    @tool
    async def waits() -> str:
        """Wait for longer than the watchdog takes to report."""
        looked.set()
        assert watchdogs()
        await anyio.sleep(1.5)  # the test needs a wait of this length
        return "waited"

    for thread in watchdogs():  # from another test
        thread.join(PATIENCE)
    before = len(watchdogs())
    server = openai(Turn(Call("waits")), Turn(Say("Done.")))
    async with scripted(server, tools=[waits]) as (_, runtime, session):
        assert (await session.ask("Go.")).status == "complete"
        assert looked.is_set()
        assert runtime._watch.stalls.count == 0
    for thread in watchdogs():
        thread.join(PATIENCE)
    assert len(watchdogs()) == before == 0


def watchdogs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "actors watchdog"]


@pytest.mark.usefixtures("short_stalls")
async def test_no_watchdog_runs_while_a_toolset_is_open_without_calls() -> None:
    for thread in watchdogs():  # from another test
        thread.join(PATIENCE)
    bench = Bench()
    async with runtime_with(gpt=openai(Turn(Call("work")), Turn(Say("Done.")))) as runtime:
        session = await runtime.open("gpt", tools=[bench.source()])
        assert bench.notes == ["bench opened"]
        assert watchdogs() == []
        assert (await session.ask("Go.")).status == "complete"
        for thread in watchdogs():  # it ends although the toolset is open
            thread.join(PATIENCE)
        assert watchdogs() == []
        assert bench.notes == ["bench opened"]


@pytest.mark.parametrize(
    ("age", "wait", "count"),
    [(None, STALL, 0), (0.0, STALL, 0), (0.75, STALL - 0.75, 0), (STALL, RECHECK, 1)],
)
async def test_the_next_check_of_the_watchdog_is_when_the_running_step_would_count_as_stalled(
    age: float | None, wait: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with System() as system:
        watch = LoopWatch(system.contained_tasks)
        monkeypatch.setattr("actors.scheduler.watchdog.monotonic", lambda: 100.0)
        if age is not None:
            contained = ContainedTask(system.contained_tasks, checkpoint, lambda error: None, "piece", None)
            system.contained_tasks.step = contained, 100.0 - age
        assert (watch.check(), watch.stalls.count) == (wait, count)
        watch.close()


@pytest.mark.usefixtures("short_graces")
async def test_a_tool_with_running_abandoned_calls_is_disabled_until_they_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deaf, running = ShieldedWait(), list[int]()

    async def ignore_cancellation() -> str:
        """Swallow every cancellation."""
        running.append(1)
        await deaf.wait()
        return "late"

    call = Turn(Call("ignore_cancellation"))
    server = openai(call, call, call, Turn(Say("So I go on.")), call, Turn(Say("Done.")))
    with caplog.at_level(logging.WARNING, "actors.tools"):
        async with runtime_with(gpt=server, limits=RuntimeLimits(max_abandoned_calls=2)) as runtime:
            session = await runtime.open("gpt", tools=[ignore_cancellation])
            for count in (1, 2):
                await _ask_and_cancel(runtime, session.id, lambda: len(running) == count)  # noqa: B023
                assert runtime._quarantine.size == count
            assert "running=2" in messages_of(caplog, "tool_barred")[0]
            assert (await session.ask("Once more.")).text == "So I go on."
            assert len(running) == 2
            assert "tool_barred" in list(results(bodies(server)[-1]).values())[-1]
            deaf.release()
            while runtime._quarantine.size:
                await anyio.lowlevel.checkpoint()
            assert (await session.ask("And now?")).status == "complete"
            assert len(running) == 3
            assert (runtime._quarantine.size, runtime._quarantine.entered) == (0, 2)


class ShieldedWait:
    """A wait that is shielded from cancellation."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    async def wait(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._event.wait()

    def release(self) -> None:
        self._event.set()


async def _ask_and_cancel(runtime: Runtime, name: str, runs: Callable[[], bool]) -> None:
    session = runtime.session(name)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.ask, "Go.")
        while not runs():
            await anyio.lowlevel.checkpoint()
        assert await session.cancel()
