"""Check bodies with calls distorted by relays: repeated calls, missing names, placeholder ids."""

import json
from collections.abc import Callable, Sequence

import pytest

from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message
from tests.adapters import converse_wire as converse
from tests.adapters.wire_streams import dump_json, gemini_chunk, run

Call = tuple[object, object, object]
"""Id, name and arguments."""
A, B = {"a": 1}, {"b": [2, "{}"]}


def chat(calls: Sequence[Call]) -> object:
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for call_id, name, given in calls
    ]
    return {
        "choices": [
            {"index": "0", "message": {"content": "So.", "tool_calls": made}, "finish_reason": "tool_calls"}
        ]
    }


def anthropic(calls: Sequence[Call]) -> object:
    made = [
        {"type": "tool_use", "id": call_id, "name": name, "input": given} for call_id, name, given in calls
    ]
    return {"content": [{"type": "text", "text": "So."}, *made], "stop_reason": "tool_use"}


def responses(calls: Sequence[Call]) -> object:
    said = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "So."}]}
    made = [
        {
            "type": "function_call",
            "id": f"fc_{at}",
            "call_id": call_id,
            "name": name,
            "arguments": json.dumps(given),
        }
        for at, (call_id, name, given) in enumerate(calls)
    ]
    return {"status": "completed", "output": [said, *made]}


def gemini(calls: Sequence[Call]) -> object:
    made = [{"functionCall": {"id": call_id, "name": name, "args": given}} for call_id, name, given in calls]
    return gemini_chunk({"text": "So."}, *made, finish="STOP")


def bedrock(calls: Sequence[Call]) -> object:
    made = [
        {"toolUse": {"toolUseId": call_id, "name": name, "input": given}} for call_id, name, given in calls
    ]
    return converse.body({"text": "So."}, *made, reason="tool_use")


WIRES: dict[str, Callable[[Sequence[Call]], object]] = {
    "openai_chat": chat,
    "anthropic": anthropic,
    "openai_responses": responses,
    "gemini": gemini,
    "bedrock": bedrock,
}
wires = pytest.mark.parametrize("name", WIRES)


def read_answer(name: str, *calls: Call) -> tuple[Decoder, list[tuple[str, object]]]:
    decoder = decode(PROFILES[name], stream=False)
    _, message = run(decoder, [dump_json(WIRES[name](calls))])
    assert isinstance(message, Message), message
    assert message.text == "So."
    return decoder, [(call.name, call.arguments) for call in message.calls]


@wires
def test_a_call_repeated_in_a_body_counts_as_one_call(name: str) -> None:
    decoder, calls = read_answer(name, ("x", "f", A), ("y", "g", B), ("x", "f", A))
    assert calls == [("f", A), ("g", B)]
    assert (decoder.cut_reason, decoder.left_out) == (None, {"repeated_call": 1})


@wires
def test_calls_with_the_same_id_and_different_arguments_remain_separate(name: str) -> None:
    decoder, calls = read_answer(name, ("x", "f", A), ("x", "f", B), ("x", "g", B))
    assert calls == [("f", A), ("f", B), ("g", B)]
    assert (decoder.cut_reason, decoder.left_out) == (None, {})


@wires
@pytest.mark.parametrize("lost", ["", "null", None])
def test_a_call_without_a_name_makes_the_answer_incomplete(name: str, lost: object) -> None:
    decoder, calls = read_answer(name, ("x", "f", A), ("y", lost, B))
    assert calls == [("f", A)]
    assert (decoder.cut_reason, decoder.left_out) == ("fault", {"stray_arguments": 1})


@wires
@pytest.mark.parametrize("none", ["null", "None", " ", None])
def test_calls_without_ids_are_kept(name: str, none: object) -> None:
    decoder, calls = read_answer(name, (none, "f", A), (none, "f", A), (none, "g", B))
    assert calls == [("f", A), ("f", A), ("g", B)]
    assert all(call.native is None for call in decoder.close().calls)
    assert decoder.cut_reason is None
