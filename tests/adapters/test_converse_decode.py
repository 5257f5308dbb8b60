"""Check the decoding of Bedrock answers: a complete message or a typed fault at any cut."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.base import Decoder
from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.dialects.profiles import BEDROCK
from actors.core.values.content import Message, Thinking
from actors.core.values.stream import CallDone, CallStarted, Finish, TextDelta, ThinkingDelta, Usage
from tests.adapters import converse_wire as wire
from tests.adapters.wire_streams import cut_at_random, dump_json, message_outline, run
from tests.commands.at_scale import spread


def decoder() -> Decoder:
    return decode(BEDROCK, wire.BEDROCK_BINDING)


def decode_answer(stream: bytes) -> Message:
    _, message = run(decoder(), [stream])
    assert isinstance(message, Message), message
    return message


def stream_fault(stream: bytes) -> AnswerFault:
    _, fault = run(decoder(), [stream])
    assert isinstance(fault, AnswerFault), fault
    return fault


def test_a_stream_is_decoded_to_its_message_and_events() -> None:
    made = decoder()
    events, message = run(made, [wire.STREAM])
    assert isinstance(message, Message)
    assert message_outline(message) == wire.BLOCKS
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["Let me ", "see…"]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["I look ", "at 日本 😀."]
    assert [event.name for event in events if isinstance(event, CallStarted)] == ["read", "now"]
    assert sum(isinstance(event, CallDone) for event in events) == 2
    assert made.usage == Usage(8, 7, 2, 1)  # cached tokens are part of the input
    assert made.finish_reason == "tool_use"
    assert any(isinstance(event, Finish) for event in events)


def test_a_cut_before_message_stop_is_reported_as_a_fault_and_a_later_cut_loses_only_usage() -> None:
    end = len(b"".join(wire.WORDS))
    complete = set(wire.BLOCKS)
    for place in range(end):
        made = decoder()
        _, fault = run(made, [wire.STREAM[:place]])
        assert isinstance(fault, AnswerFault), place
        assert fault.failure.action == "retry"
        for block in message_outline(made.partial_message()):
            assert block in complete or (block[0] == "text" and wire.BLOCKS[2][1].startswith(block[1])), place
        assert all(block.seal for block in made.partial_message().blocks if isinstance(block, Thinking))
    for place in range(end, len(wire.STREAM) + 1):
        assert message_outline(decode_answer(wire.STREAM[:place])) == wire.BLOCKS, place


def test_the_answer_does_not_depend_on_how_bytes_are_split() -> None:
    whole = run(decoder(), [wire.STREAM])
    assert run(decoder(), [bytes([byte]) for byte in wire.STREAM])[1] == whole[1]
    for place in spread(range(len(wire.STREAM)), 0):
        assert run(decoder(), [wire.STREAM[:place], wire.STREAM[place:]]) == whole, place
    for seed in range(60):
        assert run(decoder(), list(cut_at_random(wire.STREAM, Random(seed)))) == whole, seed


def test_frames_after_the_usage_frame_are_ignored() -> None:
    for tail in (b"\xff" * 50, wire.exception("throttlingException", message="late")):
        assert message_outline(decode_answer(wire.STREAM + tail)) == wire.BLOCKS


def test_a_flipped_bit_before_the_end_of_a_stream_is_reported_as_a_fault() -> None:
    end = len(b"".join(wire.WORDS))
    for place in range(0, end, 3):
        spoilt = bytearray(wire.STREAM)
        spoilt[place] ^= 1
        _, fault = run(decoder(), [bytes(spoilt)])
        assert isinstance(fault, AnswerFault), place


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("throttlingException", {}, ("rate_limit", "retry", 429)),
        ("modelStreamErrorException", {"originalStatusCode": 500}, ("transient", "retry", 424)),
        ("internalServerException", {}, ("transient", "retry", 500)),
        ("serviceUnavailableException", {}, ("transient", "retry", 503)),
        ("validationException", {}, ("transcript", "our_bug", 400)),
    ],
)
def test_an_exception_inside_a_stream_is_classified_like_its_status(
    kind: str, more: dict[str, object], expected: tuple[str, str, int]
) -> None:
    failure = stream_fault(wire.HEAD + wire.exception(kind, message="Words.", **more)).failure
    assert (failure.kind, failure.action, failure.status) == expected
    assert (failure.message, failure.code) == ("Words.", kind)


def test_a_context_overflow_inside_a_stream_triggers_compaction() -> None:
    words = "The model returned the following errors: prompt is too long: 9 tokens > 8 maximum"
    failure = stream_fault(wire.HEAD + wire.exception("validationException", message=words)).failure
    assert (failure.kind, failure.rule) == ("overflow", "BED-12")


def test_a_signature_and_redacted_reasoning_may_arrive_in_pieces() -> None:
    message = decode_answer(
        wire.reasoning_delta(0, text="x")
        + wire.reasoning_delta(0, signature="ab")
        + wire.reasoning_delta(0, signature="cd")
        + wire.stop(0)
        + wire.reasoning_delta(1, redactedContent="c2U=")
        + wire.reasoning_delta(1, redactedContent="Yw==")
        + wire.stop(1)
        + wire.message_stop()
    )
    assert message_outline(message) == (("thinking", "x", '"abcd"'), ("thinking", "", '"c2Vj"'))


def test_unknown_blocks_are_kept_but_never_sent() -> None:
    message = decode_answer(
        wire.event("contentBlockStart", start={"image": {"format": "png"}}, contentBlockIndex=0)
        + wire.delta(0, image={"source": {}})
        + wire.stop(0)
        + wire.event("somethingNew", x=1)
        + wire.delta(1, text="so", citation={})
        + wire.message_stop()
    )
    assert message_outline(message) == (("native", "image", "unknown"), ("text", "so"))


def test_reasoning_after_a_block_that_cannot_be_sent_back_loses_its_signature() -> None:
    message = decode_answer(
        wire.reasoning_delta(0, text="x", signature="ab")
        + wire.stop(0)
        + wire.delta(1, image={"source": {}})
        + wire.stop(1)
        + wire.reasoning_delta(2, text="y", signature="cd")
        + wire.stop(2)
        + wire.message_stop()
    )
    assert message_outline(message)[0] == ("thinking", "x", '"ab"')
    assert message.blocks[2] == Thinking("y")


def test_call_arguments_that_are_not_a_json_object_are_kept_verbatim() -> None:
    parts = wire.begin(0, "tooluse_A", "read") + wire.delta(0, toolUse={"input": '{"p":'}) + wire.stop(0)
    assert message_outline(decode_answer(parts + wire.message_stop()))[0][5:] == ('{"p":',)


def test_arguments_without_their_call_make_the_answer_incomplete() -> None:
    made = decoder()
    _, message = run(
        made, [wire.delta(0, toolUse={"input": "{}"}) + wire.delta(1, text="x") + wire.message_stop()]
    )
    assert isinstance(message, Message)
    assert message_outline(message) == (("text", "x"),)
    assert (made.cut_reason, made.left_out) == ("fault", {"stray_arguments": 1})


def test_text_without_a_block_index_is_kept() -> None:
    assert (
        decode_answer(wire.event("contentBlockDelta", delta={"text": "x"}) + wire.message_stop()).text == "x"
    )


def test_blocks_between_the_stop_reason_and_the_usage_belong_to_the_answer() -> None:
    late = wire.delta(0, text="late") + wire.stop(0)
    assert decode_answer(wire.HEAD + wire.message_stop() + late + wire.metadata()).text == "late"
    assert decode_answer(wire.HEAD + wire.message_stop() + late).text == "late"


def test_a_response_body_gives_the_same_answer_as_a_stream() -> None:
    content = (
        {"reasoningContent": {"reasoningText": {"text": "Let me see…", "signature": wire.SIGNATURE}}},
        {"reasoningContent": {"redactedContent": "c2VjcmV0"}},
        {"text": "I look at 日本 😀."},
        {"toolUse": {"toolUseId": "tooluse_A", "name": "read", "input": {"p": 1}}},
        {"toolUse": {"toolUseId": "tooluse_B", "name": "now", "input": {}}},
    )
    made = decode(BEDROCK, wire.BEDROCK_BINDING, stream=False)
    made.feed(dump_json(wire.body(*content, reason="tool_use")))
    message = made.close()
    assert [block[:3] for block in message_outline(message)] == [block[:3] for block in wire.BLOCKS]
    assert (made.usage, made.finish_reason) == (Usage(5, 7), "tool_use")


@pytest.mark.parametrize(
    "body", [{}, {"output": {}}, {"message": "no"}, [], "x", {"output": {"message": {}}}]
)
def test_a_response_body_without_a_message_is_reported_as_a_fault(body: object) -> None:
    _, fault = run(decode(BEDROCK, stream=False), [json.dumps(body).encode()])
    assert isinstance(fault, AnswerFault)


NAMES = "contentBlockStart contentBlockDelta contentBlockStop messageStop metadata messageStart exception x"
WORDS = "start delta toolUse toolUseId name input text reasoningContent signature redactedContent stopReason usage"
words = st.sampled_from(
    [*WORDS.split(), "contentBlockIndex", "message", "reasoningText", "output", "content"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=5) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=6,
)


@given(events=st.lists(st.tuples(st.sampled_from(NAMES.split()), st.dictionaries(words, values, max_size=4))))
def test_any_stream_is_decoded_or_raises_a_stream_fault(events: list[tuple[str, dict[str, object]]]) -> None:
    made = decoder()
    run(made, [*(wire.event(kind, **payload) for kind, payload in events), wire.message_stop()])
    assert made.partial_message().role == "assistant"


@given(body=values, noise=st.binary(max_size=200))
def test_any_response_body_and_any_bytes_are_decoded_or_raise_a_stream_fault(
    body: object, noise: bytes
) -> None:
    run(decode(BEDROCK, stream=False), [json.dumps(body).encode()])
    run(decode(BEDROCK, stream=False), [json.dumps({"output": {"message": {"content": [body]}}}).encode()])
    run(decoder(), [noise])
