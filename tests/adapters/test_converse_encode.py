"""Check the encoding of Bedrock requests: blocks, tools, settings and the path."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.check import check
from actors.core.data.jsonio import Json, dump, quote
from actors.core.data.persistent import Segments
from actors.core.data.record import replace
from actors.core.dialects.profiles import BEDROCK
from actors.core.models.rules import Role
from actors.core.transcript.transcript import TranscriptFacts
from actors.core.values.content import Media, ProviderState, Text, Thinking
from tests.adapters.converse_wire import BEDROCK_BINDING
from tests.core.recorded import Answer, Called, Said, recording_family

Parsed = dict[str, Any]  # Any: parsed JSON

ADAPTER = adapter(BEDROCK)
SETTINGS = Settings(model="us.anthropic.claude-sonnet-5:0", cache="off")
READ = ToolSpec("read", "Read a file.", Json(b'{"type":"object"}'))
ROUND = (
    ("user", (Text("u"),)),
    ("assistant", (Text("t"), Called("tooluse_A", "read", Json(b'{"p" : 1}')))),
    ("user", (Answer("tooluse_A", quote("ok")),)),
    ("user", (Text("go"),)),
)


def sent_body(
    entries: Sequence[Said] = ROUND, settings: Settings = SETTINGS, called: frozenset[str] = frozenset()
) -> Request:
    return ADAPTER.request(
        Segments.of(recording_family(BEDROCK, *entries)), settings, TranscriptFacts(called)
    )


def parse_body(request: Request) -> Parsed:
    body: Parsed = json.loads(request.body)
    return body


def content(*blocks: Any) -> list[Parsed]:  # Any: blocks of a transcript
    held: list[Parsed] = parse_body(sent_body([("user", blocks)]))["messages"][0]["content"]
    return held


def test_each_bedrock_block_has_one_key_and_each_tool_result_has_a_status() -> None:
    failed = ("user", (Answer("tooluse_A", quote("boom"), True),))
    assert parse_body(sent_body())["messages"] == [
        {"role": "user", "content": [{"text": "u"}]},
        {
            "role": "assistant",
            "content": [
                {"text": "t"},
                {"toolUse": {"toolUseId": "tooluse_A", "name": "read", "input": {"p": 1}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "tooluse_A", "content": [{"text": "ok"}], "status": "success"}},
                {"text": "go"},
            ],
        },
    ]
    assert b'"status":"error"' in sent_body([*ROUND[:2], failed]).body


def test_call_arguments_are_sent_back_byte_for_byte() -> None:
    assert b'"input":{"p" : 1}' in sent_body().body


@pytest.mark.parametrize("blank", ["", " \n", "\u00a0"])
def test_an_empty_tool_result_is_sent_as_text_that_says_so(blank: str) -> None:
    (block,) = content(Answer("tooluse_A", quote(blank)))
    assert block["toolResult"]["content"] == [{"text": BEDROCK.turns.empty_result}]


def test_signed_and_redacted_reasoning_are_both_sent_back() -> None:
    sealed = Thinking("hm", ProviderState("signature", quote("sig"), BEDROCK_BINDING))
    hidden = Thinking("", ProviderState("redacted", quote("c2Vj"), BEDROCK_BINDING))
    assert content(sealed, hidden) == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
        {"reasoningContent": {"redactedContent": "c2Vj"}},
    ]


def test_a_document_is_sent_with_a_name_and_an_accompanying_text() -> None:
    image, caption, document = content(
        Media("image/png", "aGk="), (Media("application/pdf", "aGk="), "document-1f2e-2")
    )
    assert image == {"image": {"format": "png", "source": {"bytes": "aGk="}}}
    assert document["document"]["source"] == {"bytes": "aGk="}
    assert document["document"]["format"] == "pdf"
    assert document["document"]["name"] == "document-1f2e-2"
    assert caption == {"text": "Attached document: document-1f2e-2 (pdf)."}


def test_encoding_messages_one_by_one_gives_the_same_bytes_as_at_once() -> None:
    roles: list[Role | None] = [None, "user", "assistant", "user"]
    pieces = [
        recording_family(BEDROCK, said, last_role=role, closed=False)
        for said, role in zip(ROUND, roles, strict=True)
    ]
    assert b"".join(pieces) == recording_family(BEDROCK, *ROUND, closed=False)


@pytest.mark.parametrize(("stream", "action"), [(True, "converse-stream"), (False, "converse")])
def test_the_url_path_contains_the_model_and_the_method(stream: bool, action: str) -> None:
    request = sent_body(settings=replace(SETTINGS, stream=stream))
    assert request.path == f"/model/us.anthropic.claude-sonnet-5%3A0/{action}"
    assert not {"model", "stream"} & parse_body(request).keys()
    arn = replace(SETTINGS, model="arn:aws:bedrock:us-east-1::x/y", stream=stream)
    assert sent_body(settings=arn).path == f"/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A%3Ax%2Fy/{action}"


def test_tools_that_were_called_are_declared_even_when_tools_are_off() -> None:
    request = sent_body(called=frozenset({"write", "read"}))
    tools = [tool["toolSpec"] for tool in parse_body(request)["toolConfig"]["tools"]]
    assert [tool["name"] for tool in tools] == ["read", "write"]
    assert all(tool["inputSchema"] == {"json": {"type": "object", "properties": {}}} for tool in tools)
    assert request.losses == ("tool_choice",)
    assert check(request.body, BEDROCK) == []
    assert [fault.rule for fault in check(sent_body().body, BEDROCK)] == ["BED-03"]


def test_declared_tools_replace_the_declarations_derived_from_calls() -> None:
    request = sent_body(settings=replace(SETTINGS, tools=(READ,)), called=frozenset({"read", "ask"}))
    tools = [tool["toolSpec"] for tool in parse_body(request)["toolConfig"]["tools"]]
    assert tools == [
        {
            "name": "read",
            "description": "Read a file.",
            "inputSchema": {"json": {"type": "object", "properties": {}}},
        }
    ]
    assert request.losses == ()


@pytest.mark.parametrize(
    ("choice", "thinking", "said", "losses"),
    [
        ("auto", "default", None, ()),
        ("required", "default", {"any": {}}, ()),
        ("required", "adaptive", {"any": {}}, ("thinking",)),
        ("none", "default", None, ("tool_choice",)),
    ],
)
def test_a_tool_choice_is_encoded_as_far_as_the_model_supports_tool_choices(
    choice: Any, thinking: Any, said: object, losses: tuple[str, ...]
) -> None:
    request = sent_body(settings=replace(SETTINGS, tools=(READ,), tool_choice=choice, thinking=thinking))
    assert parse_body(request)["toolConfig"].get("toolChoice") == said
    assert request.losses == losses


def test_settings_are_encoded_in_the_fields_of_the_converse_api() -> None:
    body = parse_body(
        sent_body(
            settings=replace(
                SETTINGS,
                model="anthropic.claude-sonnet-4-5",
                system="Be brief.",
                max_tokens=9,
                temperature=0.5,
            )
        )
    )
    assert body["system"] == [{"text": "Be brief."}]
    assert body["inferenceConfig"] == {"maxTokens": 9, "temperature": 0.5}
    assert "system" not in parse_body(sent_body(settings=replace(SETTINGS, system=" ")))
    assert parse_body(sent_body()).keys() == {"messages"}


def test_thinking_is_requested_in_each_vendors_format() -> None:
    def asked(**more: Any) -> Any:  # Any: fields of Settings, and parsed JSON
        return parse_body(sent_body(settings=replace(SETTINGS, **more))).get("additionalModelRequestFields")

    assert asked(thinking="adaptive") == {"thinking": {"type": "adaptive"}}
    assert asked(thinking="off") == {"thinking": {"type": "disabled"}}
    manual = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    older = "anthropic.claude-sonnet-4-5"
    assert asked(thinking="manual", thinking_tokens=2048, model=older) == manual
    assert asked(thinking="manual", thinking_tokens=2048) == {"thinking": {"type": "adaptive"}}
    assert asked() is None
    hot = sent_body(settings=replace(SETTINGS, thinking="adaptive", temperature=0.5))
    assert hot.losses == ("temperature",)
    assert parse_body(sent_body(settings=replace(SETTINGS, effort="low")))["outputConfig"] == {
        "effort": "low"
    }


def test_an_output_schema_is_sent_as_json_text() -> None:
    schema = dump({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    settings = replace(SETTINGS, model="us.anthropic.claude-opus-4-6-v1", output=schema)
    form = parse_body(sent_body(settings=settings))["outputConfig"]["textFormat"]
    told = form["structure"]["jsonSchema"]
    assert form["type"] == "json_schema"
    assert told["name"] == "answer"
    assert json.loads(told["schema"]) == {**json.loads(schema), "additionalProperties": False}
    words = replace(settings, model="us.amazon.nova-pro-v1:0")
    assert "outputConfig" not in parse_body(sent_body(settings=words))


def test_thinking_is_not_requested_from_a_model_without_a_thinking_switch() -> None:
    plain = replace(BEDROCK, name="nova", reasoning=replace(BEDROCK.reasoning, switch="none"))
    settings = replace(SETTINGS, thinking="adaptive")
    request = adapter(plain).request(Segments(), settings)
    assert request.losses == ("thinking",)
    assert b"additionalModelRequestFields" not in request.body
