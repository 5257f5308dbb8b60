"""Hosts that bind reasoning to everything before it refuse none of it, whatever their models do in between."""

import json

import pytest

from actors.core.log.events import EpochBegan
from actors.strict.script import TurnPart
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Script, Think, Turn
from tests.runtime_support import Gate, bodies, hosting, log
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

MEMORY = ("encrypted_content", "signature")
"""Where the three bound dialects put what they seal."""
WORK = Call("work", {"name": "a"})
BETWEEN: dict[str, tuple[TurnPart, ...]] = {
    "a blank text": (Say(" "),),
    "an empty text": (Say(""),),
    "malformed arguments": (Call("work", raw='{"name": '),),
    "arguments with space around them": (Call("work", raw=' {"name": "a"}\n'),),
    "a tool of an invented name": (Call("x y", {}),),
    "a call, and words behind it": (WORK, Say("So.")),
}


def thoughts(body: object) -> int:
    """Count the sealed reasoning in a body."""
    written = json.dumps(body)
    return sum(written.count(f'"{key}":') for key in MEMORY)


def host(name: str, *turns: Turn) -> LoopbackServer:
    return strict_host(name, Script(list(turns)), bound=True, interleaved=True)


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-1", "PROMISE-4", "PROMISE-11")
@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openai_responses"])
@pytest.mark.parametrize("between", BETWEEN)
async def test_no_bound_reasoning_is_refused_whatever_stands_before_it(name: str, between: str) -> None:
    gate = Gate()
    gate.open("a")
    first = Turn(Think("one"), *BETWEEN[between], Think("two"), WORK)
    server = host(
        name, first, Turn(Think("three"), WORK), Turn(Think("four"), Say("Done.")), Turn(Say("Yes."))
    )
    async with hosting(here=server) as runtime:
        session = await runtime.open("here", tools=[gate.tool])
        assert (await session.ask("Do it.")).text == "Done."
        assert (await session.ask("Really?")).text == "Yes."
        assert not [event for event in log(runtime, session) if isinstance(event, EpochBegan)]
    assert server.refusals == []
    counts = [thoughts(body) for body in bodies(server)]
    assert counts[1] in (0, 1, 2)
    assert [count - counts[1] for count in counts[1:]] == [0, 1, 2]  # what came after it is kept


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openai_responses"])
async def test_reasoning_in_between_goes_back_where_it_stood(name: str) -> None:
    gate = Gate()
    gate.open("a")
    first = Turn(Think("one"), Say("So."), Think("two"), WORK, Think("three"), WORK)
    server = host(name, first, Turn(Say("Done.")))
    async with hosting(here=server) as runtime:
        session = await runtime.open("here", tools=[gate.tool])
        assert (await session.ask("Do it.")).text == "Done."
    assert server.refusals == []
    assert [thoughts(body) for body in bodies(server)] == [0, 3]
