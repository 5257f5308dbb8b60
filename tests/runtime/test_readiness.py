"""Readiness of a runtime: not with a damaged journal, during a drain, or while the runtime exits."""

from pathlib import Path

import anyio
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import Runtime
from actors.config import Config, FileSettings
from actors.errors import JournalDamaged
from actors.journal.storage.sqlite import SqliteStorage
from actors.strict.rules.base import Json
from actors.telemetry import PrometheusCollector
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.journal.test_damage import DAMAGE, damaged_journal, log
from tests.runtime_support import Gate, backend_at

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("U-08")
@pytest.mark.parametrize("damage", ["a changed record", "a missing record", "a changed entry"])
async def test_a_runtime_is_not_ready_after_it_found_damage_in_its_journal(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = damaged_journal(tmp_path / "sessions.db", DAMAGE[damage])
    async with Runtime(journal=SqliteStorage(path)) as runtime:
        registry = CollectorRegistry()
        registry.register(PrometheusCollector(runtime.stats))
        assert runtime.stats().is_ready
        with pytest.raises(JournalDamaged) as raised:
            await runtime.journal.export("one")
        with pytest.raises(JournalDamaged):
            await runtime.journal.export("one")
        assert await runtime.journal.export("two")
        stats = runtime.stats()
        assert (stats.is_ready, stats.journal.is_available) == (False, True)
        assert stats.journal.damage == str(raised.value)
        assert "actors_journal_damaged 1.0" in generate_latest(registry).decode().splitlines()
    (line,) = [line for line in caplog.messages if "journal_damaged" in line]
    assert "session" in line
    assert str(log("one")[1]) not in line


def call_work(request: Json) -> Turn:
    """Call the tool `work` once, and then answer."""
    assert isinstance(request, dict)
    messages = request["messages"]
    assert isinstance(messages, list)
    return Turn(Call("work", {"name": "x"})) if messages[-1]["role"] == "user" else Turn(Say("Done."))


@pytest.mark.requirement("U-08")
async def test_a_runtime_is_not_ready_during_and_after_a_drain(tmp_path: Path) -> None:
    gate = Gate()
    async with serve(OpenAIServer(call_work)) as (server,):
        config = Config(FileSettings(backends={"a": backend_at(server)}), {})
        async with Runtime(config, journal=tmp_path / "sessions.db") as runtime:
            session = await runtime.open("a", tools=[gate.tool])
            answers = list[str]()

            async def ask() -> None:
                answers.append((await session.ask("Work.")).text)

            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(ask)
                    await gate.started("x")
                    assert runtime.stats().is_ready
                    tasks.start_soon(runtime.drain)
                    await anyio.wait_all_tasks_blocked()
                    stats = runtime.stats()
                    assert (stats.is_ready, stats.is_draining, stats.sessions) == (False, True, 1)
                    gate.open("x")
            stats = runtime.stats()
            assert (stats.is_ready, stats.journal.is_ready, stats.sessions) == (False, True, 0)
    assert answers == ["Done."]


@pytest.mark.requirement("U-08")
async def test_a_runtime_is_not_ready_while_it_exits() -> None:
    started, during = anyio.Event(), list[tuple[bool, bool]]()

    async def work(name: str) -> None:
        """Work until the call is cancelled."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stats = runtime.stats()
            during.append((stats.is_ready, stats.is_draining))

    async with serve(OpenAIServer(call_work)) as (server,):
        config = Config(FileSettings(backends={"a": backend_at(server)}), {})
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks, Runtime(config) as runtime:
                session = await runtime.open("a", tools=[work])
                tasks.start_soon(session.ask, "Work.")
                await started.wait()
    assert during == [(False, True)]
