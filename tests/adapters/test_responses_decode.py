"""Check the decoding of OpenAI Responses answers, complete and incomplete."""

import json

import pytest

from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.dialects.profiles import OPENAI_RESPONSES
from actors.core.values.content import Message, Thinking
from actors.core.values.stream import ArgumentsDelta, CallDone, Finish, TextDelta, Usage
from tests.adapters.wire_streams import (
    REASONING,
    SUMMARY,
    Fields,
    answer,
    body_answer,
    function_call,
    item_added,
    item_delta,
    item_done,
    message_outline,
    responses_stream,
    run,
)

CALL = function_call("fc_1", "call_A", "read", '{"p":1}')


def words(text: str, item_id: str = "msg_1", **more: object) -> Fields:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": item_id, "role": "assistant", "content": content, **more}


def reasoning_item(**more: object) -> Fields:
    return {"type": "reasoning", "id": "rs_1", "summary": SUMMARY, "encrypted_content": "gAAA+/==é", **more}


def completed_event(status: str = "completed", **response: object) -> Fields:
    return {"type": f"response.{status}", "response": {"status": status, **response}}


def decode_stream(*events: Fields) -> Message:
    return answer(OPENAI_RESPONSES, responses_stream(*events, done=False))


def fault(*events: Fields, body: object = None) -> AnswerFault:
    if body is None:
        _, found = run(decode(OPENAI_RESPONSES), [responses_stream(*events, done=False)])
    else:
        with pytest.raises(AnswerFault) as raised:
            body_answer(OPENAI_RESPONSES, body)
        found = raised.value
    assert isinstance(found, AnswerFault)
    return found


def test_a_body_and_its_stream_give_the_same_answer() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 4,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
    }
    output = [reasoning_item(), words("Hi.", phase="final_answer"), CALL]
    events, message = body_answer(OPENAI_RESPONSES, {"status": "completed", "output": output, "usage": usage})
    assert message_outline(message) == (
        ("thinking", "Let me see…\n\nYes.", json.dumps(REASONING, ensure_ascii=False)),
        ("thinking", "", '"final_answer"'),
        ("text", "Hi."),
        ("call", "hist_tool_1", "read", '{"p":1}', '"call_A"'),
    )
    seals = [block.seal for block in message.blocks if isinstance(block, Thinking)]
    assert [seal and seal.kind for seal in seals] == ["reasoning_item", "phase"]
    assert Usage(9, 4, 3, 2) in events
    assert Finish("completed") in events
    whole = (item_done(at, **item) for at, item in enumerate(output))
    assert decode_stream(*whole, completed_event(usage=usage)) == message


def test_an_item_that_appears_only_in_its_end_event_is_decoded_completely() -> None:
    events, message = run(
        decode(OPENAI_RESPONSES), [responses_stream(item_done(0, **words("Hi.")), item_done(1, **CALL))]
    )
    assert isinstance(message, Message)
    assert [block[0] for block in message_outline(message)] == ["text", "call"]
    assert TextDelta("Hi.") in events
    assert CallDone(message.calls[0].id) in events


def test_a_stream_that_consists_of_only_the_last_event_is_decoded_completely() -> None:
    message = decode_stream(completed_event(output=[words("Hi."), CALL]))
    assert [block[0] for block in message_outline(message)] == ["text", "call"]


def test_the_output_in_the_last_event_does_not_duplicate_streamed_items() -> None:
    message = decode_stream(
        item_done(1, **words("Hi.")),
        item_done(2, **CALL),
        completed_event(output=[words("Hi.", "msg_9"), CALL]),
    )
    assert [block[0] for block in message_outline(message)] == ["text", "call"]


@pytest.mark.parametrize("named", ["fc_rewritten", ""])
def test_a_delta_of_an_unknown_item_is_assigned_by_index(named: str) -> None:
    message = decode_stream(
        item_added(0, **function_call("fc_1", "call_A", "read", "")),
        item_added(1, **function_call("fc_2", "call_B", "run", "")),
        item_delta("function_call_arguments", 0, named, '{"p":'),
        item_delta("function_call_arguments", 1, "fc_2", "{}"),
        item_delta("function_call_arguments", 0, named, "1}"),
        completed_event(),
    )
    assert [call.json for call in message.calls] == [b'{"p":1}', b"{}"]


def test_a_delta_without_ids_belongs_to_the_latest_item_of_its_kind() -> None:
    delta = {"type": "response.output_text.delta", "delta": "Hi"}
    assert decode_stream(delta, delta, completed_event()).text == "HiHi"


def test_the_arguments_in_the_end_event_of_an_item_take_precedence() -> None:
    message = decode_stream(
        item_added(0, **function_call("fc_1", "call_A", "read", "")),
        item_delta("function_call_arguments", 0, "fc_1", '{"p": 9'),
        item_done(0, **CALL),
        completed_event(),
    )
    assert message.calls[0].json == b'{"p":1}'


def test_final_arguments_complete_earlier_fragments() -> None:
    done = {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1"}
    events, message = run(
        decode(OPENAI_RESPONSES),
        [
            responses_stream(
                item_added(0, **function_call("fc_1", "call_A", "read", "")),
                item_delta("function_call_arguments", 0, "fc_1", '{"p"'),
                {**done, "arguments": '{"p":1}'},
            )
        ],
    )
    assert isinstance(message, Message)
    assert [event.text for event in events if isinstance(event, ArgumentsDelta)] == ['{"p"', ":1}"]


@pytest.mark.parametrize("state", [None, "", 3])
def test_reasoning_without_encrypted_content_is_only_text(state: object) -> None:
    message = decode_stream(
        item_done(0, **reasoning_item(encrypted_content=state)),
        item_done(1, **words("Hi.")),
        completed_event(),
    )
    assert message_outline(message)[0] == ("thinking", "Let me see…\n\nYes.", "")


@pytest.mark.parametrize("item_id", ["", "reasoning-1", "rs_é", "rs_" + "x" * 62])
def test_reasoning_with_an_invalid_id_is_kept_without_the_id(item_id: str) -> None:
    message = decode_stream(
        item_done(0, **reasoning_item(id=item_id)), item_done(1, **words("Hi.")), completed_event()
    )
    again = json.loads(json.loads(message_outline(message)[0][2]))
    assert again == {"type": "reasoning", "summary": SUMMARY, "encrypted_content": "gAAA+/==é"}


def test_encrypted_content_is_taken_only_from_the_end_event_of_its_item() -> None:
    stream = responses_stream(item_added(0, **reasoning_item(encrypted_content="part")), done=False)
    decoder = decode(OPENAI_RESPONSES)
    run(decoder, [stream])
    assert decoder.partial_message().blocks == ()


def test_decoded_reasoning_keeps_its_content_but_drops_unknown_fields() -> None:
    content = [{"type": "reasoning_text", "text": "raw"}]
    message = decode_stream(
        item_done(0, **reasoning_item(status=None, zzz=1, content=content)), completed_event()
    )
    again = json.loads(json.loads(message_outline(message)[0][2]))
    assert set(again) == {"type", "id", "summary", "content", "encrypted_content"}
    assert again["content"] == content


def test_reasoning_that_the_provider_removed_is_reported_unless_it_belongs_to_an_earlier_turn() -> None:
    reasons = ("prefix_mismatch", "turn_boundary", "model_mismatch")
    removed = [
        {"type": "reasoning", "action": "removed", "id": "rs_1", "reason": reason} for reason in reasons
    ]
    decoder = decode(OPENAI_RESPONSES)
    run(decoder, [responses_stream(completed_event(input_transformations=removed), done=False)])
    assert decoder.withheld == ("prefix_mismatch", "model_mismatch")
    run(
        expected := decode(OPENAI_RESPONSES),
        [responses_stream(completed_event(input_transformations=removed[1:2]), done=False)],
    )
    assert expected.withheld == ()


def test_a_refusal_is_read_as_model_text() -> None:
    parts = [{"type": "refusal", "refusal": "I cannot."}]
    assert (
        decode_stream(item_done(0, type="message", id="msg_1", content=parts), completed_event()).text
        == "I cannot."
    )


def test_the_input_of_a_custom_tool_is_kept_verbatim() -> None:
    item = {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "call_C",
        "name": "sql",
        "input": "select 1",
    }
    message = decode_stream(
        item_added(0, **{**item, "input": ""}),
        item_delta("custom_tool_call_input", 0, "ctc_1", "select"),
        item_done(0, **item),
        completed_event(),
    )
    assert (message.calls[0].text, message.calls[0].arguments) == ("select 1", {"input": "select 1"})
    assert not message.calls[0].is_malformed


def test_items_of_tools_that_the_provider_runs_keep_their_position() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    message = decode_stream(
        item_added(0, **search), item_done(0, **search), item_done(1, **words("Hi.")), completed_event()
    )
    assert message_outline(message) == (("native", "web_search_call", "part"), ("text", "Hi."))


@pytest.mark.parametrize(
    "between",
    [
        {"type": "brand_new_call", "id": "bn_1", "status": "completed"},
        words(""),
        function_call("fc_1", "call_A", "read", ' {"p":1}'),
        function_call("fc_1", "call_A", "read", ""),
        function_call("fc_1", "call_A", "no name", "{}"),
    ],
)
def test_reasoning_after_items_that_cannot_be_sent_back_loses_its_encrypted_content(between: Fields) -> None:
    items = (reasoning_item(), between, reasoning_item(id="rs_2"), words("Hi.", "msg_2", phase="commentary"))
    message = decode_stream(*(item_done(at, **item) for at, item in enumerate(items)), completed_event())
    seals = [block.seal and block.seal.kind for block in message.blocks if isinstance(block, Thinking)]
    assert seals == ["reasoning_item", None, "phase"]
    kept = (reasoning_item(), words("So."), reasoning_item(id="rs_2"), CALL)
    message = decode_stream(*(item_done(at, **item) for at, item in enumerate(kept)), completed_event())
    assert [block.seal is None for block in message.blocks if isinstance(block, Thinking)] == [False, False]


@pytest.mark.parametrize("cut", ["", '{"p":', "{}"])
def test_an_incomplete_response_keeps_finished_calls_and_drops_truncated_calls(cut: str) -> None:
    details = {"reason": "max_output_tokens"}
    half = function_call("fc_2", "call_B", "run", cut, "incomplete")
    begun = item_added(1, **function_call("fc_2", "call_B", "run", ""))
    for last in (item_done(1, **half), item_delta("function_call_arguments", 1, "fc_2", cut)):
        events, message = run(
            decode(OPENAI_RESPONSES),
            [
                responses_stream(
                    item_done(0, **CALL),
                    begun,
                    last,
                    completed_event("incomplete", incomplete_details=details),
                    done=False,
                )
            ],
        )
        assert isinstance(message, Message)
        assert [call.name for call in message.calls] == ["read"]
        assert Finish("max_output_tokens") in events
    body = {"status": "incomplete", "incomplete_details": details, "output": [words("Hi."), CALL, half]}
    assert [call.name for call in body_answer(OPENAI_RESPONSES, body)[1].calls] == ["read"]


@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_free_text_of_a_completed_item_is_kept_in_an_incomplete_response(status: str) -> None:
    named = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_B", "name": "patch"}
    item = item_done(0, **named, input="*** Begin", status=status)
    message = decode_stream(
        item, completed_event("incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert [call.raw for call in message.calls] == (["*** Begin"] if status == "completed" else [])


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", "transient"),
        ("rate_limit_exceeded", "rate_limit"),
        ("context_length_exceeded", "overflow"),
    ],
)
def test_an_error_inside_an_answer_is_classified_regardless_of_its_wrapping(code: str, kind: str) -> None:
    error = {"code": code, "message": "no"}
    failed = {"status": "failed", "error": error}
    for event in (
        {"type": "response.failed", "response": failed},
        {"type": "error", **error, "param": None},
        {"type": "error", "error": error},
        {"type": "error", "error": {**error, "type": code}, "sequence_number": 3},
    ):
        assert fault(event).failure.kind == kind
    assert fault(body={**failed, "output": []}).failure.kind == kind


@pytest.mark.parametrize("status", ["cancelled", "queued", "in_progress", "zzz"])
def test_an_unfinished_response_is_reported_as_a_fault(status: str) -> None:
    assert fault(body={"status": status, "output": []}).failure.action == "retry"


def test_a_stream_that_ends_with_only_done_is_reported_as_a_fault() -> None:
    stream = responses_stream(item_done(0, **words("Hi.")), done=False) + b"data: [DONE]\n\n"
    _, found = run(decode(OPENAI_RESPONSES), [stream])
    assert isinstance(found, AnswerFault)
    whole = responses_stream(item_done(0, **words("Hi."))) + b"data: [DONE]\n\n"
    assert answer(OPENAI_RESPONSES, whole).text == "Hi."


@pytest.mark.parametrize("body", [{}, {"object": "response"}, {"status": "completed", "output": None}])
def test_a_response_body_without_output_is_reported_as_a_fault(body: object) -> None:
    assert fault(body=body).failure.kind == "transient"


def test_an_end_event_without_a_name_keeps_the_name_and_namespace_of_the_start_event() -> None:
    call = {**function_call("fc_1", "call_A", "lookup", ""), "namespace": "crm"}
    done = {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1"}
    for name in ("lookup", ""):
        message = decode_stream(
            item_added(0, **call),
            {**done, "name": name, "arguments": '{"p":1}'},
            item_done(0, **function_call("fc_1", "call_A", name, '{"p":1}')),
            completed_event(),
        )
        assert [(each.name, each.arguments) for each in message.calls] == [("crm__lookup", {"p": 1})]


def test_an_item_that_occurs_only_in_the_last_event_is_placed_in_order() -> None:
    decoder = decode(OPENAI_RESPONSES)
    last = completed_event(output=[reasoning_item(), words("Hi."), CALL])
    _, message = run(decoder, [responses_stream(item_done(1, **words("Hi.")), last, done=False)])
    assert isinstance(message, Message)
    assert [block[0] for block in message_outline(message)] == ["thinking", "text", "call"]
    assert decoder.cut_reason is None
