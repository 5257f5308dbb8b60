"""Output of a provider's built-in tools is sent back to that provider in place, and described to other providers."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from actors.core.values.content import ProviderBlock
from actors.strict.server import LoopbackServer
from actors.testing import (
    Builtin,
    Call,
    GeminiServer,
    ResponsesProfile,
    ResponsesServer,
    ResponsesSettings,
    Say,
    Think,
    Turn,
)
from tests.runtime_support import Gate, Json, anthropic, bodies, openai, runtime_with

pytestmark = pytest.mark.anyio

NOTE = "content that only its provider can read"
ENDED = {"status": "completed"}
SEARCHED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "4"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITED = {"type": "web_search_result_location", "url": "https://x.test", "cited_text": "Four."}
ITEM = {"type": "web_search_call", **ENDED, "action": {"type": "search", "query": "4"}}
PLACE = {"type": "url_citation", "url": "https://x.test", "start_index": 0, "end_index": 5, "title": "x"}
RAN = {"executableCode": {"language": "PYTHON", "code": "2+2"}}
CAME = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}}


def responses(*turns: Turn) -> ResponsesServer:
    return ResponsesServer(list(turns), settings=ResponsesSettings(ResponsesProfile(prefix_bound=True)))


def gemini(*turns: Turn) -> GeminiServer:
    return GeminiServer(list(turns))


Makes = Callable[..., LoopbackServer]
MAKERS: Mapping[str, tuple[Makes, Sequence[Json], Json]] = {
    "anthropic": (anthropic, (SEARCHED, FOUND), CITED),
    "openai_responses": (responses, (ITEM, ITEM), PLACE),
    "gemini": (gemini, (RAN, CAME), {}),
}


def role_blocks(body: Json) -> list[Any]:  # Any: JSON
    """Return the blocks of a request in order, each with its role."""
    found: list[Any] = []
    for message in body.get("messages") or body.get("input") or body["contents"]:
        held = message.get("content", message.get("parts"))
        found += [(message.get("role"), block) for block in (held if isinstance(held, list) else [message])]
    return found


def builtin_parts(body: Json, parts: Sequence[Json]) -> list[Json]:
    """Return the parts of a request that belong to the provider's built-in tools."""
    kinds = [part.get("type", next(iter(part))) for part in parts]
    return [block for _, block in role_blocks(body) if block.get("type", next(iter(block))) in kinds]


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "PROMISE-13")
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("other", [openai, anthropic])
async def test_a_provider_gets_the_output_of_its_builtin_tool_back_and_others_get_a_note(
    name: str, other: Makes
) -> None:
    makes, own, citation = MAKERS[name]
    gate = Gate()
    gate.open("a", "b")
    builtin = [Builtin(part) for part in own]
    here = makes(
        Turn(
            Think("hm"),
            builtin[0],
            Say("Look."),
            builtin[1],
            Say("Four.", (citation,)),
            Call("work", {"name": "a"}),
        ),
        Turn(Think("so"), Say("Done.")),
        Turn(Say("Again.")),
    )
    there = other(Turn(Call("work", {"name": "b"})), Turn(Say("Done there.")))
    async with runtime_with(here=here, there=there) as runtime:
        session = await runtime.open("here", tools=[gate.tool])
        assert (await session.ask("Do it.")).text == "Done."
        await session.switch("there")
        assert (await session.ask("You too.")).text == "Done there."
        await session.switch("here")
        assert (await session.ask("Once more.")).text == "Again."
        history = await session.history()
    assert here.refusals == there.refusals == []
    _, second, third = bodies(here)
    assert builtin_parts(second, own) == builtin_parts(third, own) == list(own)
    assert NOTE not in json.dumps([second, third])
    for before, after in pairwise(map(role_blocks, bodies(here))):
        assert after[: len(before)] == before
    for body in bodies(there):
        assert json.dumps(body).count(NOTE) == len(own)
        assert builtin_parts(body, own) == []
    marks = [
        block.name for message in history for block in message.blocks if isinstance(block, ProviderBlock)
    ]
    assert marks[: len(own)] == [part.get("type", next(iter(part))) for part in own]
    assert len(marks) == len(own) + bool(citation)
