"""Check the decoding of generateContent answers: parts, signatures and faults."""

from collections.abc import Sequence

import pytest

from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.data.jsonio import quote
from actors.core.dialects.profiles import GEMINI
from actors.core.values.content import Message, ProviderState, Text, Thinking, ToolCall
from actors.core.values.stream import Finish, StreamEvent, ThinkingDelta, Usage
from tests.adapters.wire_streams import GOOGLE, Fields, dump_json, gemini_chunk, gemini_stream, run


def decode_stream(*chunks: object) -> tuple[list[StreamEvent], Message]:
    events, message = run(decode(GEMINI, GOOGLE), [gemini_stream(*chunks)])
    assert isinstance(message, Message), message
    return events, message


def fault(*chunks: object) -> AnswerFault:
    _, found = run(decode(GEMINI, GOOGLE), [gemini_stream(*chunks)])
    assert isinstance(found, AnswerFault), found
    return found


def decode_body(body: object) -> Message | AnswerFault:
    decoder = decode(GEMINI, GOOGLE, stream=False)
    decoder.feed(dump_json(body))
    try:
        return decoder.close()
    except AnswerFault as found:
        return found


def sealed_thinking(signature: str, text: str = "", kind: str = "thought_signature") -> Thinking:
    return Thinking(text, ProviderState(kind, quote(signature), GOOGLE))


def call(name: str = "read", **more: object) -> Fields:
    return {"functionCall": {"name": name, "args": {"p": 1}}, **more}


def test_a_truncated_signed_call_is_dropped_with_its_signature() -> None:
    signed = {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "cw=="}
    _, message = decode_stream(gemini_chunk({"text": "a"}), gemini_chunk(signed, finish="MAX_TOKENS"))
    assert message.blocks == (Text("a"),)
    _, message = decode_stream(gemini_chunk(signed, finish="STOP"))
    assert [type(block) for block in message.blocks] == [Thinking, ToolCall]
    decoder = decode(GEMINI, GOOGLE)
    run(decoder, [gemini_stream(gemini_chunk(signed))])  # cut after a complete call
    assert decoder.partial_message().blocks == message.blocks


BLANK = "signed_blank"


@pytest.mark.parametrize(
    ("parts", "blocks"),
    [
        ([{"text": "a"}, {"text": "b"}], [Text("ab")]),
        (
            [{"text": "a"}, {"text": "b", "thoughtSignature": "cw=="}],
            [Text("a"), sealed_thinking("cw=="), Text("b")],
        ),
        (
            [{"text": "a", "thoughtSignature": "cw=="}, {"text": "b"}],
            [sealed_thinking("cw=="), Text("a"), Text("b")],
        ),
        (
            [{"text": "a"}, {"text": "", "thoughtSignature": "cw=="}],
            [Text("a"), sealed_thinking("cw==", "", BLANK)],
        ),
        (
            [{"text": "\n", "thoughtSignature": "cw=="}, {"text": "b"}],
            [sealed_thinking("cw==", "\n", BLANK), Text("b")],
        ),
        ([{"text": "t", "thought": True}, {"text": "a"}], [Thinking("t"), Text("a")]),
        ([{"text": "t", "thought": True, "thoughtSignature": "cw=="}], [Thinking("t")]),
        ([{"thoughtSignature": "cw=="}], [sealed_thinking("cw==", "", BLANK)]),
    ],
)
@pytest.mark.parametrize("in_one_chunk", [True, False])
def test_a_signature_stays_with_its_own_part(
    parts: Sequence[Fields], blocks: Sequence[object], in_one_chunk: bool
) -> None:
    chunks = [gemini_chunk(*parts)] if in_one_chunk else [gemini_chunk(part) for part in parts]
    _, message = decode_stream(*chunks, gemini_chunk(finish="STOP"))
    assert list(message.blocks) == blocks
    assert decode_body(gemini_chunk(*parts, finish="STOP")) == message


def test_the_thinking_block_with_a_calls_signature_directly_precedes_the_call() -> None:
    _, message = decode_stream(
        gemini_chunk({"text": "t"}, call(thoughtSignature="cw=="), call("run"), finish="STOP")
    )
    made = [ToolCall(f"hist_tool_{number}", name, {"p": 1}) for number, name in ((1, "read"), (2, "run"))]
    assert list(message.blocks) == [Text("t"), sealed_thinking("cw=="), *made]


def test_missing_arguments_and_arguments_that_are_not_an_object_are_accepted() -> None:
    parts: list[Fields] = [
        {"functionCall": {"name": "read"}},
        {"functionCall": {"name": "read", "args": [1]}},
    ]
    _, message = decode_stream(gemini_chunk(*parts, finish="STOP"))
    assert [(made.json, made.raw) for made in message.calls] == [(b"{}", None), (b"{}", "[1]")]


@pytest.mark.parametrize(
    "given",
    [
        {"name": "read", "willContinue": True},
        {
            "partialArgs": [{"jsonPath": "$.p", "stringValue": "a", "willContinue": True}],
            "willContinue": True,
        },
        {"partialArgs": [{"jsonPath": "$.p", "stringValue": ""}]},
    ],
)
def test_a_partial_call_is_never_returned_as_a_call(given: Fields) -> None:
    found = fault(gemini_chunk(call(), {"functionCall": given}))
    assert (found.failure.kind, found.failure.action) == ("config", "next_backend")
    assert "in pieces" in found.failure.message


def test_token_counts_in_a_later_chunk_replace_earlier_counts() -> None:
    figures = {"promptTokenCount": 9, "toolUsePromptTokenCount": 1, "cachedContentTokenCount": 4}
    events, _ = decode_stream(
        gemini_chunk({"text": "a"}, usageMetadata=figures),
        gemini_chunk(
            finish="STOP", usageMetadata={**figures, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
        ),
    )
    assert [event for event in events if isinstance(event, Usage)] == [Usage(10, 0, 4, 0), Usage(10, 5, 4, 0)]
    assert events[-1] == Finish("STOP")


@pytest.mark.requirement("U-11")
def test_gemini_thoughts_are_decoded_as_thinking_blocks() -> None:
    events, _ = decode_stream(gemini_chunk({"text": "hm", "thought": True}, finish="STOP"))
    assert ThinkingDelta("hm") in events


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
def test_a_malformed_call_is_classified_as_a_model_error_and_is_not_stored(reason: str) -> None:
    empty = {"candidates": [{"finishReason": reason, "index": 0}]}
    assert (fault(empty).failure.kind, fault(empty).failure.action) == ("model_fault", "retry")
    assert fault(gemini_chunk({"text": "I call"}, finish=reason)).failure.code == reason
    assert isinstance(decode_body(empty), AnswerFault)


def test_a_missing_signature_reported_with_status_200_is_classified_as_a_bug_of_this_library() -> None:
    found = fault({"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]})
    assert (found.failure.kind, found.failure.action) == ("transcript", "our_bug")


def test_a_blocked_prompt_is_classified_as_a_refusal() -> None:
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 3},
    }
    assert (fault(blocked).failure.kind, fault(blocked).failure.code) == ("refusal", "PROHIBITED_CONTENT")
    found = decode_body(blocked)
    assert isinstance(found, AnswerFault)
    assert found.failure.action == "give_up"


def test_a_safety_stop_is_classified_as_a_refusal_only_if_the_answer_has_no_text() -> None:
    assert fault({"candidates": [{"finishReason": "SAFETY"}]}).failure.kind == "refusal"
    for reason in ("SAFETY", "OTHER"):
        _, message = decode_stream(gemini_chunk({"text": "so far"}), gemini_chunk(finish=reason))
        assert message.text == "so far"


@pytest.mark.parametrize(
    ("error", "kind", "wait"),
    [
        ({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}, "transient", None),
        (
            {
                "code": 429,
                "message": "You exceeded your current quota, please check your plan and billing details.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31s"}],
            },
            "rate_limit",
            31.0,
        ),
    ],
)
def test_an_error_in_mid_stream_is_classified_like_its_status(
    error: Fields, kind: str, wait: float | None
) -> None:
    found = fault(gemini_chunk({"text": "a"}), {"error": error})
    assert (found.failure.kind, found.failure.retry_after) == (kind, wait)
    body = decode_body({"error": error})
    assert isinstance(body, AnswerFault)
    assert body.failure == found.failure


def test_a_stream_without_a_finish_reason_keeps_its_complete_parts() -> None:
    decoder = decode(GEMINI, GOOGLE)
    _, found = run(decoder, [gemini_stream(gemini_chunk({"text": "a"}, call(thoughtSignature="cw==")))])
    assert isinstance(found, AnswerFault)
    assert list(decoder.partial_message().blocks) == [
        Text("a"),
        sealed_thinking("cw=="),
        ToolCall("hist_tool_1", "read", {"p": 1}),
    ]
    assert isinstance(decode_body(gemini_chunk({"text": "a"})), AnswerFault)
