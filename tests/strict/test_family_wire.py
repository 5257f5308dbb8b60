"""Check the wire form of each Chat Completions vendor: errors, reasoning, calls, usage, comments."""

import json
from dataclasses import replace
from typing import Any

import pytest

from actors.strict.compatible_server import CompatibleServer, KimiServer, MistralServer
from actors.strict.rules import COMPATIBLE_RULES
from actors.strict.rules.base import ServerRefusal
from actors.strict.wires.compatible import VENDOR_FORMATS, CompatibleWire, VendorFormat
from actors.testing import Call, CompatibleProfile, CompatibleSettings, Redacted, Say, Think, Turn, validate

Json = dict[str, Any]  # any JSON on the wire

REQUEST: Json = {"model": "m", "messages": [{"role": "user", "content": "u"}]}
TURN = Turn(
    Think("Two cities."), Say("Looking."), Call("weather", {"city": "Oslo"}), Call("weather"), fragment=4
)
SMALL = CompatibleSettings(CompatibleProfile(context_tokens=1))


def wire(vendor: str) -> CompatibleWire:
    return CompatibleWire("", vendor, VENDOR_FORMATS.get(vendor, VendorFormat()))


def events(vendor: str, turn: Turn = TURN, request: Json = REQUEST) -> list[Json]:
    lines = b"".join(wire(vendor).encode_events(turn, request, 0)).decode().split("\n\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    return [json.loads(item) for item in data[:-1]]


def deltas(vendor: str, turn: Turn = TURN) -> list[Json]:
    return [choice["delta"] for event in events(vendor, turn) for choice in event["choices"]]


def error_of(vendor: str, body: Json, **options: Any) -> Any:  # options of `validate`, and any JSON
    refusal = validate(json.dumps(body).encode(), vendor, **options)
    assert refusal is not None
    return json.loads(wire(vendor).encode_error(refusal, 0))


DANGLING: Json = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "reasoning_content": "t",
            "tool_calls": [
                {"id": "f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "user", "content": "u"},
    ],
}
MISSING = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
UNANSWERED = MISSING + "'tool_call_id'. The following tool_call_ids did not have response messages: f:0"
INVALID = "invalid_request_error"
WORDS = {"message": UNANSWERED, "type": INVALID}

BODIES: dict[str, Any] = {
    "kimi": {"error": WORDS},
    "deepseek": {
        "error": {
            "message": MISSING + "'tool_call_id'. (insufficient tool messages following tool_calls message)",
            "type": INVALID,
            "param": None,
            "code": INVALID,
        }
    },
    "xai": {"code": "Client specified an invalid argument", "error": UNANSWERED},
    "glm": {"error": {"code": "1214", "message": "messages 参数非法"}},
    "groq": {"error": {**WORDS, "param": "messages.[2].role", "code": None}},
    "vllm": {"object": "error", "message": UNANSWERED, "type": "BadRequestError", "param": None, "code": 400},
    "llama_cpp": {"error": {"code": 400, "message": UNANSWERED, "type": INVALID}},
    "ollama": {
        "error": {
            "message": "invalid tool call arguments",
            "type": INVALID,
            "param": "messages[1].tool_calls[0].function.arguments",
            "code": None,
        }
    },
}


@pytest.mark.parametrize("vendor", BODIES)
def test_a_rejection_has_the_error_body_of_its_vendor(vendor: str) -> None:
    body = json.loads(json.dumps(DANGLING))
    if vendor == "ollama":
        body["messages"][1]["tool_calls"][0]["function"]["arguments"] = "["
    said = error_of(vendor, body)
    assert said == BODIES[vendor]


def test_mistral_validation_errors_and_request_errors_have_different_bodies() -> None:
    said = error_of("mistral", {"model": "m", "messages": []})
    message = "Conversation must have at least one message"
    kind = {"type": "invalid_request_message_order", "param": None, "code": "3230", "raw_status_code": 400}
    assert said == {"object": "error", "message": message, **kind}
    detail = {"type": "extra_forbidden", "loc": ["body", "zzz"], "msg": "Extra inputs are not permitted"}
    assert error_of("mistral", {**REQUEST, "zzz": 1}) == {"detail": [{**detail, "input": 1}]}


def test_llama_cpp_reports_the_token_counts_of_an_overflow() -> None:
    error = error_of("llama_cpp", REQUEST, settings=SMALL)["error"]
    assert error["type"] == "exceed_context_size_error"
    assert (error["n_ctx"], error["n_prompt_tokens"] > 1) == (1, True)


def test_openrouter_wraps_errors_of_upstreams_but_not_its_own_errors() -> None:
    settings = CompatibleSettings(upstream_vendor="deepseek", upstream="DeepSeek")
    plain = replace(wire("openrouter"), settings=lambda: settings)
    refusal = validate(json.dumps(DANGLING).encode(), "openrouter", settings=settings)
    assert refusal is not None
    error = json.loads(plain.encode_error(refusal, 0))["error"]
    assert (error["code"], error["message"]) == (400, "Provider returned error")
    assert error["metadata"]["provider_name"] == "DeepSeek"
    assert json.loads(error["metadata"]["raw"]) == BODIES["deepseek"]
    own = error_of("openrouter", REQUEST, settings=SMALL)["error"]
    assert own["message"].startswith("This endpoint's maximum context length is 1 tokens.")
    assert "metadata" not in own


@pytest.mark.parametrize("vendor", COMPATIBLE_RULES)
@pytest.mark.parametrize("status", [400, 401, 402, 404, 413, 418, 429, 500, 503])
def test_every_failure_has_a_body_in_the_form_of_its_vendor(vendor: str, status: int) -> None:
    failure = wire(vendor).status_error(status)
    assert failure.status == status
    body = json.loads(wire(vendor).encode_error(failure, 0))
    assert failure.message in json.dumps(body, ensure_ascii=False)


@pytest.mark.parametrize("vendor", ["kimi", "deepseek", "xai", "qwen", "glm", "minimax", "llama_cpp"])
def test_most_vendors_send_reasoning_in_the_field_reasoning_content(vendor: str) -> None:
    assert "".join(delta.get("reasoning_content", "") for delta in deltas(vendor)) == "Two cities."
    message = json.loads(wire(vendor).encode_response(TURN, REQUEST, 0))["choices"][0]["message"]
    assert message["reasoning_content"] == "Two cities."


@pytest.mark.parametrize("vendor", ["groq", "vllm", "ollama"])
def test_some_vendors_send_reasoning_in_the_field_reasoning(vendor: str) -> None:
    assert "".join(delta.get("reasoning", "") for delta in deltas(vendor)) == "Two cities."
    message = json.loads(wire(vendor).encode_response(TURN, REQUEST, 0))["choices"][0]["message"]
    assert message["reasoning"] == "Two cities."


def test_mistral_sends_thinking_chunks_before_its_text() -> None:
    contents = [delta["content"] for delta in deltas("mistral") if "content" in delta]
    chunks = [content[0] for content in contents if isinstance(content, list)]
    assert "".join(chunk["thinking"][0]["text"] for chunk in chunks) == "Two cities."
    assert "".join(content for content in contents if isinstance(content, str)) == "Looking."
    message = json.loads(wire("mistral").encode_response(TURN, REQUEST, 0))["choices"][0]["message"]
    assert [part["type"] for part in message["content"]] == ["thinking", "text"]
    silent = json.loads(wire("mistral").encode_response(Turn(Call("f")), REQUEST, 0))["choices"][0]["message"]
    assert silent["content"] == ""


def test_mistral_sends_complete_calls_under_distinct_or_equal_indices() -> None:
    zero = Turn(*TURN.parts, index="zero")
    lazy = [call for delta in deltas("mistral", zero) for call in delta.get("tool_calls", ())]
    assert [call["index"] for call in lazy] == [0, 0]
    calls = [call for delta in deltas("mistral") for call in delta.get("tool_calls", ())]
    assert [call["index"] for call in calls] == [0, 1]
    assert [call["function"]["arguments"] for call in calls] == ['{"city":"Oslo"}', "{}"]
    assert len({call["id"] for call in calls}) == 2


def test_openrouter_reasoning_fragments_join_to_the_signed_text() -> None:
    turn = Turn(*TURN.parts, Redacted())
    details = [item for delta in deltas("openrouter", turn) for item in delta.get("reasoning_details", ())]
    assert "".join(item.get("text", "") for item in details) == "Two cities."
    assert [item["index"] for item in details if "signature" in item or "data" in item] == [0, 1]
    message = json.loads(wire("openrouter").encode_response(turn, REQUEST, 0))["choices"][0]["message"]
    assert message["reasoning"] == "Two cities."
    for kept in (details, message["reasoning_details"]):
        said = {"role": "assistant", "content": "a", "reasoning_details": kept}
        body: Json = {"model": "m", "messages": [*REQUEST["messages"], said, *REQUEST["messages"]]}
        assert validate(json.dumps(body).encode(), "openrouter") is None
        spoilt = {**said, "reasoning_details": kept[::-1]}
        body["messages"][1] = spoilt
        refusal = validate(json.dumps(body).encode(), "openrouter")
        assert refusal is not None
        assert refusal.rule == "ORT-04"


@pytest.mark.parametrize("vendor", COMPATIBLE_RULES)
def test_a_stream_reports_usage_once_and_at_the_position_that_its_vendor_uses(vendor: str) -> None:
    request = {**REQUEST, "stream": True, "stream_options": {"include_usage": True}}
    found = events(vendor, request=request)
    last = found[-1]
    places = {
        "mistral": lambda: last["usage"],
        "deepseek": lambda: last["usage"],
        "kimi": lambda: last["choices"][0]["usage"],
        "groq": lambda: last["x_groq"]["usage"],
    }
    usage = places.get(vendor, lambda: last["usage"])()
    assert usage["total_tokens"] == 18
    assert json.dumps(found).count('"total_tokens"') == 1
    assert bool(last["choices"]) == (vendor in places)


@pytest.mark.parametrize(
    ("vendor", "comment"), [("openrouter", b": OPENROUTER PROCESSING\n\n"), ("deepseek", b": keep-alive\n\n")]
)
def test_comments_in_a_stream_keep_the_connection_open(vendor: str, comment: bytes) -> None:
    sent = wire(vendor).encode_events(TURN, REQUEST, 0)
    assert sent[0] == comment
    assert sent.count(comment) == 2


def test_kimi_continues_numbering_after_compacted_ids() -> None:
    call = {"id": "functions.f:7", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    request = {"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}]}
    assert wire("kimi").call_id(TURN, request, 0, 0) == "functions.weather:8"
    assert wire("kimi").call_id(TURN, request, 0, 1) == "functions.weather:9"


def test_openrouter_ends_a_stream_with_an_error_chunk() -> None:
    event = wire("openrouter").encode_error_event(ServerRefusal("", 502, "", None, None, "Gone"), 0)
    chunk = json.loads(event.removeprefix(b"data: "))
    assert chunk["error"] == {"code": 502, "message": "Gone"}
    assert chunk["choices"][0]["finish_reason"] == "error"


def test_an_unknown_vendor_is_rejected_by_name() -> None:
    with pytest.raises(ValueError, match="vendor='mistrel' is unknown; use one of mistral, kimi"):
        CompatibleServer(vendor="mistrel")


def test_each_model_of_a_strict_server_has_its_own_profile() -> None:
    models = {"old": CompatibleProfile(generation=3)}
    assert MistralServer(settings=CompatibleSettings(models=models)).settings.models == models
    assert KimiServer(short_ids=True).vendor == "kimi"
