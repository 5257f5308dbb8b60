"""Check the differences between Chat Completions vendors in requests and reasoning."""

import json
from random import Random
from typing import Any

import pytest

from actors import Message, Text, ToolCall, ToolResult
from actors.adapters.adapter import adapter
from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.adapters.request import Settings, ToolSpec
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, quote
from actors.core.data.persistent import Segments
from actors.core.data.record import replace
from actors.core.dialects.dialect import ChatTurns
from actors.core.dialects.profiles import MISTRAL as MISTRAL_PROFILE
from actors.core.dialects.profiles import OPENAI_CHAT
from actors.core.lanes.lane import Rendered
from actors.core.ledger import Ledger
from actors.core.values.content import Media, ProviderState, Thinking
from actors.core.values.identity import Binding
from actors.testing import validate
from actors.testing.images import png_base64
from actors.transcripts import History, check, dialect, encode, from_wire, render
from tests.adapters.wire_streams import (
    Fields,
    calls,
    chunk,
    cut_at_random,
    dump_json,
    fragment,
    openai_stream,
    run,
)
from tests.generated.histories import READERS

KIMI, DEEPSEEK, MISTRAL, ROUTER = (READERS[name] for name in ("kimi", "deepseek", "mistral", "openrouter"))
TOOL = ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{"p":{}}}'))
GO = Message("user", [Text("go")])


def wire_message(
    name: str, *blocks: Any, reader: Binding | None = None
) -> dict[str, Any]:  # Any: any block; JSON
    """Return the wire message of these model blocks after a user message."""
    results = [ToolResult(block.id, "ok") for block in blocks if isinstance(block, ToolCall)]
    tail = [Message("tool", results)] if results else [GO]
    history = [GO, Message("assistant", blocks, origin=reader), *tail]
    body = encode(render(History(history), Ledger(), dialect(name), binding=reader), model="m")
    message: dict[str, Any] = json.loads(body)["messages"][1]  # Any: JSON
    return message


def decode_answer(binding: Binding, stream: bytes) -> Message:
    """Return the message of a valid stream, checked at every cut."""
    profile = dialect(binding.dialect)
    _, whole = run(decode(profile, binding), [stream])
    assert isinstance(whole, Message), whole
    for seed in range(20):
        assert run(decode(profile, binding), list(cut_at_random(stream, Random(seed))))[1] == whole
    assert run(decode(profile, binding), [bytes([byte]) for byte in stream])[1] == whole
    return whole


def replay_message(message: Message, reader: Binding) -> dict[str, Any]:  # Any: JSON
    """Return a native model message as it is sent back."""
    return wire_message(reader.dialect, *message.blocks, reader=reader)


# ---- reasoning


@pytest.mark.parametrize("reader", [KIMI, DEEPSEEK], ids=lambda binding: binding.dialect)
@pytest.mark.requirement("REQ-915-024")
def test_reasoning_content_is_sent_back_verbatim_to_its_model(reader: Binding) -> None:
    stream = openai_stream(
        chunk({"reasoning_content": 'Hm, "na\u00efve"\n'}),
        chunk({"reasoning_content": " \U0001f600"}),
        chunk({"content": "I look."}),
        calls(fragment(0, "functions.read:0", "read", "{}")),
        chunk({}, "tool_calls"),
    )
    message = replay_message(decode_answer(reader, stream), reader)
    assert message["reasoning_content"] == 'Hm, "na\u00efve"\n \U0001f600'
    assert message["content"] == "I look."


@pytest.mark.parametrize("name", ["kimi", "deepseek"])
@pytest.mark.parametrize(
    "thought",
    [
        (),
        (Thinking("hm"),),
        (Thinking("hm", ProviderState("signature", quote("s"), READERS["anthropic"])),),
        (Thinking("", ProviderState("reasoning_content", quote("reasoning_content"), KIMI)),),
    ],
    ids=["none", "unsealed", "a stranger's", "without words"],
)
def test_calls_without_reasoning_of_the_same_provider_get_placeholder_reasoning(
    name: str, thought: tuple[Thinking, ...]
) -> None:
    message = wire_message(name, *thought, ToolCall("c", "read"), reader=READERS[name])
    assert message["reasoning_content"] == dialect(name).reasoning.placeholder != ""
    without = wire_message(name, *thought, Text("no calls"), reader=READERS[name])
    required = dialect(name).reasoning.placeholder if name == "deepseek" else None
    assert without.get("reasoning_content") == required


def test_every_deepseek_message_has_reasoning_or_a_placeholder() -> None:
    """Case deepseek-reasoning-without-calls: DSK-05."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "read"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": "It says ok."},
        {"role": "user", "content": "go"},
    ]
    history, ledger = from_wire(messages, "deepseek")
    rendered = render(history, ledger, dialect("deepseek"))
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {}}}]
    body = json.loads(encode(rendered, model="deepseek-v4-pro", tools=tools))
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [bool(message["reasoning_content"]) for message in said] == [True] * 3


def test_minimax_reasoning_details_are_sent_back() -> None:
    details = quote('[{"type":"reasoning.text","text":"hm"}]')
    own = Thinking("hm", ProviderState("reasoning_details", details, READERS["minimax"]))
    message = wire_message("minimax", own, Text("t"), ToolCall("c", "read"), reader=READERS["minimax"])
    assert message["reasoning_details"] == [{"type": "reasoning.text", "text": "hm"}]


NOT_THEIRS = [
    name for name in READERS if dialect(name).family == "openai_chat" and name not in ("kimi", "deepseek")
]
OWN = Thinking("hm", ProviderState("reasoning_content", quote("reasoning_content"), KIMI))


@pytest.mark.requirement("REQ-915-023")
@pytest.mark.parametrize("name", NOT_THEIRS)
def test_reasoning_content_is_sent_to_no_other_dialect(name: str) -> None:
    message = wire_message(name, OWN, Text("t"), ToolCall("c", "read"), reader=READERS[name])
    assert message.keys() == {"role", "content", "tool_calls"}
    assert "hm" not in json.dumps(message)


def roles_of(rendered: Rendered) -> list[str]:
    return [message["role"] for message in json.loads(rendered.transcript)]


def test_a_model_message_with_only_reasoning_is_not_sent() -> None:
    for name in ("kimi", "deepseek"):
        own = Thinking("hm", ProviderState("reasoning_content", quote("reasoning_content"), READERS[name]))
        history = [GO, Message("assistant", [own], origin=READERS[name]), GO]
        rendered = render(History(history), Ledger(), dialect(name), binding=READERS[name])
        assert roles_of(rendered) == ["user", "user"]
        assert dict(rendered.report.losses)["thinking"] == 1


def test_reasoning_of_a_partial_answer_is_not_kept() -> None:
    decoder = decode(dialect("kimi"), KIMI)
    decoder.feed(openai_stream(chunk({"reasoning_content": "Hm"}), chunk({"content": "I"}), done=False))
    assert decoder.partial_message().blocks == (Text("I"),)


DETAILS: list[Fields] = [
    {
        "type": "reasoning.text",
        "text": "Let me \u2026",
        "signature": None,
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.text", "text": "see", "index": 0},
    {"type": "reasoning.text", "text": "", "signature": "c2ln/+==", "index": 0},
    {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "index": 1},
    {"type": "reasoning.summary", "summary": "So", "index": 2},
]
WHOLE = [
    {
        "type": "reasoning.text",
        "text": "Let me \u2026see",
        "signature": "c2ln/+==",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    DETAILS[3],
    DETAILS[4],
]


def routed_message(upstream: str | None, *, number: int = 0) -> Message:
    served = {"provider": upstream} if upstream else {}
    stream = openai_stream(
        *(chunk({"reasoning_details": [detail]}, **served) for detail in DETAILS),
        calls(fragment(0, f"call_{number}", "read", "{}")),
        chunk({}, "tool_calls"),
    )
    message = decode_answer(ROUTER, stream)
    (call,) = message.calls
    renamed = ToolCall(f"hist_tool_{number}", call.name, native=call.native, json=call.json)
    return Message("assistant", [*message.blocks[:-1], renamed], origin=ROUTER)


def test_reasoning_details_are_sent_back_in_order_on_their_message() -> None:
    message = routed_message("Anthropic")
    assert message.blocks[0] == Thinking(
        "Let me \u2026seeSo",
        ProviderState(
            "reasoning_details",
            quote(json.dumps(WHOLE, ensure_ascii=False, separators=(",", ":"))),
            _up("Anthropic"),
        ),
    )
    assert replay_message(message, ROUTER)["reasoning_details"] == WHOLE


def _up(upstream: str) -> Binding:
    return Binding(ROUTER.backend, ROUTER.dialect, ROUTER.endpoint, ROUTER.account, ROUTER.model, upstream)


def test_reasoning_details_of_a_body_are_sent_back_unchanged() -> None:
    message = {"role": "assistant", "content": "hi", "reasoning": "seen", "reasoning_details": WHOLE}
    decoder = decode(dialect("openrouter"), ROUTER, stream=False)
    decoder.feed(dump_json({"choices": [{"message": message, "finish_reason": "stop"}], "provider": "One"}))
    made = decoder.close()
    assert made.blocks[0].text == "seen"  # type: ignore[union-attr]  # it is a thinking block
    assert replay_message(made, ROUTER)["reasoning_details"] == WHOLE


@pytest.mark.parametrize(("first", "second"), [("One", "Two"), (None, "Two"), ("One", None)])
def test_reasoning_of_another_upstream_is_not_sent_back(first: str | None, second: str | None) -> None:
    turns = [
        routed_message(first, number=1),
        routed_message(second, number=2),
        routed_message(first, number=3),
    ]
    history = [GO]
    profile = dialect("openrouter")
    lane, sent = None, b""
    for message in turns:
        history += [message, Message("tool", [ToolResult(message.calls[0].id, "ok")])]
        rendered = render(History(history), Ledger(), profile, lane, binding=ROUTER)
        assert b"".join(rendered.lane._segments).startswith(sent)
        lane, sent = rendered.lane, b"".join(rendered.lane._segments)
    told = [message for message in json.loads(b"[%b]" % sent) if message["role"] == "assistant"]
    assert ["reasoning_details" in message for message in told] == [True, False, True]
    assert sent == b"".join(render(History(history), Ledger(), profile, binding=ROUTER).lane._segments)


def _pinned_binding(upstream: str, backend: str = "pinned") -> Binding:
    return replace(ROUTER, backend=backend, upstream=upstream)


def test_reasoning_from_a_pinned_upstream_is_sent_only_to_the_same_pinned_upstream() -> None:
    stream = openai_stream(
        chunk({"reasoning_details": WHOLE}, provider="One"),
        calls(fragment(0, "call_1", "read", "{}")),
        chunk({}, "tool_calls"),
    )
    message = decode_answer(_pinned_binding("one"), stream)
    for reader in (_pinned_binding("one"), _pinned_binding("one", "another")):
        assert replay_message(message, reader)["reasoning_details"] == WHOLE
    for reader in (ROUTER, _pinned_binding("two"), _pinned_binding("One")):
        assert "reasoning_details" not in replay_message(message, reader)


def test_an_upstream_is_sent_only_to_a_gateway() -> None:
    gateway, host = adapter(dialect("openrouter")), adapter(dialect("groq"))
    free, pinned = Settings(model="m"), Settings(model="m", upstream='on"e')
    told = gateway.request(Segments(), pinned)
    assert json.loads(told.body)["provider"] == {"order": ['on"e'], "allow_fallbacks": False}
    assert told.losses == ()
    for made in (gateway.request(Segments(), free), host.request(Segments(), pinned)):
        assert "provider" not in json.loads(made.body)
    assert host.request(Segments(), pinned).losses == ("upstream",)


CHUNKS = openai_stream(
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Let "}]}]}),
    chunk(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "me"}], "signature": "c2ln"}]}
    ),
    chunk({"content": [{"type": "text", "text": "I "}]}),
    chunk({"content": "look."}),
    calls(fragment(None, "abcDEF123", "read", "{}"), fragment(0, "abcDEF124", "run", '{"c":1}')),
    chunk({}, "tool_calls", usage={"prompt_tokens": 5, "completion_tokens": 2}),
)


def test_mistral_thinking_chunks_precede_the_text_chunks() -> None:
    message = decode_answer(MISTRAL, CHUNKS)
    told = replay_message(message, MISTRAL)
    assert told["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Let me"}], "signature": "c2ln"},
        {"type": "text", "text": "I look."},
    ]
    assert [call["id"] for call in told["tool_calls"]] == ["abcDEF123", "abcDEF124"]
    elsewhere = wire_message("mistral", *message.blocks, reader=READERS["groq"])
    assert elsewhere["content"] == "I look."


def test_complete_calls_and_usage_in_the_last_chunk_are_decoded() -> None:
    decoder = decode(dialect("mistral"), MISTRAL)
    decoder.feed(CHUNKS)
    assert [(call.name, call.arguments) for call in decoder.close().calls] == [
        ("read", {}),
        ("run", {"c": 1}),
    ]
    assert (decoder.usage.input_tokens, decoder.usage.output_tokens) == (5, 2)


def test_an_error_in_the_middle_of_a_gateways_stream_is_a_failure() -> None:
    raw = {"error": {"message": "Overloaded", "type": "overloaded_error"}}
    error = {"code": 502, "message": "Provider returned error", "metadata": {"raw": json.dumps(raw)}}
    decoder = decode(dialect("openrouter"), ROUTER)
    with pytest.raises(AnswerFault) as caught:
        decoder.feed(openai_stream(chunk({"content": "I"}), chunk({"content": ""}, "error", error=error)))
    assert (caught.value.failure.kind, caught.value.failure.status) == ("transient", 502)
    assert decoder.partial_message().text == "I"


# ---- shapes


@pytest.mark.parametrize(
    ("name", "content"),
    [("openai_chat", None), ("deepseek", None), ("glm", ""), ("vllm", ""), ("mistral", "-"), ("kimi", "-")],
)
def test_a_message_of_calls_without_text_has_the_content_that_the_vendor_expects(
    name: str, content: object
) -> None:
    assert wire_message(name, ToolCall("c", "read")).get("content", "-") == content


def test_mistral_gets_a_model_message_between_a_tool_result_and_a_user_message() -> None:
    history = [
        GO,
        Message("assistant", [ToolCall("c", "read")]),
        Message("tool", [ToolResult("c", "ok")]),
        GO,
    ]
    first = render(History(history), Ledger(), dialect("mistral"))
    roles = roles_of(first)
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    more = [*history, Message("assistant", [Text("so")]), GO]
    second = render(History(more), Ledger(), dialect("mistral"), first.lane)
    assert b"".join(second.lane._segments).startswith(b"".join(first.lane._segments))


def test_hosts_with_strict_chat_templates_get_alternating_roles() -> None:
    history = [Message("assistant", [Text("a")]), Message("assistant", [Text("b")]), GO, GO]
    for name in ("vllm", "llama_cpp", "ollama"):
        roles = roles_of(render(History(history), Ledger(), dialect(name)))
        assert roles == ["user", "assistant", "user", "assistant", "user", "assistant", "user"]


def test_ollama_gets_only_inline_images() -> None:
    by_url, by_value = (
        Media("image/png", url="https://a.example/i.png"),
        Media("image/png", data=png_base64()),
    )
    body = encode(
        render(History([Message("user", [by_url, by_value])]), Ledger(), dialect("ollama")), model="m"
    )
    kinds = [part["type"] for part in json.loads(body)["messages"][0]["content"]]
    assert kinds == ["text", "image_url"]


def test_a_tool_named_search_is_renamed_for_qwen() -> None:
    call = wire_message("qwen", ToolCall("c", "search"))["tool_calls"][0]["function"]
    rendered = render(History([GO]), Ledger(), dialect("qwen"))
    declared = json.loads(encode(rendered, model="m", tools=[{"name": "search"}, {"name": "search_web"}]))[
        "tools"
    ]
    assert call["name"] == declared[0]["function"]["name"] != "search"
    assert call["name"].startswith("search_")
    assert declared[1]["function"]["name"] == "search_web"


# ---- settings


def encode_settings(
    name: str, **settings: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:  # Any: any setting; JSON
    """Return the fields of a request other than its messages, and the lost settings."""
    codec = adapter(dialect(name))
    rendered = render(History([GO]), Ledger(), codec.dialect)
    request = codec.request(rendered._segments, Settings(model="m", **settings))
    assert check(request.body, codec.dialect) == []
    body = json.loads(request.body)
    return {
        key: value for key, value in body.items() if key not in ("model", "messages", "tools")
    }, request.losses


@pytest.mark.parametrize(
    ("name", "settings", "sent", "losses"),
    [
        ("openai_chat", {"max_tokens": 5}, {"max_completion_tokens": 5}, ()),
        ("mistral", {"max_tokens": 5}, {"max_tokens": 5}, ()),
        ("mistral", {"stream": True}, {"stream": True}, ()),
        ("kimi", {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}, ()),
        ("kimi", {"temperature": 0.5}, {}, ("temperature",)),
        ("deepseek", {"temperature": 0.5}, {"temperature": 0.5}, ()),
        ("openai_chat", {"tool_choice": "required"}, {"tool_choice": "required"}, ()),
        ("mistral", {"tool_choice": "required"}, {"tool_choice": "any"}, ()),
        ("kimi", {"tool_choice": "required"}, {}, ("tool_choice",)),
        ("kimi", {"tool_choice": "none"}, {"tool_choice": "none"}, ()),
        ("deepseek", {"tool_choice": "required"},
         {"tool_choice": "required", "thinking": {"type": "disabled"}}, ()),
        ("deepseek", {"tool_choice": "required", "thinking": "off"},
         {"tool_choice": "required", "thinking": {"type": "disabled"}}, ()),
        ("kimi", {"thinking": "adaptive"}, {"thinking": {"type": "enabled"}}, ()),
        ("glm", {"thinking": "off", "effort": "low"}, {"thinking": {"type": "disabled"}}, ("effort",)),
        ("minimax", {"thinking": "off"}, {"thinking": {"type": "disabled"}}, ()),
        ("deepseek", {"thinking": "manual", "thinking_tokens": 9}, {"thinking": {"type": "enabled"}},
         ("thinking_tokens",)),
        ("openai_chat", {"effort": "high"}, {"reasoning_effort": "high"}, ()),
        ("mistral", {"thinking": "off"}, {"reasoning_effort": "none"}, ()),
        ("mistral", {"thinking": "manual", "thinking_tokens": 9, "effort": "high"}, {"reasoning_effort": "high"},
         ("thinking_tokens",)),
        ("openrouter", {"effort": "high"}, {"reasoning": {"effort": "high"}}, ()),
        ("openrouter", {"thinking": "manual", "thinking_tokens": 9, "effort": "low"},
         {"reasoning": {"max_tokens": 9}}, ("effort",)),
        ("openrouter", {"thinking": "off"}, {"reasoning": {"enabled": False}}, ()),
        ("openrouter", {"thinking": "adaptive"}, {"reasoning": {"enabled": True}}, ()),
        ("qwen", {"thinking": "manual", "thinking_tokens": 9, "effort": "x"}, {},
         ("thinking", "thinking_tokens", "effort")),
        ("openrouter", {}, {}, ()),
    ],
)  # fmt: skip
def test_a_setting_is_encoded_for_the_vendor_or_reported_as_lost(
    name: str,
    settings: dict[str, Any],
    sent: dict[str, Any],
    losses: tuple[str, ...],  # Any: any setting; JSON
) -> None:
    assert encode_settings(name, **{"stream": False, "tools": (TOOL,), **settings}) == (sent, losses)


def test_kimi_tool_schemas_have_the_types_and_references_that_moonshot_accepts() -> None:
    schema = {
        "type": "object",
        "definitions": {"X": {"enum": ["a", "b"]}},
        "$defs": {"Y": {"type": "null"}},
        "properties": {
            "x": {"$ref": "#/definitions/X"},
            "any": {},
            "const": {"const": 1},
            "list": {"type": "array", "items": {"properties": {"y": True}}},
            "mixed": {"enum": ["a", 1]},
            "either": {"anyOf": [{"minLength": 1}, {"type": "null"}]},
            "said": {"type": "string", "description": "stays"},
        },
    }
    body = encode(
        render(History([GO]), Ledger(), dialect("kimi")),
        model="m",
        tools=[{"name": "read", "parameters": schema}],
    )
    parameters = json.loads(body)["tools"][0]["function"]["parameters"]
    properties = parameters["properties"]
    assert parameters["$defs"] == {"X": {"enum": ["a", "b"], "type": "string"}, "Y": {"type": "null"}}
    assert properties["x"] == {"$ref": "#/$defs/X"}
    assert properties["const"] == {"const": 1, "type": "integer"}
    assert properties["said"] == schema["properties"]["said"]  # type: ignore[index]  # it is an object
    assert len(properties["any"]["anyOf"]) == len(properties["mixed"]["anyOf"]) == 6
    assert properties["list"]["items"]["type"] == "object"


@pytest.mark.parametrize(
    ("inner", "sent", "losses"),
    [
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ()),
        ({"allOf": [{"$ref": "#/$defs/X"}], "default": 1}, {"anyOf": [{"$ref": "#/$defs/X"}], "default": 1}, ()),
        (
            {"type": "string", "allOf": [{"minLength": 1}, {"maxLength": 9}]},
            {"anyOf": [{"type": "string", "minLength": 1}, {"type": "string", "maxLength": 9}]},
            ("schema.allOf",),
        ),
        ({"type": "string", "oneOf": []}, {"type": "string"}, ()),
    ],
)  # fmt: skip
def test_a_union_in_a_kimi_tool_schema_has_no_type_of_its_own(
    inner: Fields, sent: Fields, losses: tuple[str, ...]
) -> None:
    schema = {"type": "object", "properties": {"p": inner}, "$defs": {"X": {"type": "integer"}}}
    kimi = dialect("kimi")
    rendered = render(History([GO]), Ledger(), kimi)
    settings = Settings(model="m", tools=(ToolSpec("read", "", ingest(schema).json),), stream=False)
    request = adapter(kimi).request(rendered._segments, settings, rendered._facts)
    body = json.loads(request.body)
    assert body["tools"][0]["function"]["parameters"]["properties"]["p"] == sent
    assert (request.losses, check(request.body, kimi)) == (losses, [])
    assert validate(request.body, "kimi", mode="strict") is None


# ---- importing


@pytest.mark.parametrize(
    ("name", "message", "blocks"),
    [
        ("kimi", {"content": "a", "reasoning_content": "hm"}, (Thinking("hm"), Text("a"))),
        ("vllm", {"content": "a", "reasoning": "hm"}, (Thinking("hm"), Text("a"))),
        ("openrouter", {"content": "a", "reasoning_details": WHOLE}, (Thinking("Let me \u2026seeSo"), Text("a"))),
        ("openrouter", {"content": "a", "reasoning_details": "odd"}, (Text("a"),)),
        ("mistral", {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                                 {"type": "text", "text": "a"}]}, (Thinking("hm"), Text("a"))),
        ("mistral", {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
         (Thinking("hm"), Text("a"))),
        ("mistral", {"content": [{"type": "thinking", "thinking": [1, None, {"text": 3}]}, {"type": "text"}, "a"]},
         (Text("a"),)),
    ],
)  # fmt: skip
def test_vendor_specific_reasoning_of_a_transcript_is_imported(
    name: str,
    message: dict[str, Any],
    blocks: tuple[Any, ...],  # Any: JSON; any block
) -> None:
    history, _ = from_wire([{"role": "assistant", **message}], name)
    assert history[0].blocks == blocks


def test_mistrals_content_chunks_are_imported() -> None:
    parts = [
        {"type": "image_url", "image_url": "https://a.example/i.png"},
        {"type": "document_url", "document_url": "https://a.example/d.pdf"},
        {"type": "reference", "reference_ids": [1]},
    ]
    history, _ = from_wire([{"role": "user", "content": parts}], "mistral")
    assert history[0].blocks[:2] == (
        Media("image/*", url="https://a.example/i.png"),
        Media("application/pdf", url="https://a.example/d.pdf"),
    )
    assert "reference" in history[0].text


def test_a_filler_model_message_separates_a_tool_result_from_the_final_filler_user_message() -> None:
    strict = replace(MISTRAL_PROFILE, turns=replace(MISTRAL_PROFILE.turns, last_roles=frozenset({"user"})))
    history = [GO, Message("assistant", [ToolCall("c", "read")]), Message("tool", [ToolResult("c", "ok")])]
    rendered = render(History(history), Ledger(), strict)
    assert rendered.report.faults == ()
    assert roles_of(rendered) == ["user", "assistant", "tool", "assistant", "user"]


def test_texts_are_joined_up_to_the_string_limit_of_the_dialect() -> None:
    short = replace(OPENAI_CHAT, turns=ChatTurns(max_string=1000))
    for size, joined in ((498, True), (500, False)):
        history = [Message("user", [Text("a" * size), Text("b" * size)])]
        rendered = render(History(history), Ledger(), short)
        assert rendered.report.faults == ()
        (message,) = json.loads(encode(rendered, model="m"))["messages"]
        assert isinstance(message["content"], str) == joined
    many = [Message("user", [Text("a" * 1047)] * 1000)]
    assert render(History(many), Ledger(), dialect("openai_chat")).report.faults == ()
