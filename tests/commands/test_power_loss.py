"""A power loss: durability `power` keeps every acknowledged write; level `process` loses some."""

from pathlib import Path
from random import Random

import pytest

from actors.journal.storage import Durability
from tests.commands.at_scale import share
from tests.commands.powerloss.disk import Disk
from tests.commands.powerloss.judge import count_outcomes
from tests.commands.powerloss.layer import Step
from tests.commands.powerloss.workload import record


@pytest.mark.parametrize(("durability", "states"), [("power", share(1024)), ("process", share(384))])
def test_a_power_loss_loses_events_only_at_the_durability_level_process(
    durability: Durability, states: int, tmp_path: Path
) -> None:
    kept, found = tmp_path / "kept", tmp_path / "found"
    kept.mkdir()
    found.mkdir()
    count = count_outcomes(record(kept, durability, 1, 120), durability, found, states, 1)
    assert count.total() == states
    assert count["corrupt"] == 0
    assert (count["lost"] > 0) is (durability == "process")


def test_a_simulated_disk_keeps_synced_data_and_any_unsynced_sectors_after_a_power_loss() -> None:
    disk = Disk()
    disk.take(Step("write", "a", 0, b"x" * 1024))
    disk.take(Step("sync", "a"))
    disk.take(Step("write", "a", 0, b"y" * 1024))
    disk.take(Step("truncate", "a", 1024))
    seen = {disk.after_power_loss(Random(seed))["a"] for seed in range(200)}
    assert seen == {first * 512 + second * 512 for first in (b"x", b"y") for second in (b"x", b"y")}
    disk.take(Step("delete", "a"))
    assert {"a" in disk.after_power_loss(Random(seed)) for seed in range(20)} == {True, False}
    disk.take(Step("sync_folder", ""))
    assert "a" not in disk.after_power_loss(Random(1))
