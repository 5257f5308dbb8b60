"""The runtime in virtual time: whatever a seed brings, every invariant holds, and the same seed brings the same.

The long form: `python -m tests.test_simulation --count 10000 --workers 2`.
"""

import os
import subprocess
import sys

import pytest

from actors.testing import Odds, simulate
from tests.at_scale import main

SESSIONS, TURNS = 50, 10
ELSEWHERE = "from actors.testing import simulate; print(simulate(3, sessions=6, turns=4).digest)"


def judge(seed: int) -> list[str]:
    """Return what is wrong with the run of a seed."""
    report = simulate(seed, sessions=SESSIONS, turns=TURNS, mode="liveness" if seed % 2 else "safety")
    return [f"seed {seed}: {problem}" for problem in report.problems]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", ["safety", "liveness"])
@pytest.mark.requirement("PROMISE-1", "PROMISE-2", "PROMISE-5", "PROMISE-7", "PROMISE-8")
def test_whatever_goes_wrong_every_invariant_holds(seed: int, mode: str) -> None:
    report = simulate(seed, sessions=12, turns=6, mode="liveness" if mode == "liveness" else "safety")
    assert report.problems == ()
    assert report.counts["requests"] > 72
    assert report.counts["faults"] > 0
    assert report.counts["switch"] > 0


def test_the_same_seed_is_the_same_run_in_every_process() -> None:
    here = simulate(3, sessions=6, turns=4)
    assert simulate(3, sessions=6, turns=4) == here
    for hash_seed in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": hash_seed}
        there = subprocess.run(
            [sys.executable, "-c", ELSEWHERE], env=environ, capture_output=True, check=True
        )
        assert there.stdout.decode().strip() == here.digest
    assert simulate(4, sessions=6, turns=4).digest != here.digest


def test_where_nothing_goes_wrong_every_ask_completes() -> None:
    nothing = Odds(fault=0, cancel=0, abandon=0, crash=0, busy=0)
    report = simulate(1, sessions=4, turns=4, odds=nothing)
    assert report.problems == ()
    assert report.counts["complete"] == 16


if __name__ == "__main__":
    sys.exit(main(judge, "runs", "tests.test_simulation", count=200, batch=1))
