"""Check every row of the lifecycle table in `actors.core.session.lifecycle`, and its invariants."""

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


def test_a_transition_missing_in_the_lifecycle_table_raises_a_programming_error() -> None:
    assert set(TABLE) | NEVER == set(product(STATES, EVENTS))
    assert not set(TABLE) & NEVER
    for state, event in NEVER:
        with pytest.raises(AssertionError, match=f"'{event}' cannot happen while the session is '{state}'"):
            step(state, event)


def test_a_used_session_is_activated_unless_it_has_ended() -> None:
    for state in STATES:
        assert step(state, "use")[1] == ("ended" if state == "ended" else "active")


def test_only_a_session_dropped_from_memory_or_suspended_by_a_journal_failure_reads_its_log() -> None:
    reads = {state for state in STATES if step(state, "use")[0] in ("read", "restart")}
    assert reads == {"stored", "suspended"}


def test_an_ended_session_stays_ended_and_releases_its_resources_once() -> None:
    assert [step(state, "end") for state in STATES if state != "ended"] == [("release", "ended")] * 4
    assert {after for (state, _), (_, after) in TABLE.items() if state == "ended"} == {"ended"}
    assert step("ended", "end")[0] == "nothing"


def test_a_session_releases_memory_in_steps_and_never_while_its_actors_run() -> None:
    assert step("active", "rest") == ("keep", "folded")
    assert step("folded", "evict") == ("drop", "stored")
    for state in STATES:
        if state != "active":
            assert step(state, "rest") == ("nothing", state)
