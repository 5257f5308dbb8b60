"""What an answer holds and no block of a message can: counted by the provider's own word, in every dialect.

A provider's own tools (a search, a code runner) put their calls and results into the answer. They are no calls of ours.
Citations, grounding, probabilities and generated images stand beside the words. The words are kept.
"""

from collections.abc import Mapping

import pytest

from actors.adapters.decode import decode, decode_body
from actors.core.content import Message, Text
from actors.core.profiles import PROFILES
from tests.adapters import converse_wire as converse
from tests.adapters.wire_streams import (
    Fields,
    added,
    anthropic_stream,
    chunk,
    delta,
    dumped,
    finished,
    gemini_chunk,
    gemini_stream,
    openai_stream,
    responses_stream,
    run,
    start,
    stop,
)

CITED = {"type": "web_search_result_location", "url": "https://x.test", "cited_text": "Four."}
PLACE = {"type": "url_citation", "url": "https://x.test", "start_index": 0, "end_index": 2}
LIKELY = {"content": [{"token": "Hi", "logprob": -0.1}]}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "4"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def anthropic() -> tuple[bytes, object]:
    words = {"type": "text", "text": "Hi."}
    stream = anthropic_stream(
        start(0, **{**SEARCH, "input": {}}),
        delta(0, type="input_json_delta", partial_json='{"query":"4"}'),
        stop(0),
        start(1, **FOUND),
        stop(1),
        start(2, type="text", text="", citations=[]),
        delta(2, type="citations_delta", citation=CITED),
        delta(2, type="text_delta", text="Hi."),
        delta(2, type="citations_delta", citation=CITED),
        stop(2),
    )
    return stream, {"content": [SEARCH, FOUND, {**words, "citations": [CITED, CITED]}]}


def chat() -> tuple[bytes, object]:
    images = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    parts = [{"type": "text", "text": "Hi."}, {"type": "reference", "reference_ids": [1]}]
    more = {"annotations": [PLACE, PLACE], "images": images, "audio": None}
    stream = openai_stream(
        chunk({"role": "assistant", "content": parts}),
        {"choices": [{"index": 0, "delta": {"annotations": [PLACE]}, "logprobs": LIKELY}]},
        {"choices": [{"index": 0, "delta": {**more, "annotations": [PLACE]}, "logprobs": LIKELY}]},
        chunk({}, "stop", citations=["https://x.test"]),
    )
    choice = {"message": {"role": "assistant", "content": parts, **more}, "logprobs": LIKELY}
    return stream, {"choices": [choice], "citations": ["https://x.test"]}


def responses() -> tuple[bytes, object]:
    part = {"type": "output_text", "text": "Hi.", "annotations": [PLACE, PLACE], "logprobs": [LIKELY]}
    items: list[Fields] = [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        {"type": "web_search_call", "id": "ws_2", "status": "completed", "action": {}},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AA=="},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]},
    ]
    told = [event for at, item in enumerate(items) for event in (added(at, **item), finished(at, **item))]
    return responses_stream(*told), {"status": "completed", "output": items}


def gemini() -> tuple[bytes, object]:
    ran = {"executableCode": {"language": "PYTHON", "code": "2+2"}, "thoughtSignature": "c2ln"}
    parts: list[Fields] = [
        ran,
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
        {"text": "Hi."},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
    ]
    chunks = [gemini_chunk(part) for part in parts]
    ended = gemini_chunk(*parts, finish="STOP")
    last = gemini_chunk(finish="STOP")
    for answer in (*chunks, ended):
        candidates = answer["candidates"]
        assert isinstance(candidates, list)
        candidates[0]["groundingMetadata"] = {"webSearchQueries": ["4"]}
    return gemini_stream(*chunks, last), ended


def bedrock() -> tuple[bytes, object]:
    cited = {"title": "x", "sourceContent": [{"text": "Four."}]}
    frames = (
        converse.HEAD,
        converse.delta(0, text="Hi."),
        converse.delta(0, citation=cited),
        converse.stop(0),
        converse.event("contentBlockStart", start={"image": {"format": "png"}}, contentBlockIndex=1),
        converse.stop(1),
        converse.ended(),
        converse.figures(),
    )
    content = {"citationsContent": {"content": [{"text": "Hi."}], "citations": [cited]}}
    return b"".join(frames), converse.body(content, {"image": {"format": "png"}})


WIRES: Mapping[str, tuple[tuple[bytes, object], Mapping[str, int]]] = {
    "anthropic": (anthropic(), {"server_tool_use": 1, "web_search_tool_result": 1, "citations": 2}),
    "openai_chat": (
        chat(),
        {"reference": 1, "annotations": 2, "images": 1, "logprobs": 1, "citations": 1},
    ),
    "openai_responses": (
        responses(),
        {"web_search_call": 2, "image_generation_call": 1, "annotations": 2, "logprobs": 1},
    ),
    "gemini": (
        gemini(),
        {
            "executableCode": 1,
            "thoughtSignature": 1,
            "codeExecutionResult": 1,
            "inlineData": 1,
            "groundingMetadata": 1,
        },
    ),
    "bedrock": (bedrock(), {"citations": 1, "image": 1}),
}


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", WIRES)
def test_what_no_block_can_hold_is_counted_and_the_words_are_kept(name: str, is_streamed: bool) -> None:
    (stream, body), expected = WIRES[name]
    decoder = decode(PROFILES[name]) if is_streamed else decode_body(PROFILES[name])
    _, message = run(decoder, [stream if is_streamed else dumped(body)])
    assert isinstance(message, Message), message
    assert message.blocks == (Text("Hi."),)
    assert decoder.left_out == expected


def test_of_an_answer_that_begins_again_only_the_second_is_counted() -> None:
    begun: Fields = {"type": "message_start", "message": {}}
    decoder = decode(PROFILES["anthropic"])
    run(decoder, [anthropic_stream(begun, start(0, **SEARCH), stop(0), begun, start(0, **FOUND), stop(0))])
    assert decoder.left_out == {"web_search_tool_result": 1}


def test_kinds_that_a_server_makes_up_do_not_grow_without_end() -> None:
    decoder = decode(PROFILES["anthropic"])
    blocks = [event for at in range(500) for event in (start(at, type=f"{at}" * 90), stop(at))]
    run(decoder, [anthropic_stream(*blocks)])
    assert len(decoder.left_out) == 64
    assert max(map(len, decoder.left_out)) == 64


@pytest.mark.parametrize("name", ["ollama", "glm", "vllm", "qwen", "groq", "openai_compatible"])
@pytest.mark.parametrize(
    "said",
    [{"reasoning": "Hm."}, {"reasoning_content": "Hm."}, {"reasoning": "Hm.", "reasoning_content": "Hm."}],
)
def test_reasoning_is_read_under_either_name_and_once_under_both(name: str, said: Fields) -> None:
    stream = openai_stream(chunk(said), chunk({"content": "Hi."}), chunk({}, "stop"))
    body = {
        "choices": [{"message": {"role": "assistant", "content": "Hi.", **said}, "finish_reason": "stop"}]
    }
    for decoder, given in ((decode(PROFILES[name]), stream), (decode_body(PROFILES[name]), dumped(body))):
        _, message = run(decoder, [given])
        assert isinstance(message, Message)
        assert [(type(block).__name__, getattr(block, "text", "")) for block in message.blocks] == [
            ("Thinking", "Hm."),
            ("Text", "Hi."),
        ]
        assert decoder.left_out == {}


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
def test_the_signature_of_a_call_on_googles_own_copy_is_counted(is_streamed: bool) -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    function = {"name": "read", "arguments": "{}"}
    call = {"index": 0, "id": "x", "type": "function", "function": function, "extra_content": signed}
    stream = openai_stream(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"))
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    profile = PROFILES["openai_compatible"]
    decoder = decode(profile) if is_streamed else decode_body(profile)
    _, message = run(decoder, [stream if is_streamed else dumped(body)])
    assert isinstance(message, Message)
    assert ([call.name for call in message.calls], decoder.left_out) == (["read"], {"extra_content": 1})
