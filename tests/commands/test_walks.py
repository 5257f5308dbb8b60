"""Random walks of one session over the strictest hosts of all dialects: no request is refused.

The suite makes 25 walks (`tests.commands.walks` explains them), `.ci/run` another 400. For more, in a shell:

    python -m tests.commands.test_walks --count 20000 --seed 1000 --workers 2

A line for each failed walk contains its seed. `tests.commands.at_scale` explains the options.
"""

import sys
from collections import Counter
from functools import cache

import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.log.events import EpochBegan
from tests.commands.at_scale import main, share
from tests.commands.walks import Walk, problems, problems_of
from tests.core.session_log import text

COUNT = share(400)
PARTS = 2
RARE = (65,)
"""Seeds of walks with a rare event: a host bound to its tools learns of new tools in the middle of a walk."""


@cache
def walk_once(seed: int) -> tuple[list[str], Counter[str]]:
    """Make a walk once for all tests; return its problems and the events seen on it."""
    walk = Walk(seed)
    found, seen = problems_of(walk, seed), Counter[str]()
    seen.update(binding.dialect for binding, _, _ in walk.session.sent)
    seen.update(type(event).__name__ for event in walk.session.log)
    seen.update(event.reason for event in walk.session.log if isinstance(event, EpochBegan))
    seen.update(f"epoch {epoch > 0}" for _, epoch, _ in walk.session.sent)
    for _, _, rendered in walk.session.sent:
        sent, titles = text(rendered), rendered.lane._state.usage.titles
        seen.update(["late"] if b"[Late result of" in sent else ())
        seen.update(["full"] if b"already contains as many as the provider accepts" in sent else ())
        seen.update("named again" for _, times in titles.items() if times > 1)
    return found, seen


@pytest.mark.requirement("PROMISE-1", "PROMISE-3", "PROMISE-4", "PROMISE-11", "REQ-915-041", "REQ-915-042")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_random_walk_has_no_refusal_and_never_changes_sent_messages(part: int) -> None:
    size = COUNT // PARTS
    for seed in (*range(part * size, (part + 1) * size), *RARE[part::PARTS]):
        assert walk_once(seed)[0] == []


HAPPENS = {
    "Compacted",
    "ResultsTrimmed",
    "Rewound",
    "Configured",
    "EpochBegan",
    "Cancelled",
    "Refused",
    "Denied",
    "Failed",
    "Returned",
    "RequestSent",
}
MOST = 50
"""Walks that see every event, whatever the walks below see."""
TELLING = (24, 25, 27, 30, 34, 41, 48)
"""Seeds of walks that together see every event. They run first, and often no others are needed."""


def test_random_walks_cover_every_dialect_and_event() -> None:
    wanted = {*PROFILES, *HAPPENS, "epoch True", "configured", "late", "full", "named again", "rewind"}
    unseen = wanted
    for seed in (*TELLING, *range(MOST)):
        if unseen:
            unseen = unseen - set(walk_once(seed)[1])
    assert unseen == set()


if __name__ == "__main__":
    sys.exit(main(problems, "walks", "tests.commands.test_walks", COUNT, batch=20))
