"""Check parts of answers other than text and calls: kept for their provider, described to others, or counted.

A provider's own tools (a search, a code runner) put their calls and results into the answer. They are not our calls,
and later requests return them to the same provider in their place. Citations and grounding stay in the history, next to
their text. Generated images are media. Other parts are counted under the name that the provider uses.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Literal

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.codec import decode
from actors.adapters.request import Settings
from actors.core.check import check
from actors.core.data.jsonio import quote, unquote
from actors.core.data.record import replace
from actors.core.dialects.dialect import ChatDialect
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Block, Media, Message, ProviderBlock, ProviderState, Text
from actors.testing import Script
from actors.transcripts import encode, render
from tests.adapters import converse_wire as converse
from tests.adapters.wire_streams import (
    Fields,
    anthropic_stream,
    chunk,
    delta,
    dump_json,
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
from tests.generated.histories import READERS
from tests.strict_hosts import answer_to, strict_host

CITED = {"type": "web_search_result_location", "url": "https://x.test", "cited_text": "Four."}
PLACE = {"type": "url_citation", "url": "https://x.test", "start_index": 0, "end_index": 2}
LIKELY = {"content": [{"token": "Hi", "logprob": -0.1}]}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "4"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

ENDED = {"status": "completed"}
RAN = {"executableCode": {"language": "PYTHON", "code": "2+2"}}
CAME = {"outcome": "OUTCOME_OK", "output": "4"}


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
    told = [
        event for at, item in enumerate(items) for event in (item_added(at, **item), item_done(at, **item))
    ]
    return responses_stream(*told), {"status": "completed", "output": items}


def gemini() -> tuple[bytes, object]:
    parts: list[Fields] = [
        RAN,
        {"codeExecutionResult": CAME},
        {"text": "Hi."},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
    ]
    chunks = [gemini_chunk(part) for part in parts]
    ended = gemini_chunk(*parts, finish="STOP")
    last = gemini_chunk(finish="STOP")
    for answer in (*chunks, ended):
        candidates = answer["candidates"]
        assert isinstance(candidates, list)
        candidates[0] |= {"groundingMetadata": {"webSearchQueries": ["4"]}, "logprobsResult": {"x": 1}}
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
        converse.message_stop(),
        converse.metadata(),
    )
    content = {"citationsContent": {"content": [{"text": "Hi."}], "citations": [cited]}}
    return b"".join(frames), converse.body(content, {"image": {"format": "png"}})


Kept = tuple[tuple[object, ...], ...]
WIRES: Mapping[str, tuple[tuple[bytes, object], Kept, Mapping[str, int]]] = {
    "anthropic": (
        anthropic(),
        (
            ("native", "server_tool_use", "part", SEARCH),
            ("native", "web_search_tool_result", "part", FOUND),
            ("text", "Hi."),
            ("native", "citations", "mark", [CITED, CITED]),
        ),
        {},
    ),
    "openai_chat": (
        chat(),
        (
            ("text", "Hi."),
            ("native", "reference", "unknown", {"type": "reference", "reference_ids": [1]}),
            ("media", "image/png", "AA=="),
            ("native", "annotations", "mark", [PLACE, PLACE]),
            ("native", "citations", "mark", ["https://x.test"]),
        ),
        {"logprobs": 1},
    ),
    "openai_responses": (
        responses(),
        (
            *[("native", "web_search_call", "part", {"type": "web_search_call", **ENDED, "action": {}})] * 2,
            ("media", "image/png", "AA=="),
            ("text", "Hi."),
            ("native", "annotations", "mark", [PLACE, PLACE]),
        ),
        {"logprobs": 1},
    ),
    "gemini": (
        gemini(),
        (
            ("native", "executableCode", "part", RAN),
            ("native", "codeExecutionResult", "part", {"codeExecutionResult": CAME}),
            ("text", "Hi."),
            ("media", "image/png", "AA=="),
            ("native", "groundingMetadata", "mark", {"webSearchQueries": ["4"]}),
        ),
        {"logprobsResult": 1},
    ),
    "bedrock": (
        bedrock(),
        (
            ("text", "Hi."),
            ("native", "image", "unknown", {"image": {"format": "png"}}),
            ("native", "citations", "mark", [{"title": "x", "sourceContent": [{"text": "Four."}]}]),
        ),
        {},
    ),
}


def block_outline(block: Block) -> tuple[object, ...]:
    match block:
        case ProviderBlock(name=name, seal=seal):
            return "native", name, seal.kind, json.loads(unquote(seal.data))
        case Media(media_type=media_type, data=data):
            return "media", media_type, data
        case Text():
            return "text", block.text
        case _:
            raise AssertionError(block)


def by_place(blocks: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return the blocks in order, followed by the marks, which have no order."""
    marks = [block for block in blocks if "mark" in block]
    return [block for block in blocks if "mark" not in block] + sorted(marks, key=lambda mark: str(mark[1]))


@pytest.mark.requirement("PROMISE-13")
@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", WIRES)
def test_provider_specific_parts_are_kept_in_place_and_unknown_parts_are_counted(
    name: str, is_streamed: bool
) -> None:
    (stream, body), expected, left_out = WIRES[name]
    decoder = decode(PROFILES[name], stream=is_streamed)
    _, message = run(decoder, [stream if is_streamed else dump_json(body)])
    assert isinstance(message, Message), message
    assert message.text == "Hi."
    assert by_place([block_outline(block) for block in message.blocks]) == by_place(expected)
    assert decoder.left_out == left_out


OWNERS = {name: replace(READERS[name], backend=name) for name in WIRES}


def request_for(name: str, reader: str) -> tuple[str, Report]:
    """Return the request for a reader after an answer of a provider; a strict server accepts it."""
    decoder = decode(PROFILES[name], OWNERS[name])
    _, message = run(decoder, [WIRES[name][0][0]])
    assert isinstance(message, Message)
    history = History([Message("user", [Text("Find it.")]), message, Message("user", [Text("And?")])])
    rendered = render(history, Ledger(), PROFILES[reader], binding=OWNERS[reader])
    body = encode(rendered, model="model-1")
    assert check(body, PROFILES[reader]) == []
    server = strict_host(
        "gemini_2" if reader == "gemini" else reader, Script([])
    )  # the signatures in this test are invented
    sent = adapter(PROFILES[reader]).request(
        rendered._segments, Settings(model="model-1", max_tokens=9), rendered._facts
    )
    assert answer_to(server, OWNERS[reader], sent).status == 200, server.refusals
    return body.decode(), rendered.report


@pytest.mark.requirement("PROMISE-1", "PROMISE-13")
@pytest.mark.parametrize("reader", WIRES)
@pytest.mark.parametrize("name", WIRES)
def test_a_provider_specific_part_is_sent_to_other_providers_as_a_text_note(name: str, reader: str) -> None:
    body, report = request_for(name, reader)
    natives = [block for block in WIRES[name][1] if "native" in block]
    parts = [block for block in natives if "part" in block]
    back = [json.dumps(part[3], separators=(",", ":")) for part in parts]
    assert all((part in body) is (name == reader) for part in back)
    told_of = [block for block in natives if "mark" not in block and not (name == reader and "part" in block)]
    assert body.count("content that only its provider can read") == len(told_of)
    gone = len(natives) - (len(parts) if name == reader else 0)
    assert dict(report.losses).get("native", 0) == gone


def test_a_signed_part_keeps_its_signature_so_that_later_thinking_stays_valid() -> None:
    signed = {**RAN, "thoughtSignature": "c2ln"}
    parts: list[Fields] = [signed, {"text": "Four.", "thoughtSignature": "bW9yZQ=="}]
    decoder = decode(PROFILES["gemini"], OWNERS["gemini"], stream=False)
    _, message = run(decoder, [dump_json(gemini_chunk(*parts, finish="STOP"))])
    assert isinstance(message, Message)
    history = History([Message("user", [Text("2+2?")]), message, Message("user", [Text("And?")])])
    rendered = render(history, Ledger(), PROFILES["gemini"], binding=OWNERS["gemini"])
    assert json.loads(rendered.transcript)[1]["parts"] == parts
    assert check(encode(rendered, model="m"), PROFILES["gemini"]) == []


@pytest.mark.parametrize("place", [0, 1])
def test_an_incomplete_web_search_is_never_sent(place: int) -> None:
    half: Fields = SEARCH if place == 0 else FOUND
    decoder = decode(PROFILES["anthropic"], stream=False)
    _, message = run(decoder, [dump_json({"content": [half, {"type": "text", "text": "Hi."}]})])
    assert isinstance(message, Message)
    assert [block_outline(block)[:3] for block in message.blocks] == [
        ("native", half["type"], "unknown"),
        ("text", "Hi."),
    ]


@pytest.mark.parametrize("places", [(0, 0), (1,), (0,), (1, 0), (0, 1, 1), (0, 1, 0, 1)])
def test_a_server_tool_call_is_sent_once_and_only_with_its_result(
    places: tuple[int, ...],
) -> None:
    owner = OWNERS["anthropic"]
    pair = [
        ProviderBlock(
            str(part["type"]), ProviderState("part", quote(json.dumps(part, separators=(",", ":"))), owner)
        )
        for part in (SEARCH, FOUND)
    ]
    said = Message("assistant", [*(pair[place] for place in places), Text("Hi.")])
    history = History([Message("user", [Text("Find it.")]), said, Message("user", [Text("And?")]), said])
    rendered = render(history, Ledger(), PROFILES["anthropic"], binding=owner)
    body = encode(rendered, model="m")
    assert check(body, PROFILES["anthropic"]) == []
    whole = 1 if places[:2] == (0, 1) else 0
    assert (body.count(b'"id":"srvtoolu_1"'), body.count(b'"tool_use_id":"srvtoolu_1"')) == (whole, whole)
    assert body.count(b"content that only its provider can read") == 2 * (len(places) - whole)


def test_provider_specific_parts_of_a_partial_answer_are_dropped_and_counted() -> None:
    decoder = decode(PROFILES["anthropic"])
    stream = WIRES["anthropic"][0][0]
    run(decoder, [stream[: stream.rindex(b"content_block_stop")]])
    assert [block_outline(block)[:2] for block in decoder.partial_message().blocks] == [
        ("text", "Hi."),
        ("native", "citations"),
    ]
    assert decoder.left_out == {"server_tool_use": 1, "web_search_tool_result": 1}


def test_after_a_second_message_start_event_only_later_parts_are_kept() -> None:
    begun: Fields = {"type": "message_start", "message": {}}
    decoder = decode(PROFILES["anthropic"])
    run(decoder, [anthropic_stream(begun, start(0, **SEARCH), stop(0), begun, start(0, **FOUND), stop(0))])
    assert [block_outline(block)[1] for block in decoder.close().blocks] == ["web_search_tool_result"]


def test_the_number_of_recorded_unknown_part_types_is_limited() -> None:
    for value in ({"a": 1}, [1]):
        decoder = decode(PROFILES["openai_chat"])
        _, message = run(
            decoder, [openai_stream(*(chunk({f"{at}" * 90: value}) for at in range(500)), chunk({}, "stop"))]
        )
        assert isinstance(message, Message)
        kinds = [*decoder.left_out, *(str(block_outline(block)[1]) for block in message.blocks)]
        assert len(kinds) == 64
        assert max(map(len, kinds)) == 64


@pytest.mark.parametrize("name", ["ollama", "glm", "vllm", "qwen", "groq", "openai_compatible"])
@pytest.mark.parametrize(
    "said",
    [{"reasoning": "Hm."}, {"reasoning_content": "Hm."}, {"reasoning": "Hm.", "reasoning_content": "Hm."}],
)
def test_reasoning_that_appears_in_two_fields_is_decoded_once(name: str, said: Fields) -> None:
    stream = openai_stream(chunk(said), chunk({"content": "Hi."}), chunk({}, "stop"))
    body = {
        "choices": [{"message": {"role": "assistant", "content": "Hi.", **said}, "finish_reason": "stop"}]
    }
    for decoder, given in (
        (decode(PROFILES[name]), stream),
        (decode(PROFILES[name], stream=False), dump_json(body)),
    ):
        _, message = run(decoder, [given])
        assert isinstance(message, Message)
        assert [(type(block).__name__, getattr(block, "text", "")) for block in message.blocks] == [
            ("Thinking", "Hm."),
            ("Text", "Hi."),
        ]
        assert decoder.left_out == {}


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("said", ["reasoning", "reasoning_content"])
def test_reasoning_is_sent_in_the_field_that_the_profile_specifies(
    field: Literal["reasoning", "reasoning_content"], said: str
) -> None:
    ollama = PROFILES["ollama"]
    assert isinstance(ollama, ChatDialect)
    reasons = replace(
        ollama.reasoning, carrier="reasoning_content", binding="model", may_be_alone=False, field=field
    )
    profile = replace(ollama, reasoning=reasons)
    owner = READERS["ollama"]
    decoder = decode(profile, owner)
    _, message = run(
        decoder, [openai_stream(chunk({said: "Hm."}), chunk({"content": "Hi."}), chunk({}, "stop"))]
    )
    assert isinstance(message, Message)
    history = History([Message("user", [Text("Hello?")]), message, Message("user", [Text("And?")])])
    rendered = render(history, Ledger(), profile, binding=owner)
    assistant = json.loads(rendered.transcript)[1]
    assert assistant == {"role": "assistant", field: "Hm.", "content": "Hi."}
    assert check(encode(rendered, model="m"), profile) == []
    unlike = replace(reasons, field="reasoning" if field == "reasoning_content" else "reasoning_content")
    other = replace(profile, reasoning=unlike)
    assert check(encode(rendered, model="m"), other) != []
    sent = adapter(profile).request(rendered._segments, Settings(model="model-1"), rendered._facts)
    server = strict_host("ollama", Script([]))
    assert answer_to(server, owner, sent).status == 200, server.refusals


@pytest.mark.parametrize("is_streamed", [True, False], ids=["streamed", "whole"])
def test_an_ignored_call_signature_of_googles_chat_api_is_counted(is_streamed: bool) -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    function = {"name": "read", "arguments": "{}"}
    call = {"index": 0, "id": "x", "type": "function", "function": function, "extra_content": signed}
    stream = openai_stream(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"))
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    profile = PROFILES["openai_compatible"]
    decoder = decode(profile, stream=is_streamed)
    _, message = run(decoder, [stream if is_streamed else dump_json(body)])
    assert isinstance(message, Message)
    assert ([call.name for call in message.calls], decoder.left_out) == (["read"], {"extra_content": 1})
