"""Sessions on a file during a fault of its disk or lock: while idle, during a turn, and while the runtime exits."""

from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.core.log.events import Closed
from actors.errors import JournalUnavailable
from actors.journal.storage.sqlite import SqliteStorage
from actors.testing import Call, Turn
from tests.journal.test_outages import DONE, assert_in_log, no_crashes
from tests.journal.test_unavailable import FAULTS
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    bodies,
    openai,
    restarted_actors,
    runtime_with,
)

__all__ = ["no_crashes"]  # for all tests here: no fault is a crash

pytestmark = pytest.mark.anyio

MUCH = "x" * 20_000
"""More bytes than `file_size_limit` leaves, so that a write is short."""


def file(folder: Path) -> SqliteStorage:
    """Return a storage on a new file, opened by a read so that logs stay readable during a fault."""
    (at := folder / "logs").mkdir()
    storage = SqliteStorage(at / "sessions.db", patience=0.01, durability="process")
    storage.open()
    assert storage.read("nobody") == []
    return storage


@pytest.mark.requirement("PROMISE-2", "PROMISE-6", "PROMISE-7", "PROMISE-8")
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_session_continues_after_any_file_fault_during_a_turn(fault: str, tmp_path: Path) -> None:
    storage, gate = file(tmp_path), Gate()
    server = anthropic(Turn(Call("work", {"name": "a"}), Call("work", {"name": "b"})), *DONE)
    async with runtime_with(a=server, b=openai(*DONE), storage=storage, seconds=60) as runtime:
        session = await runtime.open("a", id="one", tools=[gate.tool])
        other = await runtime.open("b", id="other")
        await other.ask("Hello.")
        before = await other.history()
        async with session.stream("Look.") as events:
            shown = []
            await gate.started("a", "b")
            with FAULTS[fault](storage):
                gate.open("a", "b")
                with suppress(JournalUnavailable):  # a full disk may have space for the results
                    async for event in events:
                        shown.append(event)
                with pytest.raises(JournalUnavailable):
                    await other.ask(MUCH)
                assert not runtime.stats().is_ready
                with pytest.raises(JournalUnavailable):
                    await other.ask(MUCH)
                with pytest.raises(JournalUnavailable):
                    await other.configure(system=MUCH)
                assert await other.history() == before
        assert (await other.ask("Are you there?")).status == "complete"
        assert (await session.ask("And now?")).status == "complete"
        await assert_in_log(session, shown)
        assert runtime.stats().is_ready
        assert (restarted_actors(runtime), sorted(gate.runs)) == ([], ["a", "b"])
        for body in bodies(server):
            assert_paired(body)
    assert SqliteStorage(storage.path).read("one")[-1] != Closed()


@pytest.mark.requirement("PROMISE-6", "PROMISE-12")
@pytest.mark.parametrize("fault", FAULTS)
async def test_exiting_the_runtime_during_a_file_fault_keeps_durable_events(
    fault: str, tmp_path: Path
) -> None:
    storage, gate = file(tmp_path), Gate()
    server = anthropic(Turn(Call("work", {"name": "a"})), *DONE)
    with ExitStack() as faults:
        async with runtime_with(a=server, seconds=60) as outer:
            async with Runtime(outer.config, journal=storage) as runtime, anyio.create_task_group() as tasks:
                session = await runtime.open("a", id="one", tools=[gate.tool])
                shown: list[int] = []

                async def ask() -> None:
                    with suppress(JournalUnavailable):
                        async with session.stream("Look.") as events:
                            async for event in events:
                                shown.append(getattr(event, "seq", None) or 0)

                tasks.start_soon(ask)
                await gate.started("a")
                faults.enter_context(FAULTS[fault](storage))
                gate.open("a")
            faults.close()
            assert 0 < max(shown) <= len(SqliteStorage(storage.path).read("one"))
            async with Runtime(outer.config, journal=SqliteStorage(storage.path)) as runtime:
                session = await runtime.resume("one", tools=[gate.tool])
                assert (await session.ask("And now?")).status == "complete"
            assert gate.runs == ["a"]
