"""Sessions with images and documents from users and tools, on strict Gemini, Vertex AI and Bedrock servers."""

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
from tests.runtime_support import bodies, runtime_with
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

IMAGE = Media("image/png", png_base64())
PLAN = Media("application/pdf", "cGxhbg==")
NOTED = "was omitted here; the conversation already contains as many as the provider accepts.]"
NAMES = ("gemini", "vertex", "bedrock")
SECONDS = 300


def page(number: int) -> Media:
    return Media("application/pdf", f"{number:04}")


@tool
def scan() -> Sequence[object]:
    """Scan a page and a photo."""
    return ["A page and a photo:", PLAN, IMAGE]


@tool
def drawer() -> Sequence[object]:
    """Return all pages of the drawer."""
    return [f"{number} taken out" for number in range(2)] + [page(number) for number in range(8)]


def host_calling(name: str, calls: str = "scan") -> LoopbackServer:
    """Return a strict server whose model calls one tool per turn and then answers."""

    def turn(request: Json) -> Turn:
        answered = any(kind == "result" for kind, _ in last_kinds(request))
        return Turn(Say("Thanks.")) if answered else Turn(Say("Let me see."), Call(calls, {}))

    return strict_host(name, Script(turn), host=name)


def runtime_over(servers: dict[str, LoopbackServer]) -> AbstractAsyncContextManager[Runtime]:
    gemini, vertex, bedrock = (servers[name] for name in NAMES)
    return runtime_with(seconds=SECONDS, gemini=gemini, vertex=vertex, bedrock=bedrock)


def user_message(*blocks: Block) -> Message:
    return Message("user", [Text("Look at this."), *blocks])


# ---- media in a body


def role_blocks(body: Any) -> list[tuple[str, list[Any]]]:  # Any: a body under test, and its blocks
    """Return the messages of a body of either wire format as pairs of role and blocks."""
    if "contents" in body:
        return [(content["role"], content["parts"]) for content in body["contents"]]
    return [(message["role"], message["content"]) for message in body["messages"]]


def blocks(body: Any) -> list[str]:  # Any: likewise
    """Return all blocks of a body in order, each with its role, as JSON."""
    return [f"{role} {json.dumps(block)}" for role, held in role_blocks(body) for block in held]


def last_kinds(body: Any) -> list[tuple[str, str]]:  # Any: likewise
    """Return the kinds of blocks in the last message, including those in results."""
    return list(_items(role_blocks(body)[-1][1]))


def attachments(body: Any) -> list[tuple[str, str]]:  # Any: likewise
    """Return the attachments of a body in order: the kind, and the name of a document, or else its bytes."""
    items = [item for _, held in role_blocks(body) for item in _items(held)]
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
    return [name for kind, name in attachments(body) if kind == "document"]


def assert_accepted(*servers: LoopbackServer) -> None:
    """Check that no request was refused, and that each request begins with the previous one."""
    for server in servers:
        assert server.refusals == []
        assert {exchange.status for exchange in server.requests} <= {200}
        for before, after in pairwise(map(blocks, bodies(server))):
            assert after[: len(before)] == before


async def ask_with_media(session: Session, where: str, *media: Media) -> None:
    await session.switch(where)
    assert (await session.ask(user_message(*media))).text == "Thanks."


# ---- sessions


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "PROMISE-11", "REQ-915-041", "REQ-915-042")
@pytest.mark.parametrize("route", list(permutations(NAMES)), ids="-".join)
async def test_attachments_survive_switches_through_three_providers_and_back(route: tuple[str, ...]) -> None:
    servers = {name: host_calling(name) for name in NAMES}
    async with runtime_over(servers) as runtime:
        session = await runtime.open(route[0], tools=[scan])
        for where in (*route, route[0]):
            await ask_with_media(session, where, IMAGE, PLAN) if where != route[1] else await ask_with_media(
                session, where
            )
    assert_accepted(*servers.values())
    whole = bodies(servers[route[0]])[-1]
    assert len(attachments(whole)) == 3 * 2 + 4 * 2 - 2 * (route[0] == "bedrock")
    assert len(documents(whole)) == (5 if route[0] == "bedrock" else 3 + 4)


@pytest.mark.requirement("PROMISE-1", "PROMISE-3")
async def test_bedrock_names_a_repeated_document_differently_each_time() -> None:
    servers = {name: host_calling(name) for name in NAMES}
    async with runtime_over(servers) as runtime:
        session = await runtime.open("bedrock", tools=[scan])
        for where in ("bedrock", "gemini", "bedrock"):
            await ask_with_media(session, where, PLAN)
    assert_accepted(*servers.values())
    names = [documents(body) for body in bodies(servers["bedrock"])]
    assert [len(given) for given in names] == [1, 2, 5, 5]
    assert all(len(set(given)) == len(given) for given in names)
    assert documents(bodies(servers["gemini"])[-1]) == [PLAN.data] * 4


@pytest.mark.requirement("PROMISE-1", "PROMISE-4")
async def test_media_over_the_limits_of_bedrock_are_replaced_by_notes_on_bedrock_only() -> None:
    servers = {name: host_calling(name, "drawer") for name in NAMES}
    async with runtime_over(servers) as runtime:
        session = await runtime.open("bedrock", tools=[drawer])
        await ask_with_media(session, "bedrock", *map(page, range(4)), *[IMAGE] * 14)
        await ask_with_media(session, "vertex", IMAGE)
        losses = {name: (await session.preview(name)).losses.get("media", 0) for name in NAMES}
        await ask_with_media(session, "bedrock", IMAGE, PLAN)
    assert_accepted(*servers.values())
    first, *_, whole = bodies(servers["bedrock"])
    kinds = [kind for kind, _ in attachments(whole)]
    assert (kinds.count("document"), kinds.count("image")) == (5, 15)
    assert attachments(whole)[:18] == attachments(first)
    media = 4 + 14 + 8 + 1 + 8 + 2 + 8
    assert json.dumps(whole).count(NOTED) == media - 20
    assert len(attachments(bodies(servers["vertex"])[-1])) == 4 + 14 + 8 + 1 + 8
    assert losses == {"gemini": 0, "vertex": 0, "bedrock": 8}
