"""Check every row of the phase table in `actors.core.session.phases`, and its invariants."""

from itertools import product
from random import Random
from typing import get_args

import pytest

from actors.core.session.phases import TABLE, Phase, PhaseEvent, initial_phase, step

PHASES: tuple[Phase, ...] = get_args(Phase)
HAPPENINGS: tuple[PhaseEvent, ...] = get_args(PhaseEvent)
NEVER: set[tuple[Phase, PhaseEvent]] = {
    ("idle", "finished"),
    ("idle", "written"),
    ("asking", "written"),
    ("recovering", "written"),
    ("ending", "written"),
    ("closing", "finished"),
    ("ended", "finished"),
    ("ended", "written"),
    ("awaiting", "finished"),
    ("awaiting", "written"),
    *((phase, "paused") for phase in PHASES if phase not in ("asking", "ending")),
    *((phase, "complete") for phase in PHASES if phase != "awaiting"),
}


def test_a_transition_missing_in_the_phase_table_raises_a_programming_error() -> None:
    assert set(TABLE) | NEVER == set(product(PHASES, HAPPENINGS))
    assert not set(TABLE) & NEVER
    for phase, happening in NEVER:
        with pytest.raises(
            AssertionError, match=f"'{happening}' cannot happen while the session is '{phase}'"
        ):
            step(phase, happening)


@pytest.mark.parametrize(
    ("is_closed", "is_open", "phase"),
    [(False, False, "idle"), (False, True, "recovering"), (True, False, "ended"), (True, True, "ended")],
)
def test_a_session_rebuilt_from_its_log_starts_in_the_phase_at_the_end_of_the_log(
    is_closed: bool, is_open: bool, phase: Phase
) -> None:
    assert initial_phase(is_closed=is_closed, is_open=is_open) == phase
    waits: Phase = "ended" if is_closed else "awaiting"
    assert initial_phase(is_closed=is_closed, is_open=is_open, is_awaiting=True) == waits


def test_an_ending_session_begins_no_ask_and_can_always_end() -> None:
    for phase in ("ending", "closing", "ended"):
        for happening in HAPPENINGS:
            if (phase, happening) in TABLE:
                action, after = TABLE[phase, happening]
                assert action not in ("begin", "hold", "apply", "stop")
                assert after in ("ending", "closing", "ended")
    for start in PHASES:
        phase = step(start, "end")[1]
        for happening in ("finished", "written"):
            phase = step(phase, happening)[1] if (phase, happening) in TABLE else phase
        assert phase == "ended"


@pytest.mark.parametrize("start", ["idle", "awaiting", "recovering", "ended"])
@pytest.mark.parametrize("seed", range(50))
def test_every_sequence_of_phases_ends_each_ask_once_and_answers_each_waiter(start: Phase, seed: int) -> None:
    random, phase = Random(seed), start
    under_way, asks, ends, written = phase == "recovering", 0, 0, 0
    for number in range(60):
        possible = [happening for happening in HAPPENINGS if (phase, happening) in TABLE]
        late = number > 40
        happening = "end" if number == 40 else random.choice(possible)
        if late and {"finished", "written"} & set(possible):
            happening = "finished" if "finished" in possible else "written"
        action, phase = step(phase, happening)
        if happening in ("finished", "paused"):
            assert under_way
            under_way = False
        if action == "begin":
            assert not under_way
            under_way, asks = True, asks + 1
        elif action in ("close", "go_on"):
            assert not under_way
            under_way = True
        elif action == "stop" and happening == "cancel":
            assert under_way
        if action == "write_end":
            assert not under_way
            written += 1
        if happening == "end":
            ends += 1
        if action == "answer":
            ends = 0
    assert phase == "ended"
    assert not under_way
    assert written == (start != "ended")
    assert ends == 0
