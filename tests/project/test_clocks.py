"""The wall clock may jump, stop or go backwards: only displayed times change."""

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, repeat
from pathlib import Path
from random import Random
from time import time

import anyio
import pytest

import actors
from actors import Runtime
from actors.core.data.persistent import Segments
from actors.errors import SessionLeased
from actors.journal.storage.sqlite import SqliteStorage
from actors.provider.configured_credentials import Tokens
from actors.provider.credentials import OutgoingRequest
from actors.strict.server import LoopbackServer
from actors.testing import OpenAIServer, serve
from tests.commands.killing.scenarios import COMPACTION, OTHER, TARGET, act, answer, tools
from tests.project.source import nodes_of, references

NOW, YEARS = 1_800_000_000.0, 10 * 365 * 86_400.0
CLOCKS: dict[str, Callable[[], Iterator[float]]] = {
    "stops": lambda: repeat(NOW),
    "goes backwards": lambda: (NOW - 60.0 * step for step in count()),
    "jumps": lambda: (NOW + Random(step).uniform(-YEARS, YEARS) for step in count()),
}
PACKAGE = Path(actors.__file__).parent
OF_TIME = ("time", "time_ns", "localtime", "gmtime", "ctime", "strftime", "clock_gettime")
MENTIONED = re.compile(r"import time|from time|datetime")
READINGS = {
    *(f"time.{name}" for name in OF_TIME),
    *(f"datetime.{kind}.{name}" for kind in ("datetime", "date") for name in ("now", "utcnow", "today")),
}
"""Names of functions in the standard library that read a wall clock."""


def test_the_wall_clock_is_only_read_through_an_argument() -> None:
    """A default argument may name the wall clock; outside of the command line, no code calls it by its name."""
    callees = {
        f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
        for path in PACKAGE.rglob("*.py")
        if MENTIONED.search(path.read_text()) and not path.is_relative_to(PACKAGE / "cli")
        for called in [{id(call.func) for call in nodes_of(path) if isinstance(call, ast.Call)}]
        for node, name in references(path)
        if name in READINGS and id(node) in called
    }
    assert callees == set()


async def run_and_read_log(server: LoopbackServer, folder: Path, clock: Callable[[], float]) -> list[str]:
    """Return the messages and the event types of a session that uses every feature."""
    environ = {"OPENAI_BASE_URL": server.base_url}

    def runtime() -> Runtime:
        journal = SqliteStorage(folder / "sessions.db", durability="process", clock=clock)
        return Runtime(environ=environ, journal=journal, compaction=COMPACTION, seed=1)

    async with runtime() as first:
        session = await first.open(TARGET, tools=tools(folder), id="one")
        for scenario in ("tools", "external", "approval"):
            await act(session, scenario, lambda _: None)
        await session.switch(OTHER)
    async with runtime() as second:
        session = await second.resume("one", tools=tools(folder))
        await act(session, "compaction", lambda _: None)
        said = [repr(message) for message in await session.history()]
        return said + [type(event).__name__ for event in second._storage.read("one")]


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_the_wall_clock_does_not_affect_a_log(tmp_path: Path) -> None:
    clocks = {"is right": time} | {name: readings().__next__ for name, readings in CLOCKS.items()}
    logs = list[list[str]]()
    with anyio.fail_after(60):
        async with serve(OpenAIServer(answer)) as (server,):
            for name, clock in clocks.items():
                folder = tmp_path / name
                folder.mkdir()
                logs.append(await run_and_read_log(server, folder, clock))
            assert server.refusals == []
    assert logs == [logs[0]] * len(clocks)


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_wall_clock_does_not_affect_the_lease_of_a_session(tmp_path: Path, clock: str) -> None:
    hosts = [
        SqliteStorage(tmp_path / "sessions.db", lease=600, clock=CLOCKS[clock]().__next__) for _ in range(2)
    ]
    with closing(hosts[0]) as one, closing(hosts[1]) as other:
        claim = one.claim("one")
        for _ in range(5):
            one.renew_lease()
            with pytest.raises(SessionLeased) as refused:
                other.claim("one")
            assert 0 < refused.value.seconds <= 600
        one.release("one", claim.fence)
        assert other.claim("one").fence == claim.fence + 1


@pytest.mark.anyio
async def test_the_wall_clock_does_not_affect_the_lifetime_of_a_token(tmp_path: Path) -> None:
    program = tmp_path / "token"
    said = f'{{"token": "t", "expires_at": {NOW + 3600}}}'
    program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/runs\necho '{said}'\n")
    program.chmod(0o700)
    now = NOW
    tokens = Tokens([str(program)], 600.0, now=lambda: now)
    for jump in (0.0, YEARS, -YEARS):
        now = NOW + jump
        await tokens.headers(OutgoingRequest("https://example.test", Segments()))
    assert (tmp_path / "runs").read_text() == "x\n"
