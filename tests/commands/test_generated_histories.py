"""Generated histories in every dialect: each rendered conversation is accepted and complete, whatever it contains.

The suite judges a fixed number of generated conversations: each is rendered for a few of the profiles in turn, and some
are also played as a session that sends requests during the conversation. `.ci/run` judges 24,000. For more, in a shell:

    python -m tests.commands.test_generated_histories --count 2000000 --seed 50000 --workers 2

A line for each failed conversation contains its seed and dialect. `tests.commands.at_scale` explains the options.
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
from tests.core.session_log import find_fault, find_refusal, render_at_once, simulate
from tests.core.test_conservation import assert_conserved, stored_messages
from tests.generated.histories import READERS, history

COUNT = share(4_000)
PARTS = 2
EACH = 2
"""The number of dialects that each conversation is rendered for."""
PLAYED = 20
"""One conversation in this many is also played as a session."""

NAMES = tuple(PROFILES)


def dialects_for(seed: int) -> tuple[str, ...]:
    """Return the dialects that a conversation is rendered for. All dialects occur equally often."""
    return tuple(NAMES[(EACH * seed + place) % len(NAMES)] for place in range(EACH))


def problems(seed: int) -> list[str]:
    """Return the problems with the transcripts of one conversation."""
    found: list[str] = []
    for name in dialects_for(seed):
        if (why := verdict(partial(problem_alone, seed, READERS[name]))) is not None:
            found.append(f"history({seed}) for {name}: {why}")
    if seed % PLAYED == 0:
        names = [NAMES[(seed // PLAYED + step) % len(NAMES)] for step in (0, 7, 13)]
        bindings = [READERS[name] for name in names]
        if (why := verdict(partial(problem_in_session, seed, bindings))) is not None:
            found.append(f"history({seed}) as a session with {', '.join(names)}: {why}")
    return found


@lru_cache(maxsize=1)
def normalize_history(seed: int) -> tuple[History, list[Message], Ledger]:
    """Return a normalized conversation: its history, its canonical messages, and its ledger."""
    messages, ledger = history(seed)
    return History(messages, ledger), stored_messages(messages), ledger


def problem_alone(seed: int, binding: Binding) -> str | None:
    """Check every promise on one render of a conversation for this binding; return the problem, if any."""
    said, resting, ledger = normalize_history(seed)
    rendered = render_at_once(said, ledger, binding)
    assert_conserved(resting, ledger, rendered)
    return find_refusal(rendered)


def problem_in_session(seed: int, bindings: list[Binding]) -> str | None:
    """Return the first problem with the requests of a session that plays a conversation with these bindings, if any."""
    return find_fault(simulate(*history(seed), seed, bindings))


def verdict(judge: Callable[[], str | None]) -> str | None:
    """Return the verdict, or the exception as text: the seed is worth more than the traceback."""
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
        assert problems(seed) == []


def test_every_profile_is_tested_equally_often() -> None:
    turns = [name for seed in range(len(NAMES)) for name in dialects_for(seed)]
    assert {turns.count(name) for name in NAMES} == {EACH}
    assert set(NAMES) == set(READERS)


if __name__ == "__main__":
    sys.exit(main(problems, "histories", "tests.commands.test_generated_histories", COUNT, batch=500))
