"""Check requests that providers rejected according to public reports (JSON in `tests/cases`)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import Json, dump
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History
from actors.core.values.content import Media, Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId
from actors.errors import ToolDefinitionError
from actors.testing import validate
from actors.tools import Tool
from actors.transcripts import check, encode, from_wire, render
from tests.session.test_settings import request_with

TESTS = Path(__file__).parent.parent
CASES = TESTS / "cases"
READ = ToolSpec("read", "", Json(b'{"type":"object"}'))
Case = dict[str, Any]  # Any: each case has its own shape


def case(name: str) -> Case:
    read: Case = json.loads((CASES / f"{name}.json").read_text())
    assert read["kind"] == "request"
    return read


def test_every_request_case_is_used_by_a_test() -> None:
    written = "".join(path.read_text() for path in sorted(TESTS.rglob("test_*.py")))
    assert [path.stem for path in sorted(CASES.glob("*.json")) if path.stem not in written] == []


def test_the_effort_setting_is_not_sent_with_tools_to_models_that_reject_the_combination() -> None:
    given = case("chat-effort-and-tools")
    made = [
        request_with(
            "openai_chat",
            Settings(model=each["model"], effort=each["effort"], tools=(READ,) if each["tools"] else ()),
        )
        for each in given["requests"]
    ]
    efforts = [json.loads(each.body).get("reasoning_effort") for each in made]
    assert {"reasoning_effort": efforts, "losses": [[*each.losses] for each in made]} == given["expected"]


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
def test_temperature_is_not_sent_to_models_that_reject_it(name: str) -> None:
    given = case("sampling-on-gpt-5")
    made = [request_with(name, Settings(**each)) for each in given["requests"]]
    assert {"temperature": [json.loads(each.body).get("temperature") for each in made]} == given["expected"]


def test_every_deepseek_model_message_has_reasoning_if_tools_are_declared() -> None:
    given = case("deepseek-reasoning-without-calls")
    history, ledger = from_wire(given["messages"], "deepseek")
    rendered = render(history, ledger, dialect("deepseek"))
    body = json.loads(encode(rendered, model="deepseek-v4-pro", tools=given["tools"]))
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [bool(message["reasoning_content"]) for message in said] == [True] * 3


def body_with(given: Case, name: str, model: str = "model") -> tuple[Case, tuple[str, ...]]:
    """Return the request body with the tools of a case, and its losses."""
    tools = tuple([ToolSpec(each["name"], "", dump(each["parameters"])) for each in given["tools"]])
    made = request_with(name, Settings(model=model, tools=tools))
    assert validate(made.body, name) is None
    return json.loads(made.body), made.losses


@pytest.mark.parametrize(
    ("name", "model"), [("anthropic", "claude-sonnet-5"), ("bedrock", "anthropic.claude-sonnet-5")]
)
def test_property_keys_that_a_host_rejects_are_renamed(name: str, model: str) -> None:
    given = case("property-keys")
    body, _ = body_with(given, name, model)
    if name == "anthropic":
        schema = body["tools"][0]["input_schema"]
    else:
        schema = body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]
    keys = [*schema["properties"]]
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in keys)
    assert (len({*keys}), "fine" in keys, schema["required"]) == (5, True, [keys[0]])


def test_an_invalid_property_raises_a_one_line_error_when_its_tool_is_declared() -> None:
    (given,) = case("property-that-is-a-word")["tools"]
    with pytest.raises(ToolDefinitionError, match=r"'properties.type' is \"object\", but must be a schema"):
        Tool.from_schema(given["name"], "", given["parameters"], print)


def test_patterns_with_lookarounds_are_not_sent_to_hosts_that_compile_schemas_to_grammars() -> None:
    given = case("grammar-lookaround")
    body, losses = body_with(given, "llama_cpp")
    assert not re.search(r"\(\?[!=<]", json.dumps(body))
    assert r"^\\d{4}-\\d{2}-\\d{2}$" in json.dumps(body)
    assert "schema.pattern" in losses


def rendered_body(name: str, given: Case) -> str:
    """Return the body of a request with a tool's result that holds a case's image."""
    call = ToolCall(CallId("c1"), "look")
    result = ToolResult(call.id, "seen", media=(Media(given["media_type"], data=given["data"]),))
    history = History(
        [Message("user", [Text("look")]), Message("assistant", [call]), Message("tool", [result])]
    )
    body = encode(render(history, history.ledger, dialect(name)), model="claude-sonnet-5")
    assert check(body, dialect(name)) == []
    return body.decode()


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "gemini", "openai_responses"])
def test_the_media_type_of_an_image_is_detected_from_its_bytes(name: str) -> None:
    (media,) = case("image-type-told-wrong")["result_media"]
    body = rendered_body(name, media)
    assert "jpeg" not in body
    assert "png" in body


@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
def test_an_image_with_too_many_pixels_is_replaced_by_a_note(name: str) -> None:
    given = case("image-of-too-many-pixels")
    (media,) = given["result_media"]
    wide = given["and"]
    assert media["data"] not in rendered_body(name, media)
    assert wide["data"] in rendered_body(name, wide)
