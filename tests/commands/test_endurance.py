"""Turns leave nothing behind: a sample of the command, and a check that it detects leaks."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from actors.testing.stressing import ResourceCounts
from tests.commands.endurance import EARLY, Lap, early, run_laps, slope

LEFT = 5
"""The most memory blocks per turn. The figures at the end of a lap vary by some hundreds."""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.requirement("PROMISE-8", "PROMISE-11")
def test_many_turns_leak_no_memory_or_other_resource(tmp_path: Path, backend: str) -> None:
    laps, did = anyio.run(run_laps, tmp_path, 384, 48, 1, backend=backend)
    assert {"complete", "cancelled", "switched", "compacted"} <= did.keys()
    assert all(each.asleep > 10 for each in laps)
    assert not any(each.held.exceeds(early(laps)) for each in laps[EARLY:])
    assert slope(laps, "blocks") < LEFT * 100_000


def test_memory_growth_is_measured_only_after_the_first_laps_of_a_long_run() -> None:
    held = ResourceCounts(1, 1, 1)
    laps = [Lap(1000 * n, held, (n < 2) * 10**9 + 20 * n, 500, 9, 1) for n in range(10)]
    assert slope(laps, "resident") == pytest.approx(2000)
    assert slope(laps, "blocks") == 0


LOGS_LATE = """
import sys
from pathlib import Path
import anyio
from actors.telemetry import logger
from tests.commands.endurance import run_laps
anyio.run(run_laps, Path(sys.argv[1]), 24, 24, 1)
before = set(sys.modules)
logger.slow_handler("s1/session", "Submit", 1.0)
print(sorted(set(sys.modules) - before))
"""


def test_logging_a_slow_handler_imports_no_module(tmp_path: Path) -> None:
    line = [sys.executable, "-c", LOGS_LATE, str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "[]\n"
