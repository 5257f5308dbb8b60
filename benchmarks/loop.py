"""Report the time that a developer waits for test results (T1).

The times of the README's test command and of `.ci/run` come from the last `.ci/run` on this machine. With `--full`, the
quick tests are run and timed.
"""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Extent, Figure, Measure
from benchmarks.start import ROOT

TIMES = ROOT / ".ci" / "times"
_QUESTION = "time until the tests confirm a change"
_LIMITS = {"The README's tests": 300, "All": 900}
"""The goal for each step of `.ci/run`, in seconds including installation."""


def recorded_rows(times: Path) -> list[Figure]:
    """Return a row for each step that has a goal, from a file of `SECONDS<TAB>STEP` lines."""
    lines = times.read_text(encoding="utf-8").splitlines() if times.exists() else []
    took = {step: float(seconds) for seconds, step in (line.split("\t") for line in lines)}
    return [
        Figure(
            "T1",
            _QUESTION,
            step,
            "s",
            limit,
            took.get(step),
            note="" if step in took else "run bash .ci/run first",
        )
        for step, limit in _LIMITS.items()
    ]


def quick_test_row(extent: Extent) -> Figure:
    """Run the tests that are not marked `long`, and return a row with the duration.

    A quick run only returns an empty row.
    """
    row = Figure("T1", _QUESTION, 'pytest -m "not long"', "s", 60, note="measured with --full")
    if extent.quick:
        return row
    began = time.monotonic()
    command = (sys.executable, "-m", "pytest", "-q", "-m", "not long")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    return replace(row, value=time.monotonic() - began, note=last)


def _measure_t1(options: Extent) -> list[Figure]:
    return [*recorded_rows(TIMES), quick_test_row(options)]


MEASURES = (Measure("T1", _QUESTION, _measure_t1),)
