"""What an ask says in several parts: texts, images, documents."""

from typing import Any

import pytest

from actors import Media, Message, Text
from actors.errors import SessionError
from actors.testing import Say, Turn
from actors.testing.images import png, png_base64
from tests.runtime_support import anthropic, bodies, hosting, openai

PNG = Media.from_bytes(png(), "image/png")


def test_media_are_made_of_bytes_or_of_an_address() -> None:
    assert Media("image/png", png_base64()) == PNG
    assert Media.from_url("https://x.example/a.png", "image/png").url == "https://x.example/a.png"


@pytest.mark.anyio
@pytest.mark.parametrize("made", [openai, anthropic])
async def test_parts_are_sent_in_their_order(made: Any) -> None:  # Any: a server
    server = made(Turn(Say("a cat")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a")
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
        ([], "An ask says something; this is an empty list"),
        (["a", 3], "An ask takes texts, Text and Media; part 1 is of type int"),
        ([Message("user")], "An ask takes texts, Text and Media; part 0 is of type Message"),
    ],
    ids=["empty", "number", "message"],
)
async def test_what_is_no_part_is_refused_in_one_line(
    words: Any, says: str
) -> None:  # Any: what a caller may give
    async with hosting(a=openai()) as runtime:
        session = await runtime.open("a")
        with pytest.raises(SessionError) as refused:
            await session.ask(words)
        assert str(refused.value) == says
