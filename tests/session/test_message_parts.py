"""Messages of several parts: text, images and documents."""

from typing import Any

import pytest

from actors import Media, Message, Text
from actors.errors import SessionError
from actors.testing import Say, Turn
from actors.testing.images import png, png_base64
from tests.runtime_support import anthropic, bodies, openai
from tests.scripted import scripted

PNG = Media.from_bytes(png(), "image/png")


def test_media_are_created_from_bytes_or_a_url() -> None:
    assert Media("image/png", png_base64()) == PNG
    assert Media.from_url("https://x.example/a.png", "image/png").url == "https://x.example/a.png"


@pytest.mark.anyio
@pytest.mark.parametrize("make_server", [openai, anthropic])
async def test_the_parts_of_a_user_message_are_sent_in_order(make_server: Any) -> None:  # Any: a server
    async with scripted(make_server(Turn(Say("a cat")))) as (server, _, session):
        assert (await session.ask(["What is this?", PNG, Text("Be brief.")])).text == "a cat"
        (body,) = bodies(server)
        assert [part["type"] for part in body["messages"][-1]["content"]][0::2] == ["text", "text"]
        assert len(body["messages"][-1]["content"]) == 3
        history = await session.history()
        assert history[0].blocks == (Text("What is this?"), PNG, Text("Be brief."))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "The message of an ask is an empty list; pass at least one part"),
        (["a", 3], "Part 1 of the message must be a string, Text or Media, not int"),
        ([Message("user")], "Part 0 of the message must be a string, Text or Media, not Message"),
    ],
    ids=["empty", "number", "message"],
)
async def test_an_invalid_part_raises_a_short_error(
    words: Any, says: str
) -> None:  # Any: any value that a caller may pass
    async with scripted("openai_chat") as (_, _, session):
        with pytest.raises(SessionError) as refused:
            await session.ask(words)
        assert str(refused.value) == says
