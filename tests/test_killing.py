"""A process is killed at crossings of its journal, and another goes on: a sample of the sweep (`tests.killing`)."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import pytest

from tests.killing.aftermath import judged
from tests.killing.scenarios import SCENARIOS

CROSSINGS = range(1, 17)
LOST = "outcome_unknown"


def killed(folder: Path, backend: str, scenario: str, *crossings: int) -> list[int]:
    """Kill a process at each crossing; return how each ended."""
    line = [sys.executable, "-m", "tests.killing.host", str(folder), backend, "process", scenario]
    done = subprocess.run([*line, *map(str, crossings)], capture_output=True, timeout=300, check=False)
    ends = [int(each) for each in done.stdout.split()]
    assert len(ends) == len(crossings), done.stderr.decode()
    assert {0, -signal.SIGKILL}.issuperset(ends), done.stderr.decode()
    return ends


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.requirement("PROMISE-6", "PROMISE-7")
def test_whenever_a_process_is_killed_another_goes_on_and_nothing_is_lost_or_done_twice(
    tmp_path: Path, scenario: str, backend: str
) -> None:
    crossings = CROSSINGS if (scenario, backend) == ("tools", "asyncio") else CROSSINGS[::4]
    ends = killed(tmp_path, backend, scenario, *crossings)
    found = Counter[str]()
    for crossing in crossings:
        found += anyio.run(judged, tmp_path / str(crossing), backend=backend)
    assert ends.count(-signal.SIGKILL) >= len(ends) // 2
    assert found["done"] > 0
    if len(crossings) == len(CROSSINGS):
        assert found[LOST] > 0  # else no kill met a call in the midst


def test_a_process_that_nobody_kills_does_all_of_it(tmp_path: Path) -> None:
    assert killed(tmp_path, "asyncio", "tools", 0) == [0]
    assert anyio.run(judged, tmp_path / "0") == {"done": 2}
