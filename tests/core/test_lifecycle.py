"""The life of a session, as its table tells it: every row of `actors.core.session.lifecycle`, and what follows."""

from itertools import product
from typing import get_args

import pytest

from actors.core.session.lifecycle import TABLE, LifecycleEvent, LifecycleState, step

STATES: tuple[LifecycleState, ...] = get_args(LifecycleState)
EVENTS: tuple[LifecycleEvent, ...] = get_args(LifecycleEvent)
NEVER: set[tuple[LifecycleState, LifecycleEvent]] = {
    ("active", "evict"),
    ("ended", "evict"),
    *((state, "fail") for state in STATES if state != "active"),
}


def test_each_event_in_each_state_is_in_the_table_or_a_programming_error() -> None:
    assert set(TABLE) | NEVER == set(product(STATES, EVENTS))
    assert not set(TABLE) & NEVER
    for state, event in NEVER:
        with pytest.raises(AssertionError, match=f"'{event}' cannot happen while the session is '{state}'"):
            step(state, event)


def test_a_use_makes_every_session_active_that_has_not_ended() -> None:
    for state in STATES:
        assert step(state, "use")[1] == ("ended" if state == "ended" else "active")


def test_only_a_session_that_was_dropped_or_whose_journal_failed_reads_its_log() -> None:
    reads = {state for state in STATES if step(state, "use")[0] in ("read", "restart")}
    assert reads == {"stored", "suspended"}


def test_a_session_that_has_ended_stays_so_and_gives_its_things_back_once() -> None:
    assert [step(state, "end") for state in STATES if state != "ended"] == [("release", "ended")] * 4
    assert {after for (state, _), (_, after) in TABLE.items() if state == "ended"} == {"ended"}
    assert step("ended", "end")[0] == "nothing"


def test_memory_is_given_back_step_by_step_and_never_taken_from_a_session_with_actors() -> None:
    assert step("active", "rest") == ("keep", "folded")
    assert step("folded", "evict") == ("drop", "stored")
    for state in STATES:
        if state != "active":
            assert step(state, "rest") == ("nothing", state)
