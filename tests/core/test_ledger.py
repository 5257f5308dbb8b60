"""Check that a ledger only grows and ignores repetition and order of events."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.jsonio import Json, quote
from actors.core.ledger import Ledger
from actors.core.log.call_events import (
    CallEvent,
    Cancelled,
    Denied,
    Failed,
    Refused,
    Returned,
    Scheduled,
    Started,
    ToolCallRecord,
)
from actors.core.log.events import RequestSent
from actors.core.values.content import Media, ToolResult
from actors.core.values.identity import Binding, CallId
from actors.testing.images import png_base64
from tests.core.session_log import examples
from tests.generated.strategies import call_events

PIXEL = png_base64()

CALL = CallId("c1")
ONE, TWO = quote("one"), quote("two")
SEAL = RequestSent(1, 1, Binding("b", "openai_chat"), 0, 1, ((CALL, "cancelled"),))
LIFE: tuple[CallEvent, ...] = (
    Scheduled(CALL, "read", Json(b'{"a":1}')),
    Started(CALL),
    Cancelled(CALL, "interrupted"),
    Returned(CALL, ONE),
)
RANK = {"pending": 0, "cancelled": 1, "unknown": 1, "complete": 2, "error": 2}

logs = st.lists(call_events(), max_size=12)


def known(*events: CallEvent | RequestSent) -> ToolCallRecord:
    found = Ledger().apply(*events).get(CALL)
    assert found is not None
    return found


@pytest.mark.requirement("REQ-915-046")
@examples(300)
@given(logs, st.data())
def test_a_repeated_ledger_event_changes_nothing(
    log: list[CallEvent | RequestSent], data: st.DataObject
) -> None:
    ledger = Ledger().apply(*log)
    again = data.draw(st.lists(st.sampled_from(log), max_size=6)) if log else []
    assert ledger.apply(*again) == ledger
    assert ledger.apply(*again).late == ledger.late


@examples(300)
@given(logs, st.integers(0, 12))
def test_applying_events_in_pieces_equals_applying_them_at_once(
    log: list[CallEvent | RequestSent], cut: int
) -> None:
    once, parted = Ledger().apply(*log), Ledger().apply(*log[:cut]).apply(*log[cut:])
    assert (once, once.late) == (parted, parted.late)


def test_ledger_events_of_different_kinds_may_arrive_in_any_order() -> None:
    ledgers = [Ledger().apply(*order) for order in permutations(LIFE)]
    assert all(ledger == ledgers[0] for ledger in ledgers)
    assert known(*LIFE) == ToolCallRecord(
        CALL, "read", Json(b'{"a":1}'), True, Returned(CALL, ONE), "interrupted"
    )
    assert known(*LIFE).completion == ToolResult("c1", "one", is_complete=True)


def test_a_ledger_keeps_the_completion_objects_of_its_events_without_copying() -> None:
    ends = (Returned(CALL, ONE, (Media("image/png", PIXEL),)), Failed(CallId("c2"), TWO))
    ledger = Ledger().apply(*ends)
    for event in ends:
        known = ledger.get(event.call_id)
        assert known is not None
        assert known.end is event
    known = ledger.get(CALL)
    assert known is not None
    assert known.completion is not None
    assert known.completion.content_json is ONE
    assert known.completion.media is ends[0].media


def test_a_seal_and_the_events_that_precede_a_completion_may_arrive_in_any_order() -> None:
    ledgers = [Ledger().apply(*order) for order in permutations((*LIFE[:3], SEAL))]
    assert all(ledger == ledgers[0] for ledger in ledgers)


@examples(300)
@given(logs)
def test_a_status_never_regresses_and_a_completion_never_changes(log: list[CallEvent | RequestSent]) -> None:
    ledger, before = Ledger(), dict[CallId, ToolCallRecord]()
    for event in log:
        ledger = ledger.apply(event)
        for item in ledger.interactions():
            old = before.get(item.call_id)
            if old is not None:
                assert RANK[item.status] >= RANK[old.status]
                assert old.completion is None or item.completion == old.completion
                assert old.sealed is None or item.sealed == old.sealed
                assert old.late is None or item.late == old.late
                assert item.duplicates[: len(old.duplicates)] == old.duplicates
            before[item.call_id] = item


@pytest.mark.requirement("REQ-915-009")
@pytest.mark.parametrize("kind", [Returned, Failed, Denied, Refused])
def test_the_first_of_two_real_completions_takes_effect(
    kind: type[Returned] | type[Failed] | type[Denied] | type[Refused],
) -> None:
    item = known(Returned(CALL, ONE), kind(CALL, TWO), kind(CALL, TWO))
    assert item.completion is not None
    assert item.completion.content == "one"
    assert len(item.duplicates) == 1
    reverse = known(kind(CALL, TWO), Returned(CALL, ONE))
    assert reverse.completion is not None
    assert (reverse.completion.content or reverse.completion.error) == "two"


@pytest.mark.requirement("PROMISE-2")
def test_the_earlier_of_a_completion_and_a_seal_takes_effect() -> None:
    sealed, completed = known(SEAL, Returned(CALL, ONE)), known(Returned(CALL, ONE), SEAL)
    assert sealed.completion is None
    assert sealed.late == ToolResult("c1", "one", is_complete=True)
    assert (sealed.status, sealed.reason) == ("cancelled", "cancelled")
    assert completed.sealed is None
    assert completed.late is None
    assert (completed.status, completed.reason) == ("complete", None)


@pytest.mark.requirement("REQ-915-048")
def test_status_and_reason_reflect_the_recorded_events() -> None:
    assert (known(LIFE[0]).status, known(LIFE[0]).reason) == ("pending", "running")
    assert (known(*LIFE[:2]).status, known(*LIFE[:2]).reason) == ("pending", "running")
    assert (known(*LIFE[:3]).status, known(*LIFE[:3]).reason) == ("cancelled", "interrupted")
    assert (
        known(Failed(CALL, ONE)).status
        == known(Denied(CALL)).status
        == known(Refused(CALL)).status
        == "error"
    )
    for reason in ("lost", "outcome_unknown"):
        ended = known(Cancelled(CALL, reason))
        assert (ended.status, ended.reason) == ("unknown", reason)
    assert known(Denied(CALL)).reason == "denied"
    assert known(Denied(CALL), Returned(CALL, ONE)).reason == "denied"
    assert known(Returned(CALL, ONE), Denied(CALL)).reason is None
    assert known(Failed(CALL, ONE)).reason is None
    assert known(Refused(CALL)).reason is None


def test_late_results_are_listed_in_order_of_arrival() -> None:
    ids = [CallId(name) for name in ("a", "b", "c")]
    seals = RequestSent(1, 1, Binding("b", "openai_chat"), 0, 1, tuple((call_id, "lost") for call_id in ids))
    ledger = Ledger().apply(seals)
    for call_id in ("c", "a", "c", "b"):
        ledger = ledger.apply(Returned(CallId(call_id), ONE))
    assert ledger.late == ("c", "a", "b")


@examples(200)
@given(logs)
def test_applying_events_leaves_the_older_ledger_unchanged(log: list[CallEvent | RequestSent]) -> None:
    ledger, versions = Ledger(), list[tuple[Ledger, list[ToolCallRecord]]]()
    for event in log:
        ledger = ledger.apply(event)
        versions.append((ledger, ledger.interactions()))
    for old, then in versions:
        assert old.interactions() == then
        assert [old.get(item.call_id) for item in then] == then


@examples(200)
@given(logs, logs)
def test_branches_of_a_ledger_are_independent(
    log: list[CallEvent | RequestSent], other: list[CallEvent | RequestSent]
) -> None:
    trunk = Ledger().apply(*LIFE[:2])
    left, right = trunk.apply(*log), trunk.apply(*other)
    assert left == Ledger().apply(*LIFE[:2], *log)
    assert right == Ledger().apply(*LIFE[:2], *other)
    assert trunk == Ledger().apply(*LIFE[:2])


@examples(200)
@given(logs)
def test_a_ledger_can_be_rebuilt_from_its_interactions(log: list[CallEvent | RequestSent]) -> None:
    ledger = Ledger().apply(*log)
    assert Ledger(ledger.interactions()) == ledger
    assert len(ledger) == len(ledger.interactions())
    assert all(item.call_id in ledger for item in ledger.interactions())
