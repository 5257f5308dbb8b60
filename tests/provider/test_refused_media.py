"""If a provider refuses an attachment, the request is repeated, and a note replaces the attachment in that lane."""

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from struct import pack
from typing import Any

import pytest

from actors import Media, tool
from actors.core.log.events import EpochBegan
from actors.core.render import media_name
from actors.core.stream_events.round_events import LaneRewrittenEvent
from actors.core.values.content import Block, Message, Text
from actors.strict.rules.base import Json
from actors.strict.server import LoopbackServer
from actors.testing import Call, ErrorInStream, Say, Script, Status, Turn
from tests.provider.test_failover import pool
from tests.runtime_support import gather_events, log, runtime_with
from tests.scripted import scripted
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio


def png(shade: int) -> Media:
    """Return an image of one pixel."""
    chunks = [
        (b"IHDR", pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes((0, shade)))),
        (b"IEND", b""),
    ]
    written = [
        pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return Media("image/png", b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(written)).decode())


GOOD, BAD, WORSE = png(1), png(2), png(3)
NOTE = "[An attachment of type image/png was omitted here; the provider refused it.]"
WORDS = {
    "openai_chat": "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png'].",
    "openai_responses": "The image data you provided does not represent a valid image.",
    "anthropic": "Could not process image",
    "gemini": "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide",
    "bedrock": "The model returned the following errors: Could not process image",
    "mistral": "Image content could not be loaded: cannot identify image file",
    "openrouter": "No endpoints found that support image input",
}
"""How each host says that it cannot use an image, without a word on which."""
PLACES = {
    "openai_chat": "Invalid 'messages[{message}].content[{part}].image_url'. Expected a valid image.",
    "openai_responses": "Invalid 'input[{message}].content[{part}].image_url'. Expected a valid image.",
    "anthropic": "messages.{message}.content.{part}.image.source.base64.data: At least one of the image dimensions "
    "exceed max allowed size: 8000 pixels",
    "gemini": "Invalid value at 'contents[{message}].parts[{part}].inline_data.data' (TYPE_BYTES)",
}
"""How hosts say which of the images."""


def human(*blocks: Block) -> Message:
    return Message("user", [Text("Look at this."), *blocks])


def messages(request: Json) -> Any:  # Any: a body under test
    return next(request[key] for key in ("messages", "input", "contents") if key in request)


def place_of(request: Json, media: Media) -> tuple[int, int] | None:
    """Return the message and the part of a body that hold an attachment."""
    for at, message in enumerate(messages(request)):
        held = message.get("content", message.get("parts"))
        for part, block in enumerate(held if isinstance(held, list) else ()):
            if media.data in json.dumps(block):
                return at, part
    return None


def refusing(name: str, *refused: Media, pointing: bool = False) -> Callable[[int, Json], Status | None]:
    """Return faults that refuse the first of these attachments that a request holds."""

    def fault(_: int, request: Json) -> Status | None:
        for media in refused:
            if media.data in json.dumps(request):
                at = place_of(request, media)
                assert at is not None or not pointing
                words = PLACES[name].format(message=at[0], part=at[1]) if pointing and at else WORDS[name]
                return Status(400, message=words)
        return None

    return fault


def host(name: str, *turns: Turn, **faults: Any) -> LoopbackServer:  # Any: faults
    server = strict_host(name, Script(list(turns)))
    server.faults = faults.get("faults") or {}
    return server


def sent_media(server: LoopbackServer) -> list[str]:
    """Return the bodies a server received, as JSON."""
    return [exchange.body.decode() for exchange in server.requests]


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-2", "PROMISE-4")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", WORDS)
async def test_a_refused_image_is_replaced_by_a_note_and_the_session_stays_usable(
    name: str, stream: bool
) -> None:
    server = host(name, Turn(Say("I see.")), Turn(Say("Still here.")), faults=refusing(name, BAD))
    async with runtime_with(a=server, stream=stream) as runtime:
        session = await runtime.open("a")
        answer = await session.ask(human(BAD))
        assert (answer.status, answer.text) == ("complete", "I see.")
        assert answer.losses["media"] == 1
        (refused,) = answer.refusals
        assert (refused.kind, refused.reason, refused.binding.backend) == ("media", WORDS[name], "a")
        assert (await session.ask("And now?")).text == "Still here."
        (began,) = [event for event in log(runtime, session) if isinstance(event, EpochBegan)]
        assert (began.reason, began.media, began.detail) == ("media", (media_name(BAD),), WORDS[name])
        assert runtime.stats().backends["a"].refused_media == 1
        assert runtime._refused_requests.count == 0
        assert BAD in (await session.history())[0].blocks
    first, second, third = sent_media(server)
    assert BAD.data in first
    assert BAD.data not in second + third
    assert NOTE in second
    assert NOTE in third
    assert server.refusals == []


@pytest.mark.alternating
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", PLACES)
async def test_only_the_images_that_a_refusal_identifies_are_replaced_by_notes(
    name: str, stream: bool
) -> None:
    server = host(name, Turn(Say("I see.")), faults=refusing(name, BAD, WORSE, pointing=True))
    async with scripted(server, is_streamed=stream) as (_, runtime, session):
        answer = await session.ask(human(GOOD, BAD, GOOD, WORSE))
        assert (answer.status, answer.losses["media"]) == ("complete", 2)
        epochs = [event.media for event in log(runtime, session) if isinstance(event, EpochBegan)]
        assert epochs == [(media_name(BAD),), (media_name(WORSE),)]
    assert sent_media(server)[-1].count(GOOD.data) == 2
    assert sent_media(server)[-1].count(NOTE) == 2


async def test_an_accepted_image_is_still_sent_after_a_new_image_is_refused() -> None:
    turns = Turn(Say("One.")), Turn(Say("Two."))
    async with scripted(host("anthropic", *turns, faults=refusing("anthropic", BAD))) as (server, _, session):
        await session.ask(human(GOOD))
        assert (await session.ask(human(BAD))).text == "Two."
    assert GOOD.data in sent_media(server)[-1]
    assert BAD.data not in sent_media(server)[-1]


async def test_all_images_are_replaced_by_notes_if_a_refused_request_has_no_new_image() -> None:
    """For example, the link of an image that was accepted earlier has expired."""
    turns = Turn(Say("One.")), Turn(Say("Two."))
    server = host("anthropic", *turns)
    server.faults = lambda number, request: refusing("anthropic", BAD)(number, request) if number else None
    async with scripted(server) as (_, _, session):
        await session.ask(human(GOOD, BAD))
        assert (await session.ask("And?")).text == "Two."
    assert sent_media(server)[-1].count(NOTE) == 2


@tool
def camera() -> Sequence[object]:
    """Take a picture."""
    return ["A picture:", BAD]


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-2")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"])
async def test_the_ledger_keeps_a_result_whose_image_was_refused(name: str, stream: bool) -> None:
    server = host(
        name, Turn(Call("camera", {})), Turn(Say("Done.")), Turn(Say("More.")), faults=refusing(name, BAD)
    )
    async with scripted(server, tools=[camera], is_streamed=stream) as (_, _, session):
        assert (await session.ask("Take one.")).text == "Done."
        assert (await session.ask("And?")).text == "More."
        (interaction,) = (await session.ledger()).interactions()
        assert interaction.completion is not None
        assert interaction.completion.media == (BAD,)
    assert BAD.data not in sent_media(server)[-1]
    assert "A picture:" in sent_media(server)[-1]
    assert NOTE in sent_media(server)[-1]


async def test_an_image_refused_by_an_error_inside_a_stream_is_replaced_by_a_note_too() -> None:
    for name in ("openai_chat", "anthropic", "openai_responses"):
        server = host(name, Turn(Say("I see.")))
        server.faults = lambda number, request: (
            ErrorInStream(0, 400, message="Could not process image")
            if BAD.data in json.dumps(request)
            else None
        )
        async with scripted(server) as (_, _, session):
            answer = await session.ask(human(BAD))
            assert (answer.status, answer.text) == ("complete", "I see.")
        assert NOTE in sent_media(server)[-1]


async def test_an_image_that_one_backend_refused_is_still_sent_to_another_backend() -> None:
    one = host("anthropic", Turn(Say("One.")), faults=refusing("anthropic", BAD))
    two = host("openai_chat", Turn(Say("Two.")))
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a")
        await session.ask(human(BAD))
        await session.switch("b")
        assert (await session.ask("And?")).text == "Two."
    assert BAD.data in sent_media(two)[0]


async def test_a_pool_fails_over_if_a_member_keeps_refusing_attachments() -> None:
    always = Status(400, message=WORDS["anthropic"])
    one = host("anthropic", faults=dict.fromkeys(range(10), always))
    two = host("openai_chat", Turn(Say("Two.")))
    async with runtime_with(a=one, b=two, pools=pool("a", "b")) as runtime:
        session = await runtime.open("pool")
        answer = await session.ask(human(GOOD, BAD))
        assert (answer.status, answer.text) == ("complete", "Two.")
        assert [each.binding.backend for each in answer.attempts] == ["a", "b"]
    assert one.received <= 5
    assert BAD.data in sent_media(two)[0]


async def test_a_stream_shows_when_notes_replace_attachments() -> None:
    server = host("openai_chat", Turn(Say("I see.")), faults=refusing("openai_chat", BAD))
    async with scripted(server) as (_, _, session):
        shown = await gather_events(session, human(BAD))
    (rewritten,) = [event for event in shown if isinstance(event, LaneRewrittenEvent)]
    assert (rewritten.reason, rewritten.detail) == ("media", WORDS["openai_chat"])


async def test_a_refused_image_stays_a_note_after_the_session_is_rebuilt_and_compacted() -> None:
    turns = [Turn(Say(f"Answer {number}. " * 40)) for number in range(4)]
    server = host(
        "anthropic", *turns, Turn(Say("Summary.")), Turn(Say("Last.")), faults=refusing("anthropic", BAD)
    )
    async with scripted(server) as (_, _, session):
        await session.ask(human(GOOD))
        for number in range(3):
            await session.ask(human(BAD) if number == 2 else "Go on.")
        await session.compact()
        await session.ask("And?")
    assert BAD.data not in "".join(sent_media(server)[-2:])


@pytest.mark.requirement("PROMISE-1")
async def test_a_media_refusal_of_a_request_without_media_is_counted_as_a_bug_of_this_library() -> None:
    server = host("openai_chat", Turn(Say("Here.")), faults={0: Status(400, message=WORDS["openai_chat"])})
    async with scripted(server) as (_, runtime, session):
        answer = await session.ask("Hello.", check=False)
        assert answer.status == "failed"
        assert [each.kind for each in answer.refusals] == ["transcript"]
        assert runtime._refused_requests.count == 1
