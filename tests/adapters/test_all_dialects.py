"""Run concurrent sessions that switch at random between strict hosts of all dialects."""

from collections import Counter
from random import Random
from typing import Any

import anyio
import pytest

from actors.config import PoolSettings
from actors.core.dialects.profiles import PROFILES
from actors.runtime.handle import Session
from actors.strict.rules.base import Json
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Script, Think, Turn
from actors.tools import Tool, tool
from tests.commands.at_scale import share
from tests.commands.walks import Model
from tests.runtime_support import runtime_with
from tests.scripted import scripted
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

SESSIONS = 20
ASKS = max(5, share(10))
SEED = 52
"""With it, of five asks of each session every dialect has one that is not cancelled, or two that are not at once."""
SECONDS = 300
NAMES = tuple(PROFILES)
POOLS = {
    "turns": PoolSettings(members=NAMES, policy="round_robin"),
    "others": PoolSettings(members=tuple(reversed(NAMES)), policy="round_robin"),
    "spare": PoolSettings(members=("mistral", "anthropic", "gemini"), policy="failover"),
}


def hosts(random: Random) -> dict[str, LoopbackServer]:
    """Return a strict host for each dialect, whose model gives random answers with content."""
    model = Model(random)

    def answering(name: str) -> Script:
        def turn(request: Json) -> Turn:
            made = model.turn(name, ("work", "wait"))
            has_content = any(
                isinstance(part, Call) or (isinstance(part, Say) and part.text.strip()) for part in made.parts
            )
            return made if has_content else Turn(*made.parts, Say("So."))

        return Script(turn)

    return {name: strict_host(name, answering(name), host=name) for name in NAMES}


def tools() -> list[Tool[..., Any]]:  # Any: any function
    """Return a tool that returns and a tool that waits."""

    @tool
    async def work(name: str = "") -> str:
        """Do a piece of work."""
        return f"{name} is done"

    @tool
    async def wait(name: str = "") -> str:
        """Wait until cancelled."""
        await anyio.sleep_forever()
        return name

    return [work, wait]


async def ask_and_switch(session: Session, random: Random, ends: Counter[str]) -> None:
    """Ask random backends. Cancel some asks, and every ask whose tool waits forever.

    No two sessions have the same text: a host that finds its reasoning by the preceding text must not confuse them.
    """
    for number in range(ASKS):
        await session.switch(random.choice((*NAMES, *POOLS)))
        async with session.stream(f"Do {number} of {session.id}.") as events:
            left = random.choice((3, 10, 1000))
            async for event in events:
                left -= 1
                if left == 0 or getattr(event, "name", "") == "wait":
                    await session.cancel()
                if event.type == "complete":
                    ends[event.result.status] += 1


@pytest.mark.requirement("PROMISE-1", "PROMISE-10", "PROMISE-11", "REQ-915-001", "REQ-915-005")
async def test_sessions_that_switch_between_all_dialects_are_never_rejected() -> None:
    random, ends = Random(SEED), Counter[str]()
    served = hosts(random)
    async with runtime_with(served, pools=POOLS, seconds=SECONDS) as runtime:
        sessions = [await runtime.open(random.choice(NAMES), tools=tools()) for _ in range(SESSIONS)]
        async with anyio.create_task_group() as tasks:
            for session in sessions:
                tasks.start_soon(ask_and_switch, session, Random(random.random()), ends)
    refused = {name: server.refusals for name, server in served.items() if server.refusals}
    assert refused == {}
    statuses = Counter(exchange.status for server in served.values() for exchange in server.requests)
    assert set(statuses) == {200}
    assert all(server.received for server in served.values())
    assert sum(ends.values()) == SESSIONS * ASKS
    assert ends["complete"] > SESSIONS * ASKS / 10
    assert ends["cancelled"] > SESSIONS / 4
    assert set(ends) <= {"complete", "cancelled"}


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("policy", ["drop", "text"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.requirement("PROMISE-1")
async def test_every_host_accepts_requests_that_omit_earlier_reasoning(name: str, policy: str) -> None:
    thinks = Turn(Think("Two of them."), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
    async with scripted(name, thinks, Turn(Say("Done.")), tools=tools(), fields={"thinking": policy}) as on:
        ends = [(await on.session.ask(words)).status for words in ("Do it.", "Again.")]
    assert ends == ["complete", "complete"]
