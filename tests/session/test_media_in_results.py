"""Media in tool results: each provider receives an image in its own form, and the log keeps it in the result."""

import json
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import anyio
import pytest

from actors import Media, ToolCall, tool
from actors.core.dialects.profiles import PROFILES
from actors.core.log.call_events import Returned
from actors.core.values.content import Message, Text, ToolResult
from actors.strict.rules import validate
from actors.strict.server import LoopbackServer
from actors.testing import Call, ResponsesServer, Say, Turn
from actors.testing.images import png_base64
from actors.transcripts import History, Ledger, check, dialect, encode, from_wire, render
from tests.core.session_log import TRUSTING
from tests.runtime_support import (
    Json,
    anthropic,
    assert_paired,
    bodies,
    log,
    openai,
    runtime_with,
)

PIXEL = png_base64()
DATA_URL = f"data:image/png;base64,{PIXEL}"
IMAGE = Media("image/png", PIXEL)
FOLLOWS = "[Attachment 1, of type image/png, follows the tool results.]"
SOURCE = {"type": "base64", "media_type": "image/png", "data": PIXEL}
WORK = (Turn(Call("camera", {}), Call("photos", {})), Turn(Say("Nice.")))


@tool
def camera() -> Media:
    """Take a picture, in a worker thread."""
    return IMAGE


@tool
async def photos() -> Sequence[object]:
    """Look into the album."""
    await anyio.lowlevel.checkpoint()
    return ["Two photos:", IMAGE, Media("image/png", PIXEL), "from Oslo."]


def result_contents(body: Json) -> list[Any]:  # Any: the content of a result, in any form
    """Return the content of each tool result of a body, in order."""
    if "input" in body:
        return [item["output"] for item in body["input"] if item["type"] == "function_call_output"]
    found = []
    for message in body["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message.get("content"), list):
            found += [block["content"] for block in message["content"] if block["type"] == "tool_result"]
    return found


def parts_after_results(body: Json) -> list[Any]:  # Any: the parts of a message
    """Return the parts of the user message that follows the results in a Chat Completions body."""
    roles = [message["role"] for message in body["messages"]]
    at = len(roles) - roles[::-1].index("tool")
    assert roles[at] == "user"
    content: list[Any] = body["messages"][at]["content"]
    return content


def assert_claude_sees(body: Json) -> None:
    picture = {"type": "image", "source": SOURCE}
    words = {"type": "text", "text": "Two photos:\nfrom Oslo."}
    assert result_contents(body) == [[picture], [words, picture, picture]]


def assert_responses_sees(body: Json) -> None:
    picture = {"type": "input_image", "detail": "auto", "image_url": DATA_URL}
    words = {"type": "input_text", "text": "Two photos:\nfrom Oslo."}
    assert result_contents(body) == [[picture], [words, picture, picture]]


def assert_chat_sees(body: Json) -> None:
    """Check that the results are text that announces the attachments, and that these follow."""
    first, second = result_contents(body)
    assert first == FOLLOWS
    assert second.startswith("Two photos:\nfrom Oslo.\n[Attachment 2")
    parts = parts_after_results(body)
    assert [part["type"] for part in parts] == ["text", "image_url"] * 3
    assert parts[1]["image_url"]["url"] == DATA_URL
    assert_paired(body)


def responses(*turns: Turn) -> ResponsesServer:
    return ResponsesServer(list(turns))


SEES = {anthropic: assert_claude_sees, openai: assert_chat_sees, responses: assert_responses_sees}


@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-1", "PROMISE-3")
@pytest.mark.parametrize(("make_server", "other"), list(permutations(SEES, 2)))
async def test_an_image_in_a_tool_result_is_sent_to_every_provider_family(
    make_server: Callable[..., LoopbackServer], other: Callable[..., LoopbackServer]
) -> None:
    one, two = make_server(*WORK, Turn(Say("Still nice."))), other(Turn(Say("Yes.")))
    async with runtime_with(one=one, two=two) as runtime:
        session = await runtime.open("one", tools=[camera, photos])
        for target, said in (("one", "Nice."), ("two", "Yes."), ("one", "Still nice.")):
            await session.switch(target)
            assert (await session.ask("Look.")).text == said
        events = [event for event in log(runtime, session) if isinstance(event, Returned)]
        assert sorted((event.media for event in events), key=len) == [(IMAGE,), (IMAGE, IMAGE)]
    assert one.refusals == two.refusals == []
    for server, make in ((one, make_server), (two, other)):
        SEES[make](bodies(server)[-1])


# ---- pure functions


def transcript_with_result(content: object) -> list[Json]:
    """Return an Anthropic transcript with a tool result of this content."""
    return [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "camera", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]},
    ]


def convert(transcript: object, old: str, new: str) -> Json:
    """Convert a transcript to another dialect, whose rules accept it."""
    body = encode(render(*from_wire(transcript, old), dialect(new)), model="m")
    assert check(body, dialect(new)) == []
    assert validate(body, new, mode="strict", settings=TRUSTING.get(new)) is None
    said: Json = json.loads(body)
    return said


CONTENT = [{"type": "text", "text": "seen"}, {"type": "image", "source": SOURCE}]


@pytest.mark.parametrize("there", PROFILES)
def test_an_image_in_a_tool_result_survives_conversion_to_any_dialect_and_back(there: str) -> None:
    away = convert(transcript_with_result(CONTENT), "anthropic", there)
    back = json.dumps(convert(away, there, "anthropic"))
    assert back.count("seen") == 1
    assert back.count(PIXEL) == (
        "image" in dialect(there).media.result_kinds | dialect(there).media.user_kinds
    )


@pytest.mark.parametrize("there", [name for name, profile in PROFILES.items() if profile.media.result_kinds])
def test_an_image_stays_in_the_result_if_the_dialect_supports_it(there: str) -> None:
    away = convert(transcript_with_result(CONTENT), "anthropic", there)
    back = convert(away, there, "anthropic")["messages"]
    assert back[-1]["content"][0]["content"] == CONTENT


def test_an_image_follows_the_result_if_the_dialect_allows_only_text_in_results() -> None:
    *_, answer, follow = convert(transcript_with_result(CONTENT), "anthropic", "openai_chat")["messages"]
    assert (answer["role"], answer["content"]) == ("tool", f"seen\n{FOLLOWS}")
    assert [part["type"] for part in follow["content"]] == ["text", "image_url"]


def test_gemini_2_receives_the_image_after_the_response() -> None:
    old, new = (
        convert(transcript_with_result(CONTENT), "anthropic", name)["contents"]
        for name in ("gemini_2", "gemini")
    )
    response, *behind = old[-1]["parts"]
    assert "parts" not in response["functionResponse"]
    assert "inlineData" in behind[-1]
    assert new[-1]["parts"] == [
        {
            "functionResponse": {
                "name": "camera",
                "response": {"output": "seen"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
            }
        }
    ]


def test_bedrock_names_documents_in_results_and_omits_empty_text() -> None:
    image, document = Media("image/png", PIXEL), Media("application/pdf", "aGk=")
    said = [
        Message("user", [Text("Look.")]),
        Message("assistant", [ToolCall("c1", "camera")]),
        Message("tool", [ToolResult("c1", "", media=[image, document])]),
    ]
    body = encode(render(History(said), Ledger(), dialect("bedrock")), model="m")
    assert check(body, dialect("bedrock")) == []
    content = json.loads(body)["messages"][-1]["content"][0]["toolResult"]["content"]
    assert [next(iter(part)) for part in content] == ["image", "text", "document"]
    assert content[0] == {"image": {"format": "png", "source": {"bytes": PIXEL}}}


def test_a_text_result_is_written_unchanged() -> None:
    messages = convert(transcript_with_result("seen"), "anthropic", "anthropic")["messages"]
    assert messages[-1]["content"][0]["content"] == "seen"


@pytest.mark.parametrize("name", PROFILES)
def test_incremental_rendering_equals_rendering_at_once(name: str) -> None:
    target = dialect(name)
    said = [
        Message("user", [Text("Look.")]),
        Message("assistant", [ToolCall("c1", "camera"), ToolCall("c2", "camera")]),
        Message("tool", [ToolResult("c1", "a", media=[IMAGE]), ToolResult("c2", "b")]),
        Message("user", [Text("And?")]),
        Message("assistant", [Text("Yes.")]),
        Message("user", [Text("Good.")]),
    ]
    rendered, sent = render(History(said[:1]), Ledger(), target), b""
    for end in (3, 4, 6):
        rendered = render(History(said[:end]), Ledger(), target, rendered.lane)
        before, sent = sent, b"".join(rendered.lane._segments)
        assert sent.startswith(before)
    whole = render(History(said), Ledger(), target)
    assert encode(rendered, model="m", cache="off") == encode(whole, model="m", cache="off")
