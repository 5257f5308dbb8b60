"""Check that encoders write each shape and repair nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

import actors.adapters
from actors import Message, Text, ToolCall, ToolResult
from actors.adapters.adapter import adapter
from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import Json, quote
from actors.core.data.persistent import Segments
from actors.core.ledger import Ledger
from actors.core.values.content import Media, ProviderState, Thinking
from actors.core.values.identity import Binding
from actors.errors import ConfigError, ProjectionFault
from actors.transcripts import History, check, dialect, encode, from_wire, render
from tests.core.recorded import Answer, Called, Said, recording_family
from tests.project.source import references

CLAUDE = Binding("claude", "anthropic", "https://x.example", "", "m")
CALL = Called("call_1", "read", Json(b'{"p": 1}'))
RESULT = Answer("call_1", quote('ok "quoted"'))
FAILED = Answer("call_1", quote("boom"), failed=True)


def _messages(name: str, *entries: Said) -> object:
    return json.loads(b"[%b]" % recording_family(dialect(name), *entries))


def test_openai_gets_one_tool_message_per_result_and_string_arguments() -> None:
    entries = (("user", (Text("u"),)), ("assistant", (Text("t"), CALL)), ("tool", (RESULT,)))
    assert _messages("openai", *entries) == [
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "content": "t",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"p": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": 'ok "quoted"'},
    ]


def test_openai_gets_null_content_in_call_messages_and_errors_as_marked_text() -> None:
    messages = _messages("openai", ("assistant", (CALL,)), ("tool", (FAILED,)))
    assert isinstance(messages, list)
    assert messages[0]["content"] is None
    assert messages[1]["content"] == "ERROR: boom"


def test_openai_gets_parts_for_several_texts_or_an_image() -> None:
    image = Media("image/png", data="aGk=")
    messages = _messages("openai", ("user", (Text("see"), image)))
    assert isinstance(messages, list)
    assert messages[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]


def test_anthropic_gets_text_in_the_message_of_the_results_and_a_flag_on_error_results() -> None:
    entries = (("assistant", (CALL,)), ("user", (FAILED,)), ("user", (Text("go"),)))
    assert _messages("anthropic", ("user", (Text("u"),)), *entries) == [
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "call_1", "name": "read", "input": {"p": 1}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "boom", "is_error": True},
                {"type": "text", "text": "go"},
            ],
        },
    ]


def test_anthropic_gets_sealed_thinking_unchanged() -> None:
    signed = Thinking("why", ProviderState("signature", quote("s/+="), CLAUDE))
    redacted = Thinking("", ProviderState("redacted", quote("opaque"), CLAUDE))
    messages = _messages("anthropic", ("assistant", (signed, redacted)))
    assert isinstance(messages, list)
    assert messages[0]["content"] == [
        {"type": "thinking", "thinking": "why", "signature": "s/+="},
        {"type": "redacted_thinking", "data": "opaque"},
    ]


@pytest.mark.parametrize(
    ("name", "choice", "sent"),
    [
        ("openai", "none", "none"),
        ("openai", "required", "required"),
        ("openai", "auto", None),
        ("anthropic", "none", {"type": "none"}),
        ("anthropic", "required", {"type": "any"}),
        ("anthropic", "auto", None),
    ],
)
def test_turning_tools_off_keeps_their_declarations_and_forbids_their_use(
    name: str, choice: str, sent: object
) -> None:
    settings = Settings(
        model="m",
        tools=(ToolSpec("read", "Read.", Json(b'{"type":"object"}')),),
        tool_choice=choice,  # type: ignore[arg-type]  # the parameter is one of the literals
        system="s",
        max_tokens=7,
        temperature=0.5,
    )
    codec = adapter(dialect(name))
    request = codec.request(Segments.of(recording_family(dialect(name), ("user", (Text("u"),)))), settings)
    body = json.loads(request.body)
    assert body.get("tool_choice") == sent
    assert len(body["tools"]) == 1
    assert check(request.body, dialect(name)) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("max_tokens", value) for value in (0, -1, float("nan"), 1.0, True)),
        *(("thinking_tokens", value) for value in (0, -1, 1.5, True)),
        *(("temperature", value) for value in (-0.1, float("nan"), float("inf"), True)),
    ],
)
def test_invalid_numbers_in_settings_are_rejected(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"^{field} is {value!r}; it takes a .*, or None$"):
        Settings(model="m", **{field: value})  # type: ignore[arg-type]  # deliberately wrong
    with pytest.raises(ConfigError, match="max_tokens is 0"):
        encode(
            render(*from_wire([{"role": "user", "content": "u"}], "openai"), dialect("openai")),
            model="m",
            max_tokens=0,
        )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"tool_choice": "any"},
            "tool_choice is 'any'; it takes one of auto, none, required, ToolChoice('NAME'), or None",
        ),
        ({"thinking": "on"}, "thinking is 'on'; it takes one of default, adaptive, manual, off"),
        (
            {"effort": " "},
            "effort is ' '; it takes one of none, minimal, low, medium, high, xhigh, max, or the provider's own word, "
            "or None",
        ),
        (
            {"thinking_tokens": 9},
            "thinking_tokens is 9, but thinking is 'default'; set thinking='manual' to use a budget",
        ),
        (
            {"thinking": "off", "thinking_tokens": 9},
            "thinking_tokens is 9, but thinking is 'off'; set thinking='manual' to use a budget",
        ),
    ],
)
def test_contradictory_settings_are_rejected_with_a_one_line_error(
    fields: dict[str, Any],  # Any: deliberately wrong
    message: str,
) -> None:
    with pytest.raises(ConfigError) as refused:
        Settings(model="m", **fields)
    assert str(refused.value) == message


@pytest.mark.requirement("REQ-915-037", "REQ-915-036")
@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_an_adapter_encodes_an_invalid_transcript_unrepaired_and_the_checker_rejects_it(name: str) -> None:
    """A transcript with an unanswered call is encoded unchanged: validity is the renderer's responsibility."""
    codec = adapter(dialect(name))
    segment = recording_family(dialect(name), ("user", (Text("u"),)), ("assistant", (CALL,)))
    body = codec.request(Segments.of(segment), Settings(model="m")).body
    assert len(json.loads(body)["messages"]) == 2
    assert check(body, dialect(name)) != []


@pytest.mark.requirement("REQ-915-037")
def test_no_adapter_imports_the_ledger_or_the_renderer() -> None:
    paths = Path(actors.adapters.__file__).parent.rglob("*.py")
    known = {name for path in paths for _, name in references(path)}
    forbidden = (
        "actors.core.ledger",
        "actors.core.render",
        "actors.core.normalize",
        "actors.core.lanes.lane",
    )
    assert not [name for name in known if name.startswith(forbidden)]


@pytest.mark.requirement("U-07")
def test_anthropic_results_without_a_valid_call_id_are_reported() -> None:
    calls = [ToolCall(f"c{number}", "read", {"p": number}) for number in (1, 2, 3)]
    history = [
        Message("user", [Text("u")]),
        Message("assistant", calls),
        Message("tool", [ToolResult("c2", "two"), ToolResult("", "nameless"), ToolResult("c9", "stranger")]),
        Message("user", [Text("go")]),
    ]
    said = History(history)
    body = json.loads(encode(render(said, Ledger(), dialect("anthropic")), model="m"))
    answers = [block for block in body["messages"][2]["content"] if block["type"] == "tool_result"]
    asked = [block["id"] for block in body["messages"][1]["content"]]
    assert [block["tool_use_id"] for block in answers] == asked
    assert [finding.call_ids for finding in said.report.findings] == [("",), ("c9",)]
    texts = " ".join(block.get("text", "") for block in body["messages"][2]["content"])
    assert "nameless" in texts
    assert "stranger" in texts


@pytest.mark.requirement("U-07")
def test_an_imported_result_without_an_id_is_not_paired_by_guessing() -> None:
    wire = [
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "content": "nameless"}]},
    ]
    history, ledger = from_wire(wire, "anthropic")
    rendered = render(history, ledger, dialect("anthropic"))
    assert [reason for _, reason in rendered.report.synthetic] == ["lost"]
    assert [finding.code for finding in history.report.findings] == ["orphan_result"]


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_an_imported_image_keeps_its_url(name: str) -> None:
    wire = {
        "openai": [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}],
        "anthropic": [{"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}],
    }[name]
    history, ledger = from_wire([{"role": "user", "content": wire}], name)
    body = json.loads(encode(render(history, ledger, dialect(name)), model="m"))
    assert body["messages"][0]["content"] == wire


def test_declared_tools_have_the_same_names_as_their_calls_and_are_limited_in_number() -> None:
    history = [Message("user", [Text("u")]), Message("assistant", [ToolCall("c", "a.b")])]
    rendered = render(History(history), Ledger(), dialect("openai"))
    body = json.loads(encode(rendered, model="m", tools=[{"name": "a.b"}]))
    called = body["messages"][1]["tool_calls"][0]["function"]["name"]
    assert body["tools"][0]["function"]["name"] == called
    with pytest.raises(ProjectionFault, match="129"):
        encode(rendered, model="m", tools=[{"name": f"t{number}"} for number in range(129)])
