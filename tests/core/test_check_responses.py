"""Check the requests that the checker of OpenAI Responses accepts, and that it treats fragments and requests alike."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.check import check, check_fragment, finish_check, initial_state
from actors.core.dialects.profiles import OPENAI_RESPONSES
from tests.core.session_log import examples
from tests.core.test_check_fold import ANY_JSON, _places, _replaced
from tests.rules.responses import (
    CHOSEN,
    FILE,
    HI,
    IMAGE,
    NAMED,
    ROWS,
    THINKS,
    body,
    call,
    custom,
    custom_output,
    output,
    part,
    reasoning,
    say,
    tool,
)
from tests.rules.row import Json, encode_request

FULL = body(
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": [part(), IMAGE, FILE]},
    {"type": "compaction", "encrypted_content": "gAAA"},
    {**reasoning(), "content": [], "status": None},
    say([part("t", "output_text", annotations=[])], "assistant", phase="commentary"),
    reasoning("rs_2"),
    call(id="fc_1", arguments=' {"p":1}'),
    custom("c2"),
    custom_output("c2"),
    output(output=[part(), IMAGE, FILE]),
    say([{"type": "refusal", "refusal": "no"}], "assistant"),
    say(),
    instructions="s",
    include=["reasoning.encrypted_content"],
    tools=[tool(), {"type": "custom", "name": "sql"}, {"type": "web_search"}],
    tool_choice="none",
    stream=True,
)


OBSERVED = [
    {"model": "m", "input": "Weather in Oslo?", "store": False},
    {"model": "m", "input": [say(), output("c0")], "previous_response_id": "resp_1"},
    {
        "model": "m",
        "input": [say(), {"type": "reasoning", "id": "rs_1", "summary": []}, call(id="fc_1"), output()],
    },
    NAMED,
    THINKS,
    {**HI, "client_metadata": {"session": "s"}},
    body(say(internal_chat_message_metadata_passthrough={"a": 1}), {"type": "additional_tools", "tools": []}),
    body(say(), {"type": "compaction_trigger"}),
    body(say(), reasoning(), {"type": "web_search_call", "id": "ws_1", "status": "completed"}, say()),
    {
        **HI,
        "tools": [{"type": "namespace", "name": "n", "tools": [tool()]}, tool("n"), {"type": "tool_search"}],
    },
    {**HI, "tools": [{"type": "namespace", "name": "n", "tools": [tool()]}], "tool_choice": CHOSEN},
    body(say(), custom(), custom_output(), say("t", "assistant"), say()),
]
"""What clients were seen to send, and the host to take."""


@pytest.mark.parametrize("request_", OBSERVED)
def test_recorded_client_requests_are_accepted(request_: Json) -> None:
    assert [str(fault) for fault in check(encode_request(request_), OPENAI_RESPONSES)] == []


def test_a_complete_responses_request_is_accepted() -> None:
    assert [str(fault) for fault in check(encode_request(FULL), OPENAI_RESPONSES)] == []


@examples(500)
@given(data=st.data(), new=ANY_JSON)
def test_the_request_checker_reports_faults_of_any_json_without_an_exception(
    data: st.DataObject, new: object
) -> None:
    place = data.draw(st.sampled_from(_places(FULL)))
    for fault in check(json.dumps(_replaced(FULL, place, new)).encode(), OPENAI_RESPONSES):
        assert len(str(fault)) < 1000


def test_checking_response_items_in_pieces_or_at_once_gives_the_same_faults() -> None:
    rows = [row for row in ROWS if isinstance(row.broken, dict) and row.judged_by is OPENAI_RESPONSES]
    for row in rows:
        assert isinstance(row.broken, dict)
        if set(row.broken) != {"model", "store", "input"} or row.rule == "ALL-12":  # cannot be split
            continue
        for seed in range(5):
            state, faults = initial_state(OPENAI_RESPONSES), []
            waiting = [json.dumps(item) for item in row.broken["input"]]
            while waiting:
                size = Random(seed).randint(1, 3)
                text = ",".join(waiting[:size])
                waiting = waiting[size:]
                state, found = check_fragment(state, (f",{text}" if state.message_count else text).encode())
                faults += found
            faults += finish_check(state)
            whole = check(encode_request(row.broken), OPENAI_RESPONSES)
            assert {fault.rule for fault in faults} == {fault.rule for fault in whole}


def test_a_late_call_output_is_one_fault_and_does_not_affect_later_calls_and_outputs() -> None:
    request = body(
        say(),
        call(),
        say(),
        output(),
        call("c2"),
        output("c2"),
        call("c3"),
        call("c4"),
        output("c4"),
        output("c3"),
    )
    assert [(fault.rule, fault.call_ids) for fault in check(encode_request(request), OPENAI_RESPONSES)] == [
        ("OAR-14", ("call_a",))
    ]
