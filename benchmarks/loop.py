"""T: how long a developer waits for a verdict on a change.

T1   the README's test command, and all of `.ci/run`, as the last `.ci/run` on this machine wrote them down; and the
     quick loop, which is run (`--full`)
"""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Extent, Figure, Measure
from benchmarks.start import ROOT

TIMES = ROOT / ".ci" / "times"
_QUESTION = "time until a change is known to be sound"
_LIMITS = {"The README's tests": 300, "All": 1200}
"""Seconds, by the step of `.ci/run`; installation included."""


def recorded(times: Path) -> list[Figure]:
    """Return a row for each step that has a limit, from a file of `SECONDS<TAB>STEP`."""
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
            note="" if step in took else "bash .ci/run first",
        )
        for step, limit in _LIMITS.items()
    ]


def quick_loop(extent: Extent) -> Figure:
    """Return the row of the tests that are not long."""
    row = Figure("T1", _QUESTION, 'pytest -m "not long"', "s", 90, note="--full runs it")
    if extent.quick:
        return row
    began = time.monotonic()
    command = (sys.executable, "-m", "pytest", "-q", "-m", "not long")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    return replace(row, value=time.monotonic() - began, note=last)


def _t1(options: Extent) -> list[Figure]:
    return [*recorded(TIMES), quick_loop(options)]


MEASURES = (Measure("T1", _QUESTION, _t1),)
