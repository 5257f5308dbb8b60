"""Check which stop reasons are failures, in every dialect, depending on the content of the answer."""

from collections.abc import Callable, Mapping

import pytest

from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message
from actors.errors import StreamFault
from tests.adapters import converse_wire as converse
from tests.adapters.wire_streams import (
    Fields,
    anthropic_stream,
    calls,
    chunk,
    delta,
    fragment,
    function_call,
    gemini_chunk,
    gemini_stream,
    item_added,
    item_done,
    openai_stream,
    responses_stream,
    run,
    start,
    stop,
)

NOTHING, THOUGHT, WORDS, BLANK, CALL = "nothing", "reasoning alone", "words", "a blank text", "a call"
TEXTS = {WORDS: "so far", BLANK: " \n"}


def chat(held: str, reason: str) -> bytes:
    said: Mapping[str, list[Fields]] = {
        NOTHING: [chunk({"role": "assistant", "content": ""})],
        THOUGHT: [chunk({"reasoning_content": "Hm."})],
        CALL: [calls(fragment(0, "call_A", "read", '{"p":1}'))],
    }
    return openai_stream(*said.get(held, [chunk({"content": TEXTS.get(held)})]), chunk({}, reason))


def anthropic(held: str, reason: str) -> bytes:
    said: Mapping[str, list[Fields]] = {
        NOTHING: [{"type": "message_start", "message": {}}],
        THOUGHT: [start(0, type="thinking", thinking="Hm.", signature="c2ln"), stop(0)],
        CALL: [start(0, type="tool_use", id="toolu_A", name="read", input={"p": 1}), stop(0)],
    }
    text = [start(0, type="text", text=""), delta(0, type="text_delta", text=TEXTS.get(held)), stop(0)]
    return anthropic_stream(
        *said.get(held, text), {"type": "message_delta", "delta": {"stop_reason": reason}}
    )


def responses(held: str, reason: str) -> bytes:
    parts = [{"type": "output_text", "text": TEXTS.get(held)}]
    said: Mapping[str, list[Fields]] = {
        NOTHING: [],
        THOUGHT: [
            item_added(0, type="reasoning", id="rs_1"),
            item_done(0, type="reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "Hm."}]),
        ],
        CALL: [item_done(0, **function_call("fc_1", "call_A", "read", '{"p":1}'))],
    }
    text: list[Fields] = [item_done(0, type="message", id="msg_1", role="assistant", content=parts)]
    end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    ended: Fields = {"type": "response.incomplete", "response": end}
    return responses_stream(*said.get(held, text), ended, done=False)


def gemini(held: str, reason: str) -> bytes:
    said: Mapping[str, Fields] = {
        THOUGHT: {"text": "Hm.", "thought": True},
        CALL: {"functionCall": {"name": "read", "args": {"p": 1}}},
    }
    parts = [] if held == NOTHING else [said.get(held, {"text": TEXTS.get(held)})]
    return gemini_stream(gemini_chunk(*parts), gemini_chunk(finish=reason))


def bedrock(held: str, reason: str) -> bytes:
    said: Mapping[str, list[bytes]] = {
        NOTHING: [],
        THOUGHT: [converse.reasoning_delta(0, text="Hm."), converse.stop(0)],
        CALL: [
            converse.begin(0, "tooluse_A", "read"),
            converse.delta(0, toolUse={"input": '{"p":1}'}),
            converse.stop(0),
        ],
    }
    text = [converse.delta(0, text=TEXTS.get(held)), converse.stop(0)]
    return b"".join(
        [converse.HEAD, *said.get(held, text), converse.message_stop(reason), converse.metadata()]
    )


REASONS: list[tuple[str, Callable[[str, str], bytes], str, str]] = [
    ("openai_chat", chat, "content_filter", "refusal"),
    ("glm", chat, "sensitive", "refusal"),
    ("mistral", chat, "model_length", "overflow"),
    ("anthropic", anthropic, "refusal", "refusal"),
    ("anthropic", anthropic, "model_context_window_exceeded", "overflow"),
    ("openai_responses", responses, "content_filter", "refusal"),
    ("gemini", gemini, "SAFETY", "refusal"),
    ("gemini", gemini, "IMAGE_SAFETY", "refusal"),
    ("gemini", gemini, "ESCALATION", "refusal"),
    ("gemini", gemini, "PUP_LIMITED_DISABLED", "refusal"),
    ("gemini", gemini, "OTHER", "transient"),
    ("gemini", gemini, "MALFORMED_FUNCTION_CALL", "model_fault"),
    ("vertex", gemini, "MODEL_ARMOR", "refusal"),
    ("bedrock", bedrock, "guardrail_intervened", "refusal"),
    ("bedrock", bedrock, "content_filtered", "refusal"),
    ("bedrock", bedrock, "model_context_window_exceeded", "overflow"),
    ("bedrock", bedrock, "malformed_tool_use", "model_fault"),
    ("bedrock", bedrock, "malformed_model_output", "model_fault"),
]


def decoded(name: str, stream: bytes) -> Message | StreamFault:
    return run(decode(PROFILES[name]), [stream])[1]


@pytest.mark.parametrize("held", [NOTHING, THOUGHT, BLANK])
@pytest.mark.parametrize(("name", "wire", "reason", "kind"), REASONS)
def test_an_empty_answer_fails_with_its_stop_reason(
    name: str, wire: Callable[[str, str], bytes], reason: str, kind: str, held: str
) -> None:
    fault = decoded(name, wire(held, reason))
    assert isinstance(fault, AnswerFault)
    assert (fault.failure.kind, fault.failure.code) == (kind, reason)


@pytest.mark.parametrize("held", [WORDS, CALL])
@pytest.mark.parametrize(("name", "wire", "reason", "kind"), REASONS)
def test_text_before_an_abnormal_stop_is_kept_unless_the_answer_has_an_unreadable_call(
    name: str, wire: Callable[[str, str], bytes], reason: str, kind: str, held: str
) -> None:
    message = decoded(name, wire(held, reason))
    if held == WORDS and kind == "model_fault":
        assert isinstance(message, AnswerFault)
    else:
        assert isinstance(message, Message)
        assert (message.text, len(message.calls)) == (("so far", 0) if held == WORDS else ("", 1))


@pytest.mark.parametrize("held", [NOTHING, THOUGHT, BLANK, WORDS, CALL])
def test_an_ordinary_stop_reason_is_never_classified_as_a_failure(held: str) -> None:
    for name, wire, reason in (
        ("openai_chat", chat, "length"),
        ("anthropic", anthropic, "max_tokens"),
        ("openai_responses", responses, "max_output_tokens"),
        ("gemini", gemini, "MAX_TOKENS"),
        ("bedrock", bedrock, "max_tokens"),
    ):
        assert isinstance(decoded(name, wire(held, reason)), Message)


def test_a_missing_signature_is_a_bug_of_this_library_even_if_the_answer_has_a_call() -> None:
    fault = decoded("gemini", gemini(CALL, "MISSING_THOUGHT_SIGNATURE"))
    assert isinstance(fault, AnswerFault)
    assert fault.failure.action == "our_bug"


WIRES = (
    ("openai_chat", chat),
    ("anthropic", anthropic),
    ("openai_responses", responses),
    ("gemini", gemini),
    ("bedrock", bedrock),
)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("a_new_reason", "unknown"),
        ("FINISH_REASON_UNSPECIFIED", "unknown"),
        ("CONTINUATION", "paused"),
        ("pause_turn", "paused"),
        ("abort", "fault"),
        ("Length", "length"),
        ("stop", None),
        ("TOOL_CALLS", None),
        ("toolUse", None),
        ("null", None),
        (" ", None),
    ],
)
def test_an_abnormal_stop_reason_makes_the_answer_incomplete(reason: str, kind: str | None) -> None:
    for name, wire in WIRES:
        decoder = decode(PROFILES[name])
        _, message = run(decoder, [wire(WORDS, reason)])
        if name == "gemini" and reason in ("null", " "):
            assert isinstance(message, AnswerFault)  # Gemini's stop reason is its only end marker
        elif name == "openai_responses" and kind is None:
            assert decoder.cut_reason in (None, "length")  # the status of a response decides
        else:
            assert isinstance(message, Message)
            assert (decoder.cut_reason, message.text) == (kind, "so far")


def test_a_normal_stop_reason_does_not_override_a_length_limit() -> None:
    said = chunk({"content": "x"})
    for reasons, cut in (
        (("length", "stop"), "length"),
        (("stop", "length"), "length"),
        (("stop", "stop"), None),
    ):
        decoder = decode(PROFILES["openai_chat"])
        run(decoder, [openai_stream(said, *(chunk({}, reason) for reason in reasons))])
        assert decoder.cut_reason == cut
