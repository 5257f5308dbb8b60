"""The wall clock may jump, stand still or go backwards: nothing changes by that but what people are told."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count, repeat
from pathlib import Path
from random import Random

import anyio
import pytest

import actors
from actors import Runtime
from actors.core.data.segments import Segments
from actors.errors import SessionElsewhere
from actors.journal.storage.sqlite import SqliteStorage
from actors.provider.credentials.outgoing import Outgoing
from actors.provider.credentials.tokens import Tokens
from actors.strict.server import LoopbackServer
from actors.testing import OpenAIServer, serve
from tests.killing.scenarios import COMPACTION, OTHER, TARGET, acted, spoken, tools
from tests.source import references

NOW, YEARS = 1_800_000_000.0, 10 * 365 * 86_400.0
CLOCKS: dict[str, Callable[[], Iterator[float]]] = {
    "stands still": lambda: repeat(NOW),
    "goes backwards": lambda: (NOW - 60.0 * step for step in count()),
    "jumps": lambda: (NOW + Random(step).uniform(-YEARS, YEARS) for step in count()),
}
WALL = Path(actors.__file__).parent / "kernel" / "wall.py"
OF_TIME = ("time", "time_ns", "localtime", "gmtime", "ctime", "strftime", "clock_gettime")
MENTIONED = re.compile(r"import time|from time|datetime")
READINGS = {
    *(f"time.{name}" for name in OF_TIME),
    *(f"datetime.{kind}.{name}" for kind in ("datetime", "date") for name in ("now", "utcnow", "today")),
}
"""What reads a wall clock, by the names in the standard library."""


@dataclass
class Clock:
    """Stands for the module `time` where the wall clock is read."""

    readings: Iterator[float]

    def time(self) -> float:
        """Return the next reading."""
        return next(self.readings)


def test_the_wall_clock_is_read_in_one_module() -> None:
    read = {
        f"{path}:{getattr(node, 'lineno', 0)}"
        for path in WALL.parent.rglob("*.py")
        if MENTIONED.search(path.read_text())
        for node, name in references(path)
        if name in READINGS
    }
    assert read == {f"{WALL}:13"}


async def logged(server: LoopbackServer, folder: Path) -> list[str]:
    """Return what happened in a session that uses everything, and what was said in it."""
    environ = {"OPENAI_BASE_URL": server.base_url}

    def runtime() -> Runtime:
        journal = SqliteStorage(folder / "sessions.db", level="process")
        return Runtime(environ=environ, journal=journal, compaction=COMPACTION, seed=1)

    async with runtime() as first:
        session = await first.open(TARGET, tools=tools(folder), id="one")
        for scenario in ("tools", "external", "approval"):
            await acted(session, scenario, lambda _: None)
        await session.switch(OTHER)
    async with runtime() as second:
        session = await second.resume("one", tools=tools(folder))
        await acted(session, "compaction", lambda _: None)
        said = [repr(message) for message in await session.history()]
        return said + [type(event).__name__ for event in second.storage.read("one")]


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_whatever_the_wall_clock_does_a_log_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {name: tmp_path / name for name in ("is right", *CLOCKS)}
    logs = list[list[str]]()
    with anyio.fail_after(60):
        async with serve(OpenAIServer(spoken)) as (server,):
            for name, folder in folders.items():
                folder.mkdir()
                if name in CLOCKS:
                    monkeypatch.setattr("actors.kernel.wall.time", Clock(CLOCKS[name]()))
                logs.append(await logged(server, folder))
            assert server.refusals == []
    assert logs == [logs[0]] * len(folders)


@pytest.mark.parametrize("clock", CLOCKS)
def test_whatever_the_wall_clock_does_a_session_stays_with_its_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    path = tmp_path / "sessions.db"
    with closing(SqliteStorage(path, lease=600)) as one, closing(SqliteStorage(path, lease=600)) as other:
        claim = one.claim("one")
        monkeypatch.setattr("actors.kernel.wall.time", Clock(CLOCKS[clock]()))
        for _ in range(5):
            one.beat()
            with pytest.raises(SessionElsewhere) as refused:
                other.claim("one")
            assert 0 < refused.value.seconds <= 600
        one.release("one", claim.fence)
        assert other.claim("one").fence == claim.fence + 1


@pytest.mark.anyio
async def test_a_token_lasts_as_long_as_it_was_said_to_wherever_the_wall_clock_jumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "token"
    said = f'{{"token": "t", "expires_at": {NOW + 3600}}}'
    program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/runs\necho '{said}'\n")
    program.chmod(0o700)
    monkeypatch.setattr("actors.kernel.wall.time", clock := Clock(repeat(NOW)))
    tokens = Tokens([str(program)], 600.0)
    for jump in (0.0, YEARS, -YEARS):
        clock.readings = repeat(NOW + jump)
        await tokens.headers(Outgoing("https://example.test", Segments()))
    assert (tmp_path / "runs").read_text() == "x\n"
