"""Check that an import reports unread keys, by adding one at every level of a transcript."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from actors.core.values.content import Text
from actors.transcripts import from_wire

Json = Any  # Any: JSON
PLANT = "planted"
URL = {"url": "data:image/png;base64,AAAA"}
DATA = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CUSTOM = {"id": "b", "type": "custom", "custom": {"name": "g", "input": "x"}}
BYTES = {"format": "png", "source": {"bytes": "AAAA"}}
SAID: dict[str, Json] = {
    "openai_chat": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "s"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "u"},
                    {"type": "image_url", "image_url": URL},
                    {"type": "document_url", "document_url": URL},
                    {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
                    {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}],
                "reasoning_details": [{"type": "reasoning.text", "text": "t"}],
                "tool_calls": [CALL, CUSTOM],
                "function_call": {"name": "h", "arguments": "{}"},
            },
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "r"}]},
            {"role": "tool", "tool_call_id": "b", "content": "r"},
            {"role": "function", "name": "h", "content": "r"},
            {"role": "assistant", "content": "t"},
        ]
    },
    "anthropic": {
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "u"},
                    {"type": "image", "source": DATA},
                    {"type": "image", "source": {"type": "url", "url": "https://x.test"}},
                    {"type": "document", "source": {"type": "text", "data": "x"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "redacted_thinking", "data": "s"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": "r"}, {"type": "image", "source": DATA}],
                    }
                ],
            },
        ],
    },
    "openai_responses": {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "u"},
                    {"type": "input_image", "image_url": "https://x.test"},
                    {"type": "input_file", "file_url": "https://x.test"},
                ],
            },
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "t"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "x"},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "r"}]},
            {"type": "custom_tool_call_output", "call_id": "b", "output": "r"},
            {"type": "item_reference", "id": "msg_1"},
        ]
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "u"},
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                    {"fileData": {"mimeType": "image/png", "fileUri": "https://x.test"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"thought": True, "text": "t"},
                    {"text": "t", "thoughtSignature": "c2ln"},
                    {"executableCode": {"language": "PYTHON", "code": "1"}},
                    {"codeExecutionResult": {"output": "1"}},
                    {"functionCall": {"id": "a", "name": "f", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "a",
                            "name": "f",
                            "response": {"output": "r"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
                        }
                    }
                ],
            },
        ],
    },
    "bedrock": {
        "system": [{"text": "s"}],
        "messages": [
            {
                "role": "user",
                "content": [{"text": "u"}, {"image": BYTES}, {"document": {**BYTES, "format": "pdf"}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}},
                    {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "r"}, {"image": BYTES}]}}],
            },
        ],
    },
}
# Arguments, results and unknown parts are kept as they are.
CARRIED = (".args", ".input", ".response")


def objects(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield each object of a body with its path, without list indices."""
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from objects(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner, f"{path}[]")


PLACES = [(name, at) for name, body in SAID.items() for at in range(sum(1 for _ in objects(body)))]


@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize(("name", "at"), PLACES)
def test_an_import_reports_every_key_that_it_ignores_at_any_position(name: str, at: int) -> None:
    body = json.loads(json.dumps(SAID[name]))
    path, target = list(objects(body))[at]
    clean, _ = from_wire(body, name)
    assert clean.report.left_out == ()
    target[PLANT] = {"deep": [PLANT]}
    history, _ = from_wire(body, name)
    named = dict(history.report.left_out)
    told = "".join(block.text for message in history for block in message.blocks if isinstance(block, Text))
    calls = [call.json.decode() for message in history for call in message.calls]
    answers = [result.rendered_json.decode() for message in history for result in message.results]
    if path.endswith(CARRIED) or (path and PLANT in "".join([told, *answers, *calls])):
        assert not named
        assert PLANT in "".join([told, *answers, *calls])
    else:
        assert named == {f"{path}.{PLANT}".removeprefix("."): 1}


@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("name", SAID)
def test_a_value_of_an_unexpected_type_is_reported(name: str) -> None:
    """A number in place of a string is never ignored silently."""
    for at in range(sum(1 for _ in objects(SAID[name]))):
        body = json.loads(json.dumps(SAID[name]))
        path, target = list(objects(body))[at]
        if "text" not in target or path.endswith(CARRIED):
            continue
        target["text"] = {"odd": 1}
        history, _ = from_wire(body, name)
        kept = "odd" in "".join(map(str, history)) + str(history.system)
        assert kept or [named for named, _ in history.report.left_out if named.endswith(".text")], path


@pytest.mark.requirement("PROMISE-13")
def test_reasoning_in_several_fields_is_imported_once_and_conflicts_are_reported() -> None:
    details = [{"type": "reasoning.text", "text": "Hm."}, {"type": "reasoning.encrypted", "data": "gAAA"}]
    said = {"role": "assistant", "content": "t", "reasoning": "Hm.", "reasoning_content": "Hm."}
    history, _ = from_wire([{**said, "reasoning_details": details}], "openai")
    sealed = (("messages[].reasoning_details[].type", 1), ("messages[].reasoning_details[].data", 1))
    assert (history.report.notes, history.report.left_out) == ((), sealed)
    history, _ = from_wire([{**said, "reasoning": "No."}], "openai")
    assert history.report.left_out == (("messages[].reasoning", 1),)
    other = [{"type": "reasoning.text", "text": "No."}]
    history, _ = from_wire([{**said, "reasoning_details": other}], "openai")
    assert len(history.report.notes) == 1


def test_ignored_keys_with_empty_values_are_not_reported() -> None:
    said: dict[str, Json] = {
        "role": "user",
        "content": "u",
        "name": None,
        "annotations": [],
        "audio": {},
        "x": "",
        "y": False,
    }
    history, _ = from_wire([said, {**said, "n": 0}], "openai")
    assert history.report.left_out == (("messages[].n", 1),)


@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("name", SAID)
def test_an_imported_message_without_content_is_counted(name: str) -> None:
    (container,) = [key for key in SAID[name] if key in ("messages", "input", "contents")]
    nothing: dict[str, Json] = {
        "role": "model" if name == "gemini" else "assistant",
        "content": [],
        "parts": [],
    }
    body = {**SAID[name], container: [*SAID[name][container], nothing, nothing]}
    history, _ = from_wire(body, name)
    assert history.report.left_out == ((f"{container}[] (empty)", 2),)


def test_ignored_keys_are_counted_and_their_report_is_bounded() -> None:
    marked = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}
    history, _ = from_wire([{"role": "user", "content": [marked, marked]}] * 3, "anthropic")
    assert history.report.left_out == (("messages[].content[].cache_control", 6),)
    history, _ = from_wire([{"role": "user", "content": "u", f"k{n}": 1} for n in range(500)], "openai")
    assert len(history.report.left_out) == 65
    assert history.report.left_out[-1] == ("other keys", 436)
