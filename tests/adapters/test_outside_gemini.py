"""Validate generateContent requests with the types of the vendor's SDK."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.genai import types
from pydantic import TypeAdapter, ValidationError

from actors.adapters.request import ToolSpec
from actors.core.data.jsonio import JsonValue, dump
from actors.core.values.content import Media, Thinking
from actors.testing.images import png
from actors.transcripts import dialect, from_wire
from tests.adapters import wanted
from tests.commands.at_scale import share
from tests.generated.histories import READERS, history

NAMES = ("gemini", "vertex", "gemini_2")
SCHEMA: JsonValue = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "mode": {"enum": ["r", "w"]},
        "lines": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
    },
    "required": ["path"],
    "additionalProperties": False,
}
READ = ToolSpec("read", "Read.", dump(SCHEMA))
CONTENTS = TypeAdapter(list[types.Content])
TOOL_LIST = TypeAdapter(list[types.Tool])


def bodies(name: str, count: int) -> Iterator[tuple[int, dict[str, Any]]]:  # Any: JSON
    for seed in range(count):
        yield seed, wanted.body(history, seed, dialect(name), READERS[name], tool=READ)


def validate_body(body: dict[str, Any]) -> list[types.Content]:  # Any: JSON
    """Validate a body with the vendor's types. Raises if the vendor's client could not have built it."""
    body = dict(body)
    config = {**body.pop("generationConfig", {}), "systemInstruction": body.pop("systemInstruction")}
    # the field also accepts functions and several other types
    TOOL_LIST.validate_python(body.pop("tools", []))
    config |= {"toolConfig": body.pop("toolConfig", None)}
    types.GenerateContentConfig.model_validate(config)
    contents = CONTENTS.validate_python(body.pop("contents"))
    assert body == {}
    return contents


@pytest.mark.requirement("PROMISE-1", "REQ-915-036")
@pytest.mark.parametrize("name", NAMES)
def test_every_request_body_validates_against_the_google_types(name: str) -> None:
    signed = calls = 0
    said = set[str]()
    for seed, body in bodies(name, share(600)):
        said |= body.get("generationConfig", {}).keys()
        try:
            contents = validate_body(body)
        except ValidationError as why:
            raise AssertionError(f"history({seed}): {why}") from why
        parts = [part for content in contents for part in content.parts or ()]
        signed += sum(part.thought_signature is not None for part in parts)
        calls += sum(part.function_call is not None for part in parts)
    assert calls > share(600)
    assert (signed > share(600)) == (name != "gemini_2")
    assert said >= {
        "responseSchema",
        "temperature",
        "topP",
        "stopSequences",
        "maxOutputTokens",
        "thinkingConfig",
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_google_types_reject_an_unknown_key(name: str) -> None:
    _, body = next(bodies(name, 1))
    for spoilt in (
        {**body, "contents": [{**body["contents"][0], "content": "x"}]},
        {**body, "generationConfig": {"max_tokens": 5}},
        {**body, "tools": [{"functionDeclarations": [{"name": "read", "parameters": {"oneOf": []}}]}]},
    ):
        with pytest.raises(ValidationError):
            validate_body(spoilt)


def test_message_objects_of_the_google_sdk_can_be_imported() -> None:
    said = types.Content(
        role="model",
        parts=[
            types.Part(
                function_call=types.FunctionCall(name="read", args={"n": 1}, id="a"), thought_signature=b"sig"
            )
        ],
    )
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=png()))
    response = types.FunctionResponse(name="read", response={"output": "ok"}, id="a")
    answer = {"role": "user", "parts": [types.Part(function_response=response), image]}
    messages, _ = from_wire([said, answer], "gemini")
    odd = messages.report.notes
    (made,) = [call for message in messages for call in message.calls]
    (given,) = [result for message in messages for result in message.results]
    assert (made.id, made.arguments, given.call_id, given.content) == (given.call_id, {"n": 1}, made.id, "ok")
    assert isinstance(messages[0].blocks[0], Thinking)
    assert messages[2].blocks == (Media.from_bytes(png(), "image/png"),)
    assert odd == ()
