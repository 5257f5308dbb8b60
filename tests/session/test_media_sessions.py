"""Sessions whose users and tools show images and documents, over strict servers of Gemini, Vertex AI and Bedrock."""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise, permutations
from typing import Any

import pytest

from actors import Media, tool
from actors.core.values.content import Block, Message, Text
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.strict.rules.base import Json
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Script, Turn
from actors.testing.images import png_base64
from tests.runtime_support import bodies, hosting
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

IMAGE = Media("image/png", png_base64())
PLAN = Media("application/pdf", "cGxhbg==")
NOTED = "stood here; the conversation holds as many as can be shown.]"
NAMES = ("gemini", "vertex", "bedrock")
SECONDS = 300


def page(number: int) -> Media:
    return Media("application/pdf", f"{number:04}")


@tool
def scan() -> Sequence[object]:
    """Scan what lies there."""
    return ["A page and a photo:", PLAN, IMAGE]


@tool
def drawer() -> Sequence[object]:
    """Take out all pages of the drawer."""
    return [f"{number} taken out" for number in range(2)] + [page(number) for number in range(8)]


def served(name: str, calls: str = "scan") -> LoopbackServer:
    """A strict host whose model calls a tool once in each turn, and then is content."""

    def turn(request: Json) -> Turn:
        answered = any(kind == "result" for kind, _ in last(request))
        return Turn(Say("Thanks.")) if answered else Turn(Say("Let me see."), Call(calls, {}))

    return strict_host(name, Script(turn), host=name)


def hosted(servers: dict[str, LoopbackServer]) -> AbstractAsyncContextManager[Runtime]:
    gemini, vertex, bedrock = (servers[name] for name in NAMES)
    return hosting(seconds=SECONDS, gemini=gemini, vertex=vertex, bedrock=bedrock)


def human(*blocks: Block) -> Message:
    return Message("user", [Text("Look at this."), *blocks])


# ---- what a body shows


def said(body: Any) -> list[tuple[str, list[Any]]]:  # Any: a body under test, and its blocks
    """The messages of a body of either wire: role and blocks."""
    if "contents" in body:
        return [(content["role"], content["parts"]) for content in body["contents"]]
    return [(message["role"], message["content"]) for message in body["messages"]]


def blocks(body: Any) -> list[str]:  # Any: likewise
    """All blocks of a body in order, each with its role, as JSON."""
    return [f"{role} {json.dumps(block)}" for role, held in said(body) for block in held]


def last(body: Any) -> list[tuple[str, str]]:  # Any: likewise
    """What the last message holds: its kinds of blocks, those in results included."""
    return list(_items(said(body)[-1][1]))


def shown(body: Any) -> list[tuple[str, str]]:  # Any: likewise
    """The attachments of a body in order: the kind, and the name of a document or its bytes where it has none."""
    items = [item for _, held in said(body) for item in _items(held)]
    return [item for item in items if item[0] in ("image", "document")]


def _items(held: list[Any]) -> Iterator[tuple[str, str]]:  # Any: likewise
    for block in held:
        match block:
            case {"inlineData": {"mimeType": media_type, "data": data}}:
                yield ("image" if media_type.startswith("image/") else "document"), data
            case {"functionResponse": response}:
                yield "result", ""
                yield from _items(response.get("parts", []))
            case {"toolResult": result}:
                yield "result", ""
                yield from _items(result["content"])
            case {"image": _}:
                yield "image", ""
            case {"document": document}:
                yield "document", document["name"]
            case _:
                pass


def documents(body: Any) -> list[str]:  # Any: likewise
    return [name for kind, name in shown(body) if kind == "document"]


def assert_accepted(*servers: LoopbackServer) -> None:
    """Nothing was refused, and each request begins with the one before."""
    for server in servers:
        assert server.refusals == []
        assert {exchange.status for exchange in server.requests} <= {200}
        for before, after in pairwise(map(blocks, bodies(server))):
            assert after[: len(before)] == before


async def look(session: Session, where: str, *media: Media) -> None:
    await session.switch(where)
    assert (await session.ask(human(*media))).text == "Thanks."


# ---- sessions


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "PROMISE-11", "REQ-915-041", "REQ-915-042")
@pytest.mark.parametrize("route", list(permutations(NAMES)), ids="-".join)
async def test_media_of_messages_and_results_go_round_all_three_and_back(route: tuple[str, ...]) -> None:
    servers = {name: served(name) for name in NAMES}
    async with hosted(servers) as runtime:
        session = await runtime.open(route[0], tools=[scan])
        for where in (*route, route[0]):
            await look(session, where, IMAGE, PLAN) if where != route[1] else await look(session, where)
    assert_accepted(*servers.values())
    whole = bodies(servers[route[0]])[-1]
    assert len(shown(whole)) == 3 * 2 + 4 * 2 - 2 * (route[0] == "bedrock")
    assert len(documents(whole)) == (5 if route[0] == "bedrock" else 3 + 4)


@pytest.mark.requirement("PROMISE-1", "PROMISE-3")
async def test_the_same_document_again_and_again_has_a_name_of_its_own_each_time_on_bedrock() -> None:
    servers = {name: served(name) for name in NAMES}
    async with hosted(servers) as runtime:
        session = await runtime.open("bedrock", tools=[scan])
        for where in ("bedrock", "gemini", "bedrock"):
            await look(session, where, PLAN)
    assert_accepted(*servers.values())
    names = [documents(body) for body in bodies(servers["bedrock"])]
    assert [len(given) for given in names] == [1, 2, 5, 5]
    assert all(len(set(given)) == len(given) for given in names)
    assert documents(bodies(servers["gemini"])[-1]) == [PLAN.data] * 4


@pytest.mark.requirement("PROMISE-1", "PROMISE-4")
async def test_what_bedrock_cannot_hold_any_more_is_noted_there_and_shown_elsewhere() -> None:
    servers = {name: served(name, "drawer") for name in NAMES}
    async with hosted(servers) as runtime:
        session = await runtime.open("bedrock", tools=[drawer])
        await look(session, "bedrock", *map(page, range(4)), *[IMAGE] * 14)
        await look(session, "vertex", IMAGE)
        losses = {name: (await session.preview(name)).losses.get("media", 0) for name in NAMES}
        await look(session, "bedrock", IMAGE, PLAN)
    assert_accepted(*servers.values())
    first, *_, whole = bodies(servers["bedrock"])
    kinds = [kind for kind, _ in shown(whole)]
    assert (kinds.count("document"), kinds.count("image")) == (5, 15)
    assert shown(whole)[:18] == shown(first)
    media = 4 + 14 + 8 + 1 + 8 + 2 + 8
    assert json.dumps(whole).count(NOTED) == media - 20
    assert len(shown(bodies(servers["vertex"])[-1])) == 4 + 14 + 8 + 1 + 8
    assert losses == {"gemini": 0, "vertex": 0, "bedrock": 8}
