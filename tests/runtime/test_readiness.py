"""Readiness of a runtime whose journal is damaged."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from actors import Runtime
from actors.errors import JournalDamaged
from actors.journal.storage.sqlite import SqliteStorage
from actors.telemetry import PrometheusCollector
from tests.journal.test_damage import DAMAGE, damaged_journal, log

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
