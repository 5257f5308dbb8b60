"""Check the encoding of OpenAI Responses requests: item shapes, reasoning and settings."""

import json
from typing import Any

import pytest

from actors import Message, Text, ToolCall, ToolResult
from actors.adapters.adapter import adapter
from actors.adapters.request import Settings, ToolSpec
from actors.config.dialects import custom_dialect
from actors.core.data.jsonio import Json, dump, quote
from actors.core.dialects.profiles import OPENAI_RESPONSES
from actors.core.lanes.lane import Lane, Rendered
from actors.core.ledger import Ledger
from actors.core.values.content import Block, Media, ProviderState, Thinking
from actors.core.values.identity import Binding
from actors.testing import validate
from actors.transcripts import History, check, dialect, encode, render
from tests.commands.at_scale import share
from tests.core.recorded import Answer, Called, Said, recording_family
from tests.core.session_log import find_refusal, render_at_once
from tests.generated.histories import READERS, history

HERE = READERS["openai_responses"]
OTHER_MODEL = Binding("responses", "openai_responses", HERE.endpoint, HERE.account, "gpt-other")
OTHER_ACCOUNT = Binding("responses", "openai_responses", HERE.endpoint, "account-2", HERE.model)
OTHER_HOST = Binding("relay", "openai_responses", "https://relay.example/v1", HERE.account, HERE.model)
STRANGERS = [OTHER_MODEL, OTHER_ACCOUNT, OTHER_HOST, READERS["openai_chat"], READERS["anthropic"]]
CALL = Called("call_1", "read", Json(b'{"p": 1}'))
RESULT = Answer("call_1", quote('ok "quoted"'))
FAILED = Answer("call_1", quote("boom"), failed=True)
TOOL = ToolSpec("read", "Read.", Json(b'{"type":"object"}'))

Wire = dict[str, Any]  # Any: items as JSON


def item(number: int) -> str:
    return f'{{"type":"reasoning","id":"rs_{number}","summary":[],"encrypted_content":"gAAA{number}"}}'


def sent_item(number: int) -> Wire:
    """Return the item as it is sent back: without an id, since the next item has none (OAR-03)."""
    return {"type": "reasoning", "summary": [], "encrypted_content": f"gAAA{number}"}


def thinking(number: int = 1, origin: Binding = HERE) -> Thinking:
    return Thinking("", ProviderState("reasoning_item", quote(item(number)), origin))


def phase(word: str = "commentary", origin: Binding = HERE) -> Thinking:
    return Thinking("", ProviderState("phase", quote(word), origin))


def run(*entries: Said) -> list[Wire]:
    items: list[Wire] = json.loads(b"[%b]" % recording_family(OPENAI_RESPONSES, *entries))
    return items


def conversation_of(*blocks: Block, after: tuple[Message, ...] = ()) -> list[Message]:
    results = [ToolResult(block.id, "ok") for block in blocks if isinstance(block, ToolCall)]
    tail = [Message("tool", results)] if results else []
    return [Message("user", [Text("u")]), Message("assistant", blocks, origin=HERE), *tail, *after]


def items(messages: list[Message], binding: Binding | None = HERE, lane: Lane | None = None) -> list[Wire]:
    rendered = render(History(messages), Ledger(), OPENAI_RESPONSES, lane, binding=binding)
    assert find_refusal(rendered) is None
    found: list[Wire] = json.loads(encode(rendered, model="m"))["input"]
    return found


def kinds(found: list[Wire]) -> list[str]:
    return [part["type"] if part["type"] != "message" else part["role"] for part in found]


def test_a_message_is_encoded_as_consecutive_items() -> None:
    entries = (
        ("user", (Text("u"),)),
        ("assistant", (thinking(), Text("t"), CALL)),
        ("tool", (RESULT, FAILED)),
    )
    assert run(*entries) == [
        {"type": "message", "role": "user", "content": "u"},
        sent_item(1),
        {"type": "message", "role": "assistant", "content": "t"},
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"p": 1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": 'ok "quoted"'},
        {"type": "function_call_output", "call_id": "call_1", "output": "ERROR: boom"},
    ]


def test_a_user_message_with_several_texts_is_encoded_as_a_list_of_parts() -> None:
    image, linked = Media("image/png", data="aGk="), Media("image/*", url="https://x.example/a.png")
    document, there = (
        Media("application/pdf", data="aGk="),
        Media("application/pdf", url="https://x.example/d"),
    )
    (message,) = run(("user", (Text("see"), image, linked, document, there)))
    assert message["content"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
        {"type": "input_image", "detail": "auto", "image_url": "https://x.example/a.png"},
        {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,aGk="},
        {"type": "input_file", "file_url": "https://x.example/d"},
    ]


def test_text_precedes_calls_and_outputs_directly_follow_their_calls() -> None:
    call = ToolCall("c1", "read")
    found = items(conversation_of(call, Text("t"), ToolCall("c2", "read")))
    assert kinds(found) == ["user", "assistant", *["function_call"] * 2, *["function_call_output"] * 2]
    assert [part["call_id"] for part in found[2:4]] == [part["call_id"] for part in found[4:]]


def test_a_phase_label_stays_with_its_message_and_is_sent_to_no_other_provider() -> None:
    messages = conversation_of(thinking(), phase(), Text("t"), Text("u"))
    shown = [part.get("phase") for part in items([*messages, Message("user", [Text("go")])])]
    assert shown == [None, None, "commentary", None, None]
    for binding in (None, *STRANGERS[:3]):
        assert not any("phase" in part for part in items(messages, binding))


@pytest.mark.requirement("REQ-915-023", "REQ-915-024")
@pytest.mark.parametrize("binding", STRANGERS)
def test_reasoning_is_sent_only_to_the_account_and_model_that_produced_it(binding: Binding) -> None:
    messages = conversation_of(thinking(), ToolCall("c1", "read"))
    assert items(messages)[1] == sent_item(1)
    rendered = render_at_once(messages, Ledger(), binding)
    assert find_refusal(rendered) is None
    assert b"gAAA1" not in b"".join(rendered._segments)


def test_reasoning_of_another_provider_is_never_sent_as_a_reasoning_item() -> None:
    foreign = Thinking("hm", ProviderState("signature", quote("c2ln"), READERS["anthropic"]))
    strange = Thinking("hm", ProviderState("signature", quote("c2ln"), HERE))
    assert kinds(items(conversation_of(foreign, strange, Thinking("hm"), Text("t")))) == [
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    "blocks",
    [
        (thinking(),),
        (Text("t"), thinking()),
        (thinking(), Text(" ")),
        (thinking(), thinking(2), phase()),
        (phase(),),
    ],
)
def test_reasoning_without_a_following_item_is_omitted(blocks: tuple[Block, ...]) -> None:
    rendered = render(History(conversation_of(*blocks)), Ledger(), OPENAI_RESPONSES, binding=HERE)
    assert find_refusal(rendered) is None
    assert dict(rendered.report.losses)["thinking"] == sum(isinstance(block, Thinking) for block in blocks)


@pytest.mark.parametrize(
    "stored",
    [
        '{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA1"}',
        '{ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA1" }',
        '{"type":"reasoning","summary":[],"encrypted_content":"gAAA1"}',
        '{"type":"reasoning","summary":[],"encrypted_content":"gAAA1","id":"rs_1"}',
    ],
)
def test_a_reasoning_item_is_sent_without_its_id_in_whatever_form_it_is_stored(stored: str) -> None:
    kept = Thinking("", ProviderState("reasoning_item", quote(stored), HERE))
    assert items(conversation_of(kept, Text("t")))[1] == sent_item(1)


def test_text_that_looks_like_the_id_of_an_item_is_sent_unchanged() -> None:
    words = '{"type":"reasoning","id":"rs_1","summary":['
    stored = {**json.loads(item(1)), "summary": [{"type": "summary_text", "text": words}]}
    kept = Thinking("", ProviderState("reasoning_item", quote(dump(stored).decode()), HERE))
    assert items(conversation_of(kept, Text("t")))[1]["summary"] == stored["summary"]


def test_a_repeated_reasoning_item_is_sent_only_once() -> None:
    again = Message("assistant", [thinking(), Text("again")], origin=HERE)
    messages = conversation_of(thinking(), Text("t"), after=(again, Message("user", [Text("u")])))
    assert [part for part in items(messages) if part["type"] == "reasoning"] == [sent_item(1)]
    first: Rendered = render(History(messages), Ledger(), OPENAI_RESPONSES, binding=HERE)
    longer = [*messages, again, Message("user", [Text("v")])]
    second = render(History(longer), Ledger(), OPENAI_RESPONSES, first.lane, binding=HERE)
    assert find_refusal(second) is None
    assert b"".join(second._segments).count(b"gAAA1") == 1


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("reasoning_item", quote("{")),
        ("reasoning_item", quote("[]")),
        ("reasoning_item", quote("\ud800")),
        ("reasoning_item", Json(b"3")),
        ("reasoning_item", quote('{"type":"reasoning","id":"rs_1","summary":[]}')),
        ("reasoning_item", quote(item(1).replace("rs_1", "reasoning-1"))),
        ("reasoning_item", quote(item(1).replace("gAAA1", ""))),
        ("reasoning_item", quote(item(1).replace('"summary"', '"id":"rs_2","summary"'))),
        ("reasoning_item", quote('{"type":"message","role":"user","content":"x"}')),
        ("phase", quote("zzz")),
        ("phase", Json(b"3")),
    ],
)
def test_reasoning_with_state_of_another_api_is_omitted(kind: str, data: Json) -> None:
    odd = Thinking("", ProviderState(kind, data, HERE))
    assert items(conversation_of(odd, Text("t"))) == items(conversation_of(Text("t")))


def test_native_call_ids_are_sent_back_and_foreign_call_ids_are_replaced() -> None:
    own = ToolCall("c1", "read", native=ProviderState("call_id", quote("call_own"), HERE))
    foreign = ToolCall("c2", "read", native=ProviderState("call_id", quote("toolu_1"), READERS["anthropic"]))
    found = [part["call_id"] for part in items(conversation_of(own, foreign)) if "call_id" in part]
    assert found[0] == found[2] == "call_own"
    assert found[1] == found[3]
    assert found[1].startswith("call_")


# ---- the request


def encode_settings(**settings: Any) -> tuple[Wire, tuple[str, ...]]:  # Any: fields of Settings
    profile = settings.pop("profile", OPENAI_RESPONSES)
    lane = render(History([Message("user", [Text("u")])]), Ledger(), profile)
    request = adapter(profile).request(lane._segments, Settings(model="m", **settings))
    assert request.path == "/responses"
    assert check(request.body, profile) == []
    body: Wire = json.loads(request.body)
    return body, request.losses


def test_a_responses_request_is_stateless_and_asks_for_encrypted_reasoning() -> None:
    body, losses = encode_settings(stream=False)
    assert body == {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", "role": "user", "content": "u"}],
    }
    assert losses == ()


def test_settings_are_encoded_in_the_fields_of_the_api() -> None:
    body, losses = encode_settings(
        system="Be brief.",
        tools=(TOOL,),
        tool_choice="required",
        max_tokens=99,
        temperature=0.5,
        effort="high",
    )
    assert body["instructions"] == "Be brief."
    assert body["tools"] == [
        {
            "type": "function",
            "name": "read",
            "description": "Read.",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]
    assert (body["tool_choice"], body["max_output_tokens"], body["temperature"]) == ("required", 99, 0.5)
    assert body["reasoning"] == {"effort": "high"}
    assert body["stream"] is True
    assert losses == ()


@pytest.mark.parametrize(
    ("settings", "changes", "key", "value", "losses"),
    [
        ({"thinking": "off"}, {}, "reasoning", {"effort": "none"}, ()),
        ({"thinking": "adaptive"}, {}, "reasoning", None, ("thinking",)),
        (
            {"thinking": "manual", "thinking_tokens": 2048},
            {},
            "reasoning",
            None,
            ("thinking_tokens", "thinking"),
        ),
        ({"effort": "low"}, {"reasoning": {"switch": "none"}}, "reasoning", None, ("effort",)),
        ({"thinking": "off"}, {"reasoning": {"switch": "none"}}, "reasoning", None, ("thinking",)),
        ({"temperature": 1.0}, {"request": {"sampling": False}}, "temperature", None, ("temperature",)),
        ({}, {"reasoning": {"carrier": "none"}}, "include", None, ()),
        (
            {"tools": (TOOL,), "tool_choice": "required"},
            {"request": {"forced_choice": "no"}},
            "tool_choice",
            None,
            ("tool_choice",),
        ),
        (
            {"tools": (TOOL,), "tool_choice": "required", "thinking": "adaptive"},
            {"request": {"forced_choice": "not_when_thinking"}},
            "tool_choice",
            "required",
            ("thinking",),
        ),
        (
            {"tools": (TOOL,), "tool_choice": "none"},
            {"request": {"forced_choice": "no"}},
            "tool_choice",
            "none",
            (),
        ),
    ],
)
def test_unsupported_settings_are_omitted_and_reported(
    settings: Wire, changes: Wire, key: str, value: object, losses: tuple[str, ...]
) -> None:
    body, lost = encode_settings(
        **settings, profile=custom_dialect("house", {"base": "responses", **changes})
    )
    assert body.get(key) == value
    assert lost == losses


@pytest.mark.requirement("PROMISE-1")
def test_requests_for_generated_histories_contain_no_item_id() -> None:
    thoughts = 0
    for seed in range(share(3000)):
        messages, ledger = history(seed)
        rendered = render_at_once(messages, ledger, HERE)
        assert find_refusal(rendered) is None, seed
        for part in json.loads(b"[" + b"".join(rendered._segments) + b"]"):
            assert "id" not in part
            thoughts += part["type"] == "reasoning"
    assert thoughts


def test_the_dialect_alias_responses_is_the_openai_responses_profile() -> None:
    assert dialect("responses") is dialect("openai_responses") is OPENAI_RESPONSES


@pytest.mark.parametrize(("asked", "sent"), [(1, 16), (16, 16), (17, 17)])
def test_a_token_limit_below_the_minimum_of_the_host_is_raised_to_that_minimum(asked: int, sent: int) -> None:
    profile = dialect("openai_responses")
    rendered = render(History([Message("user", [Text("u")])]), Ledger(), profile)
    settings = Settings(model="m", max_tokens=asked)
    request = adapter(profile).request(rendered._segments, settings, rendered._facts)
    assert json.loads(request.body)["max_output_tokens"] == sent
    assert validate(request.body, "openai_responses", mode="strict") is None
