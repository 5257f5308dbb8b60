"""Check that a call never gets the arguments of another call, or `{}` in place of its own."""

import json

import pytest

from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from actors.core.values.content import Message
from tests.adapters.wire_streams import (
    anthropic_stream,
    body_answer,
    calls,
    chunk,
    delta,
    fragment,
    function_call,
    gemini_chunk,
    gemini_stream,
    item_added,
    item_delta,
    item_done,
    openai_stream,
    responses_stream,
    run,
    start,
    stop,
)

ONE, TWO = {"path": "a"}, {"path": "b"}
A, B = json.dumps(ONE), json.dumps(TWO)
WRITE, READ = ("write", ONE), ("read", TWO)
FINISH = chunk({}, "tool_calls")
USED = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}


def read_calls(decoder: Decoder, stream: bytes) -> list[tuple[str, object]]:
    """Return the name and the arguments of each call."""
    _, message = run(decoder, [stream])
    assert isinstance(message, Message), message
    assert all(call.raw is None for call in message.calls)
    return [(call.name, call.arguments) for call in message.calls]


def chat(*chunks: object) -> bytes:
    return openai_stream(*chunks, FINISH)


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(
            chat(
                calls(fragment(0, "x1", "write"), fragment(1, "y1", "read")),
                calls(fragment(0, "x2", "write", A[:4]), fragment(1, "y2", "read", B[:4])),
                calls(fragment(0, "x3", "write", A[4:]), fragment(1, "y3", "read", B[4:])),
            ),
            id="a fresh id and the name on the fragments of two calls in turn",
        ),
        pytest.param(
            chat(
                calls(fragment(0, "x", None, A[:4]), fragment(1, "y", None, B[:4])),
                calls(fragment(0, None, None, A[4:]), fragment(1, None, None, B[4:])),
                calls(fragment(0, None, "write"), fragment(1, None, "read")),
            ),
            id="the names of two calls behind their arguments",
        ),
        pytest.param(
            chat(
                calls(fragment(0, "x", "write", A)),
                calls(fragment(0, "x", "write", "{}")),
                calls(fragment(1, "y", "read", B + "{}")),
            ),
            id="an empty object behind the arguments",
        ),
        pytest.param(
            chat(calls(fragment(0, "x", "write", "{ }" + A)), calls(fragment(1, "y", "read", "{\n}" + B))),
            id="an empty object with a blank in it before the arguments",
        ),
        pytest.param(
            chat(
                chunk({"tool_calls": {"id": "x", "function": {"name": "write", "arguments": A}}}),
                calls({"index": 1, "id": "y", "name": "read", "arguments": TWO}),
            ),
            id="a call alone, and one without its `function`",
        ),
        pytest.param(
            openai_stream(
                {
                    "choices": [
                        {
                            "message": {
                                "tool_calls": [
                                    fragment(None, "x", "write", A),
                                    fragment(None, "y", "read", B),
                                ]
                            },
                            "finish_reason": "tool_calls",
                        }
                    ]
                }
            ),
            id="a message instead of a delta",
        ),
        pytest.param(
            chat(
                calls(fragment(0, None, "write", A), fragment(1, None, "read", B)),
                {"choices": [{"message": {"tool_calls": [fragment(None, None, "write", A)]}}]},
            ),
            id="the message again at the end",
        ),
        pytest.param(
            chat(
                chunk(
                    {
                        "function_call": {"name": "write", "arguments": A},
                        "tool_calls": [fragment(0, "x", "write", A), fragment(1, "y", "read", B)],
                    }
                )
            ),
            id="`function_call` beside `tool_calls`",
        ),
    ],
)
def test_each_call_of_a_chat_stream_has_its_own_arguments(stream: bytes) -> None:
    decoder = decode(OPENAI_CHAT)
    assert read_calls(decoder, stream) == [WRITE, READ]
    assert decoder.cut_reason is None


def test_calls_are_dropped_if_argument_fragments_cannot_be_assigned_to_them() -> None:
    decoder = decode(OPENAI_CHAT)
    begun = calls(fragment(0, "x", "write"), fragment(1, "y", "read"))
    assert (
        read_calls(decoder, chat(begun, calls(fragment(2, "p", None, A)), calls(fragment(3, "q", None, B))))
        == []
    )
    assert decoder.cut_reason == "fault"


def test_a_call_without_arguments_is_dropped_if_another_call_has_non_object_arguments() -> None:
    decoder = decode(OPENAI_CHAT)
    begun = calls(fragment(0, "x", "write"), fragment(1, "y", "read"))
    _, message = run(decoder, [chat(begun, calls(fragment(1, None, None, A[:5] + B)))])
    assert isinstance(message, Message)
    assert [call.name for call in message.calls] == ["read"]
    assert decoder.cut_reason == "fault"


@pytest.mark.parametrize("given", [ONE, A])
def test_call_arguments_may_be_sent_as_a_string_or_an_object(given: object) -> None:
    piece = "function_call_arguments"
    item: dict[str, object] = {"type": "function_call", "id": "f", "call_id": "c", "name": "write"}
    tool = {"type": "tool_use", "id": "t", "name": "write", "input": given}
    streams: dict[str, tuple[Dialect, bytes]] = {
        "chat": (OPENAI_CHAT, chat(calls({"index": 0, "function": {"name": "write", "arguments": given}}))),
        "start": (ANTHROPIC, anthropic_stream(start(0, **tool), stop(0), USED)),
        "delta": (
            ANTHROPIC,
            anthropic_stream(
                start(0, **{**tool, "input": {}}),
                delta(0, type="input_json_delta", partial_json=given),
                stop(0),
                USED,
            ),
        ),
        "gemini": (
            GEMINI,
            gemini_stream(gemini_chunk({"functionCall": {"name": "write", "args": given}}, finish="STOP")),
        ),
        "added": (OPENAI_RESPONSES, responses_stream(item_added(0, **item, arguments=given))),
        "done": (OPENAI_RESPONSES, responses_stream(item_done(0, **item, arguments=given))),
        "piece": (
            OPENAI_RESPONSES,
            responses_stream(
                item_added(0, **item, arguments=""),
                {"type": f"response.{piece}.delta", "output_index": 0, "item_id": "f", "delta": given},
            ),
        ),
    }
    read_as = {name: read_calls(decode(profile), stream) for name, (profile, stream) in streams.items()}
    assert read_as == {name: [WRITE] for name in streams}


def test_an_empty_value_of_any_type_means_no_arguments() -> None:
    empty: tuple[object, ...] = ({}, [], "", None)
    for given in empty:
        body = gemini_chunk({"functionCall": {"name": "now", "args": given}}, finish="STOP")
        assert [call.arguments for call in body_answer(GEMINI, body)[1].calls] == [{}]


def test_an_empty_object_at_the_end_does_not_replace_streamed_arguments() -> None:
    stream = responses_stream(
        item_added(0, **function_call("f", "c", "write", "", "in_progress")),
        item_delta("function_call_arguments", 0, "f", A),
        item_done(0, **function_call("f", "c", "write", "{}")),
    )
    assert read_calls(decode(OPENAI_RESPONSES), stream) == [WRITE]


def test_arguments_streamed_before_their_item_belong_to_that_item() -> None:
    stream = responses_stream(
        item_delta("function_call_arguments", 0, "f", A[:4]),
        item_delta("function_call_arguments", 0, "f", A[4:]),
        item_done(0, **function_call("f", "c", "write", A)),
    )
    decoder = decode(OPENAI_RESPONSES)
    assert read_calls(decoder, stream) == [WRITE]
    assert decoder.cut_reason is None


@pytest.mark.parametrize(("ids", "call_ids"), [("ff", "cd"), ("fg", "cc"), ("ff", "cc")])
@pytest.mark.parametrize("repeats", [True, False])
def test_two_items_with_the_same_id_are_decoded_as_two_calls(ids: str, call_ids: str, repeats: bool) -> None:
    items = [
        function_call(ids[0], call_ids[0], "write", A),
        function_call(ids[1], call_ids[1], "read", B),
    ]
    events = []
    for at, (item, text) in enumerate(zip(items, (A, B), strict=True)):
        events += [
            item_added(at, **{**item, "arguments": ""}),
            item_delta("function_call_arguments", at, ids[at], text),
            item_done(at, **item),
        ]
    response = {"status": "completed", "output": items if repeats else []}
    ended = {"type": "response.completed", "response": response}
    assert read_calls(decode(OPENAI_RESPONSES), responses_stream(*events, ended, done=False)) == [WRITE, READ]


def test_a_call_that_occurs_only_in_the_message_start_event_is_kept() -> None:
    text, tool = (
        {"type": "text", "text": "So"},
        {"type": "tool_use", "id": "t", "name": "write", "input": ONE},
    )
    begun = {"type": "message_start", "message": {"content": [text, tool]}}
    said = [start(0, type="text", text=""), delta(0, type="text_delta", text="So"), stop(0)]
    again = [start(1, **{**tool, "input": {}}), delta(1, type="input_json_delta", partial_json=A), stop(1)]
    for events in (said, [*said, *again]):
        decoder = decode(ANTHROPIC)
        assert read_calls(decoder, anthropic_stream(begun, *events, USED)) == [WRITE]
        assert decoder.left_out == {}


@pytest.mark.parametrize("reason", ["pause_turn", "CONTINUATION"])
def test_an_unfinished_call_of_a_paused_answer_is_omitted(reason: str) -> None:
    begun = [start(0, type="tool_use", id="t", name="write", input={}), stop(0)]
    ended = {"type": "message_delta", "delta": {"stop_reason": reason}}
    decoder = decode(ANTHROPIC)
    assert read_calls(decoder, anthropic_stream(*begun, ended)) == []
    assert (decoder.cut_reason, decoder.left_out) == ("paused", {"cut_call": 1})


def test_a_gemini_part_may_contain_both_text_and_a_call() -> None:
    part = {"text": "So", "functionCall": {"name": "write", "args": ONE}}
    message = body_answer(GEMINI, gemini_chunk(part, finish="STOP"))[1]
    assert (message.text, [call.arguments for call in message.calls]) == ("So", [ONE])
