"""Cut the stream of each family everywhere: a complete answer or a typed fault, never a partial call."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, PROFILES
from actors.core.values.content import Message, Thinking
from actors.core.values.stream import CallDone, CallStarted, StreamEvent, TextDelta
from actors.errors import StreamFault
from tests.adapters.wire_streams import RECORDINGS, Recording, cut_at_random, dump_json, message_outline, run
from tests.commands.at_scale import spread

recordings = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.binding.dialect)
profiles = pytest.mark.parametrize(
    "profile", [OPENAI_CHAT, ANTHROPIC, OPENAI_RESPONSES], ids=lambda profile: profile.name
)


def texts(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.requirement("U-02", "U-03", "U-10")
@recordings
def test_a_recorded_answer_is_decoded_completely(recording: Recording) -> None:
    events, message = run(recording.decoder(), [recording.stream])
    assert isinstance(message, Message)
    assert message_outline(message) == recording.blocks
    assert message.role == "assistant"
    assert message.origin == recording.binding
    assert texts(events) == message.text
    started = [event.call_id for event in events if isinstance(event, CallStarted)]
    assert started == [event.call_id for event in events if isinstance(event, CallDone)]
    assert started == [call.id for call in message.calls]


@recordings
def test_an_answer_does_not_depend_on_how_the_bytes_of_its_stream_are_split(recording: Recording) -> None:
    stream = recording.stream
    whole = run(recording.decoder(), [stream])
    for place in spread(range(len(stream)), RECORDINGS.index(recording)):
        assert run(recording.decoder(), [stream[:place], stream[place:]]) == whole
    for seed in range(10):
        assert run(recording.decoder(), list(cut_at_random(stream, Random(seed)))) == whole
    assert run(recording.decoder(), [stream[place : place + 1] for place in range(len(stream))]) == whole


@recordings
def test_a_truncated_stream_is_reported_as_a_fault_and_keeps_no_partial_call(recording: Recording) -> None:
    complete = {block for block in recording.blocks if block[0] == "call" or block[-1]}
    text = next(block[1] for block in recording.blocks if block[0] == "text")
    end = len(recording.stream.rstrip())
    for place in spread(range(end), RECORDINGS.index(recording)):
        decoder = recording.decoder()
        _, fault = run(decoder, [recording.stream[:place]])
        assert isinstance(fault, AnswerFault), place
        assert fault.failure.action == "retry"
        for block in message_outline(decoder.partial_message()):
            assert block in complete or (block[0] == "text" and text.startswith(block[1])), (place, block)
    for place in range(end, len(recording.stream) + 1):
        _, message = run(recording.decoder(), [recording.stream[:place]])
        assert isinstance(message, Message), place


@recordings
def test_bytes_after_the_end_of_an_answer_are_ignored(recording: Recording) -> None:
    whole = run(recording.decoder(), [recording.stream])
    stream = recording.stream + (
        b"data: [DONE]\n\n" if recording.profile is GEMINI else b""
    )  # Gemini has no end marker
    for tail in (b"data: [DONE]\n\n", b'data: {"error": {"message": "late"}}\n\n', b"\xff\x00garbage" * 100):
        assert run(recording.decoder(), [stream + tail]) == whole
        assert run(recording.decoder(), [stream, tail]) == whole


@recordings
def test_closing_a_decoder_twice_gives_the_same_message_or_the_same_fault(recording: Recording) -> None:
    decoder = recording.decoder()
    decoder.feed(recording.stream)
    assert decoder.close() == decoder.close()
    assert decoder.feed(recording.stream) == []
    broken = recording.decoder()
    broken.feed(recording.stream[:200])
    for _ in range(2):
        with pytest.raises(StreamFault, match="end marker"):
            broken.close()


@recordings
def test_generated_call_ids_start_at_the_given_number(recording: Recording) -> None:
    decoder = decode(recording.profile, recording.binding, first_call=41, turn=7)
    decoder.feed(recording.stream)
    message = decoder.close()
    assert [call.id for call in message.calls] == ["hist_tool_41", "hist_tool_42"]
    assert message.turn == 7


@recordings
def test_thinking_without_its_signature_is_not_kept_from_a_partial_answer(recording: Recording) -> None:
    for place in range(0, len(recording.stream), 7):
        decoder = recording.decoder()
        run(decoder, [recording.stream[:place]])
        assert all(block.seal for block in decoder.partial_message().blocks if isinstance(block, Thinking))


@profiles
@pytest.mark.parametrize(
    "noise", [b"", b"\n\n", b": x\n" * 50, b"HTTP/1.1 200 OK", b'{"error": "plain"}', b"\x00\xff"]
)
def test_invalid_stream_bytes_are_reported_as_a_fault(profile: Dialect, noise: bytes) -> None:
    _, fault = run(decode(profile), [noise])
    assert isinstance(fault, AnswerFault)


@profiles
@pytest.mark.parametrize(
    "data", ["{", "[]", "3", "null", '"x"', "{}}", "[" * 5000, "1" * 5000, '{"a":' * 3000]
)
def test_an_event_that_is_not_a_json_object_is_reported_as_a_fault(profile: Dialect, data: str) -> None:
    _, fault = run(decode(profile), [f"data: {data}\n\n".encode()])
    assert isinstance(fault, AnswerFault)


@recordings
@pytest.mark.parametrize(
    "form", ["%s\n", "%s", "[%s]\r\n\r\n", "data: [%s]\n\n", "event: error\ndata: %s\n\n"]
)
@pytest.mark.parametrize("indent", [None, 2])
def test_every_form_of_error_event_is_classified(recording: Recording, form: str, indent: int | None) -> None:
    error = {"error": {"code": 429, "message": "Slow down. Try again in 7s.", "status": "RESOURCE_EXHAUSTED"}}
    text = json.dumps(error, indent=None if "data" in form else indent)
    half, _, _ = recording.stream[: len(recording.stream) // 2].rpartition(b"\n\n")
    _, fault = run(recording.decoder(), [half + b"\n\n", (form % text).encode()])
    assert isinstance(fault, AnswerFault)
    assert (fault.failure.kind, fault.failure.retry_after) == ("rate_limit", 7.0)


@profiles
def test_an_event_of_two_mebibytes_is_reported_as_a_fault(profile: Dialect) -> None:
    _, fault = run(decode(profile), [b"data: " + b"x" * (2 * 1024 * 1024)])
    assert isinstance(fault, StreamFault)


@profiles
def test_an_answer_without_an_end_is_reported_as_a_fault_at_its_size_limit(profile: Dialect) -> None:
    ping = b": keep-alive " + b"x" * 1000 + b"\n"
    decoder = decode(profile)
    _, fault = run(decoder, [ping * 1000] * 40)
    assert isinstance(fault, StreamFault)
    body = decode(profile, stream=False)
    _, fault = run(body, [b"x" * 1024 * 1024] * 40)
    assert isinstance(fault, StreamFault)


WORDS = """
    type index delta content_block text thinking signature partial_json input id name data error message usage
    choices content reasoning_content tool_calls function arguments finish_reason function_call stop_reason
    refusal code metadata raw details prompt_tokens_details custom object tool_use message_start text_delta
    content_block_start content_block_delta content_block_stop message_delta input_json_delta
    item item_id output_index output response status summary encrypted_content incomplete_details
    response.output_item.added response.output_item.done response.output_text.delta response.completed
    response.function_call_arguments.delta response.reasoning_summary_text.delta response.incomplete
    reasoning function_call custom_tool_call incomplete completed call_id
"""
words = st.sampled_from(WORDS.split())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=4,
)
values = words | json_values
event_objects = st.dictionaries(words, values | st.dictionaries(words, words, max_size=4), max_size=4)


@profiles
@given(data=st.data())
def test_any_stream_is_decoded_or_raises_a_stream_fault(profile: Dialect, data: st.DataObject) -> None:
    events = data.draw(st.lists(event_objects, max_size=3))
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    decoder = decode(profile)
    run(
        decoder,
        [stream, data.draw(st.sampled_from([b"", b"data: [DONE]", b'data: {"type":"message_stop"}']))],
    )
    assert decoder.partial_message().role == "assistant"


@profiles
@given(body=event_objects | json_values)
def test_any_response_body_is_decoded_or_raises_a_stream_fault(profile: Dialect, body: object) -> None:
    run(decode(profile, stream=False), [json.dumps(body).encode()])


@profiles
@given(noise=st.binary(max_size=300))
def test_any_bytes_are_decoded_or_raise_a_stream_fault(profile: Dialect, noise: bytes) -> None:
    run(decode(profile), [noise])
    run(decode(profile, stream=False), [noise])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", sorted(PROFILES))
def test_an_answer_above_the_size_limit_is_reported_as_a_fault_in_every_wire_format(
    name: str, stream: bool
) -> None:
    decoder = decode(PROFILES[name], stream=stream, max_bytes=300)
    decoder.feed(b":" * 11)  # less than a frame's prelude
    with pytest.raises(StreamFault, match="larger than 300 bytes"):
        decoder.feed(b":" * 300)


@recordings
@given(data=st.data())
def test_a_damaged_recording_is_decoded_or_raises_a_stream_fault(
    recording: Recording, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(recording.stream)))
    hole = data.draw(st.integers(0, 60))
    filling = data.draw(st.binary(max_size=20))
    run(recording.decoder(), [recording.stream[:place] + filling + recording.stream[place + hole :]])


def test_an_answer_does_not_depend_on_how_the_bytes_of_its_body_are_split() -> None:
    body = dump_json({"content": [{"type": "text", "text": "日本"}], "stop_reason": "end_turn"})
    for place in range(len(body)):
        decoder = decode(ANTHROPIC, stream=False)
        decoder.feed(body[:place])
        decoder.feed(body[place:])
        assert decoder.close().text == "日本"


@recordings
@given(data=st.data())
def test_a_stream_with_values_of_wrong_types_is_decoded_or_raises_a_stream_fault(
    recording: Recording, data: st.DataObject
) -> None:
    lines = recording.stream.decode().split("\n")
    places = [place for place, line in enumerate(lines) if line.startswith("data: {")]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places))
        event = json.loads(lines[place].removeprefix("data: "))
        lines[place] = f"data: {json.dumps(with_another(event, data))}"
    decoder = recording.decoder()
    run(decoder, ["\n".join(lines).encode()])
    assert decoder.partial_message().role == "assistant"


def with_another(value: object, data: st.DataObject) -> object:
    """Return the value with one part replaced."""
    keys = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    if not keys or data.draw(st.integers(0, 4)) == 0:
        return data.draw(json_values)
    key = data.draw(st.sampled_from(keys))
    assert isinstance(value, dict | list)
    value[key] = with_another(value[key], data)
    return value


@pytest.mark.parametrize(
    ("profile", "stream"),
    [
        (OPENAI_CHAT, b"data: [DONE]\n\n"),
        (OPENAI_CHAT, b'data: {"choices":[],"usage":{"prompt_tokens":9}}\n\ndata: [DONE]\n\n'),
        (OPENAI_CHAT, b": keep-alive\n\ndata: {}\n\ndata: [DONE]\n\n"),
        (ANTHROPIC, b'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
        (ANTHROPIC, b'data: {"type":"ping"}\n\ndata: {"type":"message_stop"}\n\n'),
        (ANTHROPIC, b'data: {"type":"message_delta","usage":{}}\n\ndata: {"type":"message_stop"}\n\n'),
    ],
)
def test_a_stream_with_only_an_end_marker_is_reported_as_a_fault(profile: Dialect, stream: bytes) -> None:
    _, fault = run(decode(profile), [stream])
    assert isinstance(fault, AnswerFault)
    assert fault.failure.action == "retry"


@pytest.mark.parametrize(
    ("profile", "body"),
    [
        (OPENAI_CHAT, {"choices": []}),
        (OPENAI_CHAT, {"choices": [{"finish_reason": "stop"}]}),
        (OPENAI_CHAT, {"choices": [{"message": {}}]}),
        (OPENAI_CHAT, {"choices": [{"message": {"role": "assistant"}, "finish_reason": "stop"}]}),
        (ANTHROPIC, {}),
        (ANTHROPIC, {"type": "message", "role": "assistant", "stop_reason": "end_turn"}),
        (ANTHROPIC, {"content": None}),
    ],
)
def test_a_response_body_without_content_is_reported_as_a_fault(profile: Dialect, body: object) -> None:
    _, fault = run(decode(profile, stream=False), [dump_json(body)])
    assert isinstance(fault, AnswerFault)
    assert fault.failure.action == "retry"


@pytest.mark.parametrize(
    ("profile", "stream"),
    [
        (OPENAI_CHAT, b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
        (ANTHROPIC, b'data: {"type":"message_start"}\n\ndata: {"type":"message_stop"}\n\n'),
    ],
)
def test_an_empty_answer_from_the_model_is_not_a_fault(profile: Dialect, stream: bytes) -> None:
    _, message = run(decode(profile), [stream])
    assert isinstance(message, Message)
    assert message.blocks == ()


@recordings
@pytest.mark.parametrize("gap", [b"data: null\n\n", b"event: ping\ndata: null\n\n"])
def test_events_without_content_are_skipped_if_other_events_have_content(
    recording: Recording, gap: bytes
) -> None:
    end = b"\r\n\r\n" if b"\r\n\r\n" in recording.stream else b"\n\n"
    _, message = run(recording.decoder(), [gap + recording.stream.replace(end, end + gap)])
    assert isinstance(message, Message), message
    assert message_outline(message) == recording.blocks


@recordings
def test_a_stream_in_which_no_event_has_content_is_reported_as_a_fault(recording: Recording) -> None:
    _, fault = run(recording.decoder(), [b"data: null\n\n" * 3])
    assert isinstance(fault, StreamFault)


def test_an_error_event_without_data_is_reported_as_a_fault() -> None:
    _, fault = run(decode(ANTHROPIC), [b"event: error\ndata: null\n\n"])
    assert isinstance(fault, StreamFault)
    assert "end marker" not in str(fault)
