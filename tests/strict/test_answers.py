"""The form of an answer and the settings of a request, as each host judges them."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.strict.rules import validate
from actors.strict.rules.base import Mode
from tests.commands.at_scale import share
from tests.strict.cases_answers import CASES, Case

IDS = [f"{case.dialect}-{case.rule}-{number}" for number, case in enumerate(CASES)]


def wire(value: Any) -> bytes:  # a body under test may be anything
    return json.dumps(value).encode()


@pytest.mark.requirement("REQ-915-005", "REQ-915-036")
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_a_host_does_not_take_is_refused_in_its_words(case: Case) -> None:
    refusal = validate(wire(case.refused), case.dialect, settings=case.settings)
    assert refusal is not None
    assert (refusal.rule, refusal.status) == (case.rule, 400)
    assert case.message in refusal.message
    hosted = validate(wire(case.refused), case.dialect, mode="hosted", settings=case.settings)
    assert (hosted is not None) == case.hosted


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_stands_next_to_the_fault_is_taken(case: Case) -> None:
    assert validate(wire(case.accepted), case.dialect, settings=case.settings) is None
    assert validate(wire(case.accepted), case.dialect, mode="hosted", settings=case.settings) is None


MODES: tuple[Mode, ...] = ("strict", "hosted")
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, "x", [], {}, True, [1], {"a": 1}, [{}], {"$ref": "#"}, {"$ref": 3}]
)


@settings(max_examples=share(2400), deadline=None)
@given(st.sampled_from(CASES), st.data())
def test_whatever_a_schema_holds_there_is_a_verdict_and_strict_is_the_stricter(
    case: Case, data: st.DataObject
) -> None:
    spoilt = copy.deepcopy(case.accepted)
    at: Any = spoilt
    while isinstance(at, dict | list) and at:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 4)) == 0:
            at[key] = data.draw(JUNK)
            break
        at = at[key]
    strict, hosted = (validate(wire(spoilt), case.dialect, mode=mode) for mode in MODES)
    assert strict is not None or hosted is None
