"""Whatever a conversation has gone through, what is rendered of it is accepted and complete. Every dialect, at scale.

The suite judges a fixed number of generated conversations: each is rendered at once for a few of the profiles in
turn, and some are also played as a session that sends requests to them as it goes. `.ci/run` judges 24,000.
For more, in a shell:

    python -m tests.commands.test_generated_histories --count 2000000 --seed 50000 --workers 2

A line for each conversation that fails has its seed and dialect. `tests.commands.at_scale` says the rest.
"""

import sys
from collections.abc import Callable
from functools import lru_cache, partial

import pytest

from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from tests.commands.at_scale import main, share
from tests.core.session_log import broken, cold, refused, simulated
from tests.core.test_conservation import all_is_conserved, kept
from tests.generated.histories import READERS, history

COUNT = share(4_000)
PARTS = 2
EACH = 2
"""Dialects that one conversation is rendered for."""
PLAYED = 20
"""Of so many conversations one is played as a session too."""

NAMES = tuple(PROFILES)


def due(seed: int) -> tuple[str, ...]:
    """The dialects that a conversation is rendered for. All of them have their turn equally often."""
    return tuple(NAMES[(EACH * seed + place) % len(NAMES)] for place in range(EACH))


def wrong(seed: int) -> list[str]:
    """What is wrong with the transcripts of one conversation, if anything."""
    found: list[str] = []
    for name in due(seed):
        if (why := told(partial(at_once, seed, READERS[name]))) is not None:
            found.append(f"history({seed}) for {name}: {why}")
    if seed % PLAYED == 0:
        names = [NAMES[(seed // PLAYED + step) % len(NAMES)] for step in (0, 7, 13)]
        bindings = [READERS[name] for name in names]
        if (why := told(partial(in_lanes, seed, bindings))) is not None:
            found.append(f"history({seed}) as a session with {', '.join(names)}: {why}")
    return found


@lru_cache(maxsize=1)
def come_in(seed: int) -> tuple[History, list[Message], Ledger]:
    """A conversation behind the door, its messages as they are at rest, and what else is known of its calls."""
    messages, ledger = history(seed)
    return History(messages, ledger), kept(messages), ledger


def at_once(seed: int, binding: Binding) -> str | None:
    """What is wrong with a conversation rendered for this binding alone: every promise, on one render."""
    said, resting, ledger = come_in(seed)
    rendered = cold(said, ledger, binding)
    all_is_conserved(resting, ledger, rendered)
    return refused(rendered)


def in_lanes(seed: int, bindings: list[Binding]) -> str | None:
    """What is wrong with the requests of a session that goes through a conversation with these bindings."""
    return broken(simulated(*history(seed), seed, bindings))


def told(judge: Callable[[], str | None]) -> str | None:
    """The verdict, or what was raised instead: the seed is worth more than the traceback."""
    try:
        return judge()
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"


@pytest.mark.requirement("PROMISE-1", "PROMISE-2", "REQ-915-004", "REQ-915-005", "REQ-915-013", "REQ-915-038")
@pytest.mark.requirement("REQ-915-006", "REQ-915-007", "REQ-915-008", "REQ-915-009", "REQ-915-012")
@pytest.mark.requirement("REQ-915-016", "REQ-915-017")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_generated_history_is_refused_in_any_dialect(part: int) -> None:
    size = COUNT // PARTS
    for seed in range(part * size, (part + 1) * size):
        assert wrong(seed) == []


def test_every_profile_is_rendered_for_equally_often() -> None:
    turns = [name for seed in range(len(NAMES)) for name in due(seed)]
    assert {turns.count(name) for name in NAMES} == {EACH}
    assert set(NAMES) == set(READERS)


if __name__ == "__main__":
    sys.exit(main(wrong, "histories", "tests.commands.test_generated_histories", COUNT, batch=500))
