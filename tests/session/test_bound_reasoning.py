"""Reasoning bound to its prefix stays acceptable after unusual content in the same answer."""

import json

import pytest

from actors.core.log.events import EpochBegan
from actors.strict.script import TurnPart
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Script, Think, Turn
from tests.runtime_support import Gate, bodies, log
from tests.scripted import scripted
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

MEMORY = ("encrypted_content", "signature")
"""The keys under which the three dialects with bound reasoning store their signatures."""
WORK = Call("work", {"name": "a"})
BETWEEN: dict[str, tuple[TurnPart, ...]] = {
    "a blank text": (Say(" "),),
    "an empty text": (Say(""),),
    "malformed arguments": (Call("work", raw='{"name": '),),
    "arguments with space around them": (Call("work", raw=' {"name": "a"}\n'),),
    "a tool of an invented name": (Call("x y", {}),),
    "a call, and words behind it": (WORK, Say("So.")),
}


def sealed_thoughts(body: object) -> int:
    """Count the signed reasoning blocks in a body."""
    written = json.dumps(body)
    return sum(written.count(f'"{key}":') for key in MEMORY)


def host(name: str, *turns: Turn) -> LoopbackServer:
    return strict_host(name, Script(list(turns)), bound=True, interleaved=True)


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "PROMISE-11")
@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openai_responses"])
@pytest.mark.parametrize("between", BETWEEN)
async def test_bound_reasoning_is_accepted_after_any_content(name: str, between: str) -> None:
    gate = Gate()
    gate.open("a")
    first = Turn(Think("one"), *BETWEEN[between], Think("two"), WORK)
    server = host(
        name, first, Turn(Think("three"), WORK), Turn(Think("four"), Say("Done.")), Turn(Say("Yes."))
    )
    async with scripted(server, tools=[gate.tool]) as (_, runtime, session):
        assert (await session.ask("Do it.")).text == "Done."
        assert (await session.ask("Really?")).text == "Yes."
        assert not [event for event in log(runtime, session) if isinstance(event, EpochBegan)]
    counts = [sealed_thoughts(body) for body in bodies(server)]
    assert counts[1] in (0, 1, 2)
    # reasoning after the unusual content is kept
    assert [count - counts[1] for count in counts[1:]] == [0, 1, 2]


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openai_responses"])
async def test_interleaved_reasoning_is_sent_back_at_its_position(name: str) -> None:
    gate = Gate()
    gate.open("a")
    first = Turn(Think("one"), Say("So."), Think("two"), WORK, Think("three"), WORK)
    async with scripted(host(name, first, Turn(Say("Done."))), tools=[gate.tool]) as (server, _, session):
        assert (await session.ask("Do it.")).text == "Done."
    assert [sealed_thoughts(body) for body in bodies(server)] == [0, 3]
