"""Check the encoding of generateContent requests: parts, signatures, settings and tool schemas."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.adapters.schemas.gemini import project_schema
from actors.core.data.jsonio import Json, dump, quote
from actors.core.data.persistent import Segments
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import GEMINI, GEMINI_2, VERTEX
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Media, Message, ProviderState, Text, Thinking, ToolCall, ToolResult
from actors.core.values.identity import Binding
from actors.testing import GeminiSettings, validate
from actors.transcripts import check, dialect, render
from tests.core.recorded import Answer, Called, Said, recording_family
from tests.core.session_log import examples
from tests.generated.histories import READERS

HOME = READERS["gemini"]
SENTINEL = "skip_thought_signature_validator"
CALL = Called("", "read", Json(b'{"p": 1}'))
RESULT = Answer("", quote('ok "quoted"'), name="read")
FAILED = Answer("a1", quote("boom"), failed=True, name="read")
U, GO = Message("user", [Text("u")]), Message("user", [Text("go")])


def sealed_thinking(signature: str, origin: Binding = HOME) -> Thinking:
    return Thinking("", ProviderState("thought_signature", quote(signature), origin))


def contents(*entries: Said) -> Any:  # Any: JSON
    return json.loads(b"[%b]" % recording_family(GEMINI, *entries))


def sent_body(messages: list[Message], binding: Binding = HOME) -> Any:  # Any: JSON
    rendered = render(History(messages), Ledger(), dialect(binding.dialect), binding=binding)
    assert rendered.report.faults == ()
    return json.loads(b"[" + b"".join(rendered._segments) + b"]")


def request(settings: Settings, profile: Dialect = GEMINI) -> tuple[Request, Any]:  # Any: JSON
    codec = adapter(profile)
    made = codec.request(Segments.of(recording_family(profile, ("user", (Text("u"),)))), settings)
    assert check(made.body, profile) == []
    assert validate(made.body, profile.name) is None
    return made, json.loads(made.body)


# ---- contents


def test_tool_results_precede_text_within_one_gemini_content() -> None:
    entries = (
        ("user", (Text("u"),)),
        ("assistant", (Text("t"), CALL)),
        ("user", (RESULT, FAILED)),
    )
    assert contents(*entries, ("user", (Text("go"),))) == [
        {"role": "user", "parts": [{"text": "u"}]},
        {"role": "model", "parts": [{"text": "t"}, {"functionCall": {"name": "read", "args": {"p": 1}}}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "read", "response": {"output": 'ok "quoted"'}}},
                {"functionResponse": {"id": "a1", "name": "read", "response": {"error": "boom"}}},
                {"text": "go"},
            ],
        },
    ]


def test_a_signature_is_written_on_the_next_part_or_an_empty_text() -> None:
    blank = Thinking("\n", ProviderState("signed_blank", quote("b"), HOME))
    blocks = (sealed_thinking("a"), Text("t"), blank, CALL, sealed_thinking("c"), sealed_thinking("d"))
    (content,) = contents(("assistant", blocks))
    assert content["parts"] == [
        {"text": "t", "thoughtSignature": "a"},
        {"text": "\n", "thoughtSignature": "b"},
        {"functionCall": {"name": "read", "args": {"p": 1}}},
        {"text": "", "thoughtSignature": "c"},
        {"text": "", "thoughtSignature": "d"},
    ]


def test_media_are_sent_inline() -> None:
    (content,) = contents(("user", (Media("image/png", data="aGk="),)))
    assert content["parts"] == [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]


# ---- signatures


def calls(*blocks: Any) -> list[Message]:  # Any: any block
    made = [block for block in blocks if isinstance(block, ToolCall)]
    return [Message("assistant", blocks), Message("tool", [ToolResult(call.id, "ok") for call in made])]


ONE, TWO = ToolCall("c1", "read"), ToolCall("c2", "run")
NATIVE = ProviderState("call_id", quote("n1"), HOME)


def signatures(content: Any) -> list[str | None]:  # Any: JSON
    return [part.get("thoughtSignature") for part in content["parts"]]


def test_only_the_first_of_parallel_gemini_calls_keeps_the_signature() -> None:
    _, step, _ = sent_body([U, *calls(Text("t"), sealed_thinking("bmF0"), ONE, TWO)])
    assert signatures(step) == [None, "bmF0", None]


@pytest.mark.parametrize(
    "origin",
    [
        READERS["anthropic"],
        READERS["vertex"],
        Binding("gemini", "gemini", HOME.endpoint, HOME.account, "gemini-other"),
        Binding("gemini", "gemini", HOME.endpoint, "account-2", HOME.model),
        Binding("gemini", "gemini", "https://relay.example", HOME.account, HOME.model),
    ],
)
def test_only_the_first_call_of_a_foreign_message_gets_the_placeholder_signature(origin: Binding) -> None:
    _, first, _, second, _ = sent_body(
        [U, *calls(Text("t"), sealed_thinking("Zm9y", origin), ONE, TWO), *calls(ToolCall("c3", "read"))]
    )
    assert signatures(first) == [None, SENTINEL, None]
    assert signatures(second) == [SENTINEL]


def test_the_signature_of_a_blank_text_is_not_written_on_the_next_call() -> None:
    blank = Thinking("", ProviderState("signed_blank", quote("YmxhbmY"), HOME))
    _, step, _ = sent_body([U, *calls(blank, ONE)])
    assert signatures(step) == ["YmxhbmY", SENTINEL]


def test_calls_of_gemini_and_of_other_providers_may_be_mixed() -> None:
    foreign = Message("assistant", [Thinking("words"), Text("other"), TWO], origin=READERS["openai_chat"])
    messages = [
        U,
        *calls(sealed_thinking("b25l"), ONE),
        foreign,
        Message("tool", [ToolResult("c2", "ok")]),
        GO,
    ]
    _, own, _, theirs, last = sent_body(messages)
    assert (signatures(own), signatures(theirs)) == (["b25l"], [None, SENTINEL])
    assert [list(part) for part in last["parts"]] == [["functionResponse"], ["text"]]


def test_thought_summaries_are_never_sent_back() -> None:
    assert "summary" not in json.dumps(
        sent_body([U, *calls(Thinking("summary"), sealed_thinking("b25l"), ONE), GO])
    )


def test_adjacent_model_texts_share_one_gemini_content_but_stay_separate_parts() -> None:
    said = [Message("assistant", [Text("a")]), Message("assistant", [sealed_thinking("b25l"), Text("b")])]
    _, content, _ = sent_body([U, *said, GO])
    assert content["parts"] == [{"text": "a"}, {"text": "b", "thoughtSignature": "b25l"}]


def test_no_placeholder_signature_is_sent_before_gemini_3() -> None:
    _, step, _ = sent_body([U, *calls(ONE, TWO)], READERS["gemini_2"])
    assert signatures(step) == [None, None]


# ---- ids


@pytest.mark.parametrize(
    ("reader", "origin", "kept"),
    [
        ("gemini", "gemini", True),
        ("gemini", "vertex", False),
        ("vertex", "vertex", False),
        ("vertex", "gemini", False),
        ("gemini_2", "gemini_2", True),
        ("gemini_2", "gemini", False),
    ],
)
def test_a_call_id_is_sent_back_only_to_the_gemini_api_that_created_it(
    reader: str, origin: str, kept: bool
) -> None:
    call = ToolCall("c1", "read", native=ProviderState("call_id", quote("n1"), READERS[origin]))
    _, step, answer = sent_body([U, *calls(call, TWO)], READERS[reader])
    made = [part["functionCall"].get("id") for part in step["parts"]]
    answered = [part["functionResponse"].get("id") for part in answer["parts"]]
    assert made == answered == (["n1", None] if kept else [None, None])


# ---- settings


def test_the_url_path_contains_the_model_and_the_streaming_method() -> None:
    assert request(Settings(model="gemini-3-pro"))[0].path == (
        "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
    )
    assert request(Settings(model="a/b", stream=False))[0].path == "/v1beta/models/a%2Fb:generateContent"
    assert request(Settings(model="m", stream=False), VERTEX)[0].path == "/models/m:generateContent"


def test_each_setting_is_encoded_in_its_gemini_field() -> None:
    tools = (ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{"p":{"type":"string"}}}')),)
    settings = Settings(
        model="m", system="s", tools=tools, tool_choice="required", max_tokens=7, temperature=0.5
    )
    made, body = request(settings)
    declared = body["tools"][0]["functionDeclarations"]
    assert declared == [
        {
            "name": "read",
            "description": "Read.",
            "parameters": {"type": "OBJECT", "properties": {"p": {"type": "STRING"}}},
        }
    ]
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    assert body["systemInstruction"] == {"parts": [{"text": "s"}]}
    assert body["generationConfig"] == {"maxOutputTokens": 7, "temperature": 0.5}
    assert made.losses == ()
    _, off = request(Settings(model="m", tools=tools, tool_choice="none"))
    assert off["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert "toolConfig" not in request(Settings(model="m", tools=tools))[1]


def test_a_profile_that_accepts_json_schema_gets_tool_schemas_unchanged() -> None:
    schema = b'{"type":"object","properties":{"p":{"const":1}},"additionalProperties":false}'
    settings = Settings(model="m", tools=(ToolSpec("read", "Read.", Json(schema)),))
    plain = replace(GEMINI, request=replace(GEMINI.request, schema_subset="json_schema"))
    made, body = request(settings, plain)
    assert body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == json.loads(schema)
    assert made.losses == ()
    assert request(settings)[0].losses == ("schema.additionalProperties", "schema.const")


@pytest.mark.parametrize(
    ("profile", "asked", "config", "losses"),
    [
        (GEMINI, {"thinking": "adaptive"}, {"includeThoughts": True}, ()),
        (GEMINI, {"effort": "high"}, {"thinkingLevel": "HIGH"}, ()),
        (GEMINI, {"thinking": "off"}, {"thinkingLevel": "LOW"}, ("thinking",)),
        (
            GEMINI,
            {"thinking": "manual", "thinking_tokens": 9, "effort": "low"},
            {"includeThoughts": True, "thinkingBudget": 9},
            ("effort",),
        ),
        (GEMINI_2, {"thinking": "off"}, {"thinkingBudget": 0}, ()),
        (GEMINI_2, {"effort": "high"}, None, ("effort",)),
        (GEMINI, {}, None, ()),
    ],
)
def test_thinking_is_requested_as_a_level_or_as_a_budget(
    profile: Dialect, asked: dict[str, Any], config: object, losses: tuple[str, ...]
) -> None:
    made, body = request(Settings(model="m", **asked), profile)
    assert body.get("generationConfig", {}).get("thinkingConfig") == config
    assert made.losses == losses


# ---- schemas


def subset(schema: object) -> tuple[Any, tuple[str, ...]]:  # Any: JSON
    made, lost = project_schema(dump({"type": "object", "properties": {"p": schema}}))  # type: ignore[dict-item]  # any JSON
    assert made is not None
    return json.loads(made)["properties"]["p"], lost


@pytest.mark.parametrize(
    ("schema", "made", "lost"),
    [
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}, ()),
        ({"type": "string", "format": "uri"}, {"type": "STRING"}, ("format",)),
        ({"type": ["integer", "null"]}, {"type": "INTEGER", "nullable": True}, ()),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"},
         {"type": "STRING", "description": "d", "nullable": True}, ()),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]},
         {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}, ("oneOf",)),
        ({"enum": ["a", "b", None]}, {"type": "STRING", "nullable": True, "enum": ["a", "b"], "format": "enum"}, ()),
        ({"enum": [1, 2]}, {"type": "INTEGER"}, ("enum",)),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"], "format": "enum"}, ()),
        ({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}, ()),
        ({"type": "array", "items": {"type": "number"}, "uniqueItems": True},
         {"type": "ARRAY", "items": {"type": "NUMBER"}}, ("uniqueItems",)),
        ({"allOf": [{"type": "object", "properties": {"a": {"type": "boolean"}}}], "required": ["a", "b"]},
         {"type": "OBJECT", "properties": {"a": {"type": "BOOLEAN"}}, "required": ["a"]}, ()),
        ({"minimum": 1, "exclusiveMaximum": 9, "type": "integer"}, {"type": "INTEGER", "minimum": 1},
         ("exclusiveMaximum",)),
        (True, {"type": "STRING"}, ()),
        ({"$ref": "https://x.example/schema"}, {"type": "OBJECT"}, ("$ref",)),
    ],
)  # fmt: skip
def test_a_schema_is_reduced_to_geminis_subset_and_the_omitted_keywords_are_reported(
    schema: object, made: object, lost: tuple[str, ...]
) -> None:
    assert subset(schema) == (made, lost)


def test_a_recursive_reference_in_a_schema_is_dropped() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
    made, lost = project_schema(dump({"$ref": "#/$defs/node", "$defs": {"node": node}}))  # type: ignore[dict-item]  # any JSON
    assert made is not None
    assert json.loads(made) == {
        "type": "OBJECT",
        "properties": {"next": {"type": "OBJECT"}, "n": {"type": "INTEGER"}},
    }
    assert lost == ("$ref",)


def test_a_tool_without_parameters_is_declared_without_a_schema() -> None:
    assert project_schema(Json(b'{"type":"object","properties":{}}')) == (None, ())


NAMES = st.sampled_from(["a", "b", "$ref", "not", "x-own"])
WORDS = (
    "type properties items anyOf oneOf allOf $ref enum const format required title nullable minimum maxItems default "
    "additionalProperties"
)
KEYWORDS = st.sampled_from(WORDS.split())
SCHEMAS = st.recursive(
    st.sampled_from([None, True, 1, "string", "object", "null", "array", "#", "#/properties/a", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYWORDS, inner, max_size=4)
        | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=20,
)


@examples(500)
@given(schema=SCHEMAS)
def test_every_encoded_schema_is_accepted(schema: object) -> None:
    spec = ToolSpec("read", "Read.", dump({"type": "object", "properties": {"p": schema}}))  # type: ignore[dict-item]  # any JSON
    made, _ = request(Settings(model="m", tools=(spec,)))
    assert validate(made.body, "gemini", settings=GeminiSettings()) is None
