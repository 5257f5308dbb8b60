"""A session that goes at random over the strictest hosts of all dialects is never refused.

The suite goes 25 walks (`tests.commands.walks` says what one is), `.ci/run` 400 more. For more, in a shell:

    python -m tests.commands.test_walks --count 20000 --seed 1000 --workers 2

A line for each walk that fails has its seed. `tests.commands.at_scale` says the rest.
"""

import sys
from collections import Counter
from functools import cache

import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.log.events import EpochBegan
from tests.commands.at_scale import main, share
from tests.commands.walks import Walk, gone, wrong
from tests.core.session_log import text

COUNT = share(400)
PARTS = 2
RARE = (65,)
"""Seeds of walks on which something rare happens: a host that is bound to its tools is told of others in mid-walk."""


@cache
def gone_once(seed: int) -> tuple[list[str], Counter[str]]:
    """Go a walk once for all tests; return what was wrong with it, and what was seen on it."""
    walk = Walk(seed)
    found, seen = gone(walk, seed), Counter[str]()
    seen.update(binding.dialect for binding, _, _ in walk.session.sent)
    seen.update(type(event).__name__ for event in walk.session.log)
    seen.update(event.reason for event in walk.session.log if isinstance(event, EpochBegan))
    seen.update(f"epoch {epoch > 0}" for _, epoch, _ in walk.session.sent)
    for _, _, rendered in walk.session.sent:
        sent, titles = text(rendered), rendered.lane._state.usage.titles
        seen.update(["late"] if b"[Late result of" in sent else ())
        seen.update(["full"] if b"holds as many as can be shown" in sent else ())
        seen.update("named again" for _, times in titles.items() if times > 1)
    return found, seen


@pytest.mark.requirement("PROMISE-1", "PROMISE-3", "PROMISE-4", "PROMISE-11", "REQ-915-041", "REQ-915-042")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_request_of_a_random_walk_is_refused_or_changes_what_was_sent(part: int) -> None:
    size = COUNT // PARTS
    for seed in (*range(part * size, (part + 1) * size), *RARE[part::PARTS]):
        assert gone_once(seed)[0] == []


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
"""Walks on which everything is seen, whatever becomes of those below."""
TELLING = (24, 25, 27, 30, 34, 41, 48)
"""Seeds of walks that see everything between them. They are gone first, and often no others."""


def test_walks_come_to_every_dialect_and_see_everything_happen() -> None:
    wanted = {*PROFILES, *HAPPENS, "epoch True", "configured", "late", "full", "named again", "rewind"}
    unseen = wanted
    for seed in (*TELLING, *range(MOST)):
        if unseen:
            unseen = unseen - set(gone_once(seed)[1])
    assert unseen == set()


if __name__ == "__main__":
    sys.exit(main(wrong, "walks", "tests.commands.test_walks", COUNT, batch=20))
