"""Check that a call in a cut answer is complete or omitted, in every dialect.

A server that cuts a call also ends its block, so the call can look like a complete call without arguments. The
functions below build such answers in each dialect, streamed and not: a text, calls with the given argument texts, and
the stop reason.
"""

import json
from collections.abc import Sequence

import pytest

from actors.adapters.codec import decode
from actors.adapters.failure import AnswerFault
from actors.core.dialects.profiles import PROFILES
from actors.core.values.content import Message
from actors.core.values.identity import mint
from actors.core.values.stream import CallDone, CallStarted, StreamEvent
from actors.errors import StreamFault
from tests.adapters import converse_wire as converse
from tests.adapters.wire_streams import (
    Fields,
    anthropic_stream,
    calls,
    chunk,
    delta,
    dump_json,
    fragment,
    function_call,
    gemini_chunk,
    gemini_stream,
    item_done,
    openai_stream,
    responses_stream,
    run,
    start,
    stop,
)
from tests.commands.at_scale import spread

WHOLE = '{"p":1}'
Texts = Sequence[str]


def value(text: str) -> object:
    """Return the arguments as a provider that sends objects would: `{}` for missing or partial text."""
    return json.loads(text) if text.endswith("}") else {}


def chat(texts: Texts, reason: str) -> tuple[bytes, object]:
    said = [fragment(at, f"call_{at}", "read", text) for at, text in enumerate(texts)]
    choice = {"message": {"content": "So.", "tool_calls": said}, "finish_reason": reason}
    stream = openai_stream(chunk({"content": "So."}), *(calls(one) for one in said), chunk({}, reason))
    return stream, {"choices": [choice]}


def anthropic(texts: Texts, reason: str) -> tuple[bytes, object]:
    events: list[Fields] = [start(0, type="text", text="So."), stop(0)]
    content: list[Fields] = [{"type": "text", "text": "So."}]
    for at, text in enumerate(texts, 1):
        call = {"type": "tool_use", "id": f"toolu_{at}", "name": "read"}
        events += [
            start(at, **call, input={}),
            delta(at, type="input_json_delta", partial_json=text),
            stop(at),
        ]
        content.append({**call, "input": value(text)})
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
    return anthropic_stream(*events), {"content": content, "stop_reason": reason}


def responses(texts: Texts, reason: str) -> tuple[bytes, object]:
    parts = [{"type": "output_text", "text": "So."}]
    items: list[Fields] = [{"type": "message", "id": "msg_1", "role": "assistant", "content": parts}]
    items += [function_call(f"fc_{at}", f"call_{at}", "read", text) for at, text in enumerate(texts)]
    end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    ended: Fields = {"type": "response.incomplete", "response": end}
    stream = responses_stream(*(item_done(at, **it) for at, it in enumerate(items)), ended, done=False)
    return stream, {**end, "output": items}


def gemini(texts: Texts, reason: str) -> tuple[bytes, object]:
    parts: list[Fields] = [{"text": "So."}]
    parts += [{"functionCall": {"name": "read", "args": value(text)}} for text in texts]
    stream = gemini_stream(*(gemini_chunk(part) for part in parts), gemini_chunk(finish=reason))
    return stream, gemini_chunk(*parts, finish=reason)


def bedrock(texts: Texts, reason: str) -> tuple[bytes, object]:
    frames = [converse.HEAD, converse.delta(0, text="So."), converse.stop(0)]
    content: list[Fields] = [{"text": "So."}]
    for at, text in enumerate(texts, 1):
        frames += [converse.begin(at, f"tooluse_{at}", "read")]
        frames += [converse.delta(at, toolUse={"input": text}), converse.stop(at)]
        call = {"toolUseId": f"tooluse_{at}", "name": "read", "input": value(text)}
        content.append({"toolUse": call})
    frames += [converse.message_stop(reason), converse.metadata()]
    return b"".join(frames), converse.body(*content, reason=reason)


WIRES = {
    "openai_chat": (chat, "length"),
    "mistral": (chat, "length"),
    "deepseek": (chat, "length"),
    "anthropic": (anthropic, "max_tokens"),
    "openai_responses": (responses, "max_output_tokens"),
    "gemini": (gemini, "MAX_TOKENS"),
    "vertex": (gemini, "MAX_TOKENS"),
    "bedrock": (bedrock, "max_tokens"),
}
FILTERS = {
    "openai_chat": "content_filter",
    "anthropic": "refusal",
    "openai_responses": "content_filter",
    "gemini": "SAFETY",
    "bedrock": "guardrail_intervened",
}
dialects = pytest.mark.parametrize("name", WIRES)
both = pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
Read = tuple[list[StreamEvent], Message | StreamFault]


def read_answer(name: str, texts: Texts, reason: str, is_streamed: bool) -> Read:
    stream, body = WIRES[name][0](texts, reason)
    if is_streamed:
        return run(decode(PROFILES[name]), [stream])
    decoder = decode(PROFILES[name], stream=False)
    events, message = run(decoder, [dump_json(body)])
    return [*events, *decoder.late], message


def arguments(message: Message | StreamFault) -> list[object]:
    assert isinstance(message, Message), message
    assert message.text == "So."
    return [call.arguments for call in message.calls]


@both
@pytest.mark.parametrize("came", ["", " ", '{"p":', '{"p"'])
@dialects
def test_a_call_with_truncated_arguments_is_dropped_and_the_reason_is_recorded(
    name: str, came: str, is_streamed: bool
) -> None:
    reason = WIRES[name][1]
    events, message = read_answer(name, [WHOLE, came], reason, is_streamed)
    assert arguments(message) == [{"p": 1}]
    assert [event for event in events if isinstance(event, CallDone)] == [CallDone(mint(1))]
    assert [event.call_id for event in events if isinstance(event, CallStarted)] == [mint(1), mint(2)]
    decoder = decode(PROFILES[name])
    run(decoder, [WIRES[name][0]([came], reason)[0]])
    assert (decoder.finish_reason, decoder.close().calls) == (reason, ())


@both
@dialects
def test_a_call_with_complete_arguments_before_a_cut_is_kept(name: str, is_streamed: bool) -> None:
    events, message = read_answer(name, [WHOLE], WIRES[name][1], is_streamed)
    assert arguments(message) == [{"p": 1}]
    assert CallDone(mint(1)) in events


@both
@pytest.mark.parametrize("name", ["anthropic", "openai_responses", "gemini", "bedrock"])
def test_a_call_without_arguments_is_not_treated_as_truncated_if_another_call_follows(
    name: str, is_streamed: bool
) -> None:
    assert arguments(read_answer(name, ["", WHOLE], WIRES[name][1], is_streamed)[1]) == [{}, {"p": 1}]


@both
@dialects
def test_a_call_without_arguments_in_a_complete_answer_is_kept(name: str, is_streamed: bool) -> None:
    reason = {"gemini": "STOP", "vertex": "STOP", "bedrock": "tool_use", "anthropic": "tool_use"}.get(
        name, ""
    )
    if name != "openai_responses":
        assert arguments(read_answer(name, [""], reason or "tool_calls", is_streamed)[1]) == [{}]
    else:
        done = item_done(0, **function_call("fc_1", "call_A", "read", ""))
        _, message = run(decode(PROFILES[name]), [responses_stream(done)])
        assert isinstance(message, Message)
        assert [call.arguments for call in message.calls] == [{}]


@both
@pytest.mark.parametrize("name", FILTERS)
def test_a_call_truncated_by_a_content_filter_is_dropped(name: str, is_streamed: bool) -> None:
    assert arguments(read_answer(name, [""], FILTERS[name], is_streamed)[1]) == []
    assert arguments(read_answer(name, [WHOLE], FILTERS[name], is_streamed)[1]) == [{"p": 1}]


@pytest.mark.parametrize("came", ["", '{"p":'])
@dialects
def test_a_partial_answer_contains_no_truncated_call(name: str, came: str) -> None:
    make, reason = WIRES[name]
    stream = make([WHOLE, came], reason)[0]
    whole = [{"p": 1}, {}] if WIRES[name][0] is gemini else [{"p": 1}]  # Gemini sends complete calls only
    for place in spread(range(len(stream)), [*WIRES].index(name) + bool(came)):
        decoder = decode(PROFILES[name])
        run(decoder, [stream[:place]])
        assert [call.arguments for call in decoder.partial_message().calls] in (whole, [{"p": 1}], []), place


@pytest.mark.parametrize("came", ["", '{"p":'])
@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
def test_a_call_block_without_its_stop_event_makes_the_answer_incomplete(name: str, came: str) -> None:
    def stream(text: str, reason: str) -> bytes:
        if name == "anthropic":
            begun = start(0, type="tool_use", id="toolu_A", name="read", input={})
            piece = delta(0, type="input_json_delta", partial_json=text)
            return anthropic_stream(begun, piece, {"type": "message_delta", "delta": {"stop_reason": reason}})
        frames = converse.begin(0, "tooluse_A", "read"), converse.delta(0, toolUse={"input": text})
        return b"".join([converse.HEAD, *frames, converse.message_stop(reason), converse.metadata()])

    _, message = run(decode(PROFILES[name]), [stream(came, "max_tokens")])
    assert isinstance(message, Message)
    assert message.calls == ()
    decoder = decode(PROFILES[name])
    _, fault = run(decoder, [stream(came, "tool_use")])
    assert isinstance(fault, AnswerFault)
    assert (fault.failure.action, decoder.partial_message().calls) == ("retry", ())
    for reason in ("max_tokens", "tool_use"):
        _, message = run(decode(PROFILES[name]), [stream(WHOLE, reason)])
        assert isinstance(message, Message)
        assert [call.arguments for call in message.calls] == [{"p": 1}]
