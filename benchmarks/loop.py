"""T: how long a developer waits for a verdict on a change.

T1   the README's test command, and all of `.ci/run`, as the last `.ci/run` on this machine wrote them down
"""

from pathlib import Path

from actors.testing.bench.figures import Extent, Figure, Measure

TIMES = Path(__file__).parent.parent / ".ci" / "times"
_QUESTION = "time until a change is known to be sound"
_LIMITS = {"The README's tests": 300, "All": 600}
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


def _t1(options: Extent) -> list[Figure]:
    return recorded(TIMES)


MEASURES = (Measure("T1", _QUESTION, _t1),)
