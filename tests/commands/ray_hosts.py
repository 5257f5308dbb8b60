"""Run `RayHosts` on this machine: an actor is killed during its turns, and another leaves in order.

    python -m tests.commands.ray_hosts [JOURNAL]

The program needs the extra `ray` (docs/how-to/scale.md). JOURNAL is a file or `postgresql://...`; without it, the
program uses a temporary file. It checks that each ask is answered and in its log once, that a stream of events
continues, and that a killed actor is restarted under its name and serves again.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from uuid import uuid4

import ray

from actors import Runtime, Session
from actors.core.log.events import AskStarted
from actors.core.values.packed import unpack
from actors.events import SessionEvent
from actors.hosts import RayHosts, RouterLimits
from actors.testing import OpenAIServer, Say, Turn, serve
from tests.saying import say

NAMES = ("a", "b", "c")
ASKS = 4


def make_runtime(environ: dict[str, str], journal: str, pids: str, name: str) -> Runtime:
    """Return the runtime of an actor, and write the id of its process to a file."""
    Path(pids, name).write_text(str(os.getpid()))
    return Runtime(environ=environ, journal=journal, address=name)


async def open_session(runtime: Runtime, name: str) -> Session:
    return await runtime.open("openai:gpt-5.2", id=name, resume=True)


class Conversations:
    """The asks of several sessions, and the actor that is killed during the second ask of one of its sessions."""

    def __init__(self, run: str, pids: str) -> None:
        self.sessions = [f"ray-{run}-{number}" for number in range(24)]
        self._pids = pids
        self.victim, self.trigger = "", ""

    def answer(self, request: dict[str, Any]) -> Turn:
        """Answer the last message. Kill the victim once, when the trigger is asked."""
        text = str(request["messages"][-1]["content"])
        if self.victim and text == self.trigger:
            os.kill(int(Path(self._pids, self.victim).read_text()), signal.SIGKILL)
            self.victim = ""
        return Turn(Say(f"Answer to {text}"))

    async def ask_all(self, hosts: RayHosts, number: int) -> None:
        """Ask each session once, all at once."""
        texts = [f"{session} asks {number}" for session in self.sessions]
        results = await asyncio.gather(*map(hosts.ask, self.sessions, texts))
        assert [result.text for result in results] == [f"Answer to {text}" for text in texts]


async def read_asks(events: AsyncIterator[SessionEvent], count: int) -> None:
    """Read events until so many asks are complete."""
    async for event in events:
        count -= event.type == "complete"
        if not count:
            return


async def main(journal: str, pids: str) -> None:
    talks = Conversations(uuid4().hex[:8], pids)
    async with serve(OpenAIServer(talks.answer)) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        make = partial(make_runtime, environ, journal, pids)
        hosts = RayHosts(NAMES, make, open_session, limits=RouterLimits(exclusion_time=0.5))
        await hosts.wait_started()
        await talks.ask_all(hosts, 1)
        counts = {host.address: host.sessions for host in await hosts.hosts()}
        say(f"sessions by actor: {counts}")
        assert {*counts} == {*NAMES}
        assert all(counts.values())
        owned = talks.sessions[0]
        talks.trigger = f"{owned} asks 2"
        talks.victim = hosts._table.owner(owned) or ""
        async with aclosing(hosts.events(owned)) as events:
            reading = asyncio.create_task(read_asks(events, ASKS))
            for number in range(2, ASKS + 1):
                began = monotonic()
                await talks.ask_all(hosts, number)
                say(f"ask {number}: {len(talks.sessions)} answers in {monotonic() - began:.1f} s")
            await asyncio.wait_for(reading, 30)
        assert not talks.victim
        await hosts.wait_started()
        counts = {host.address: host.sessions for host in await hosts.hosts()}
        say(f"sessions by actor after the restart: {counts}")
        assert {*counts} == {*NAMES}
        await hosts.close()
    await check_logs(journal, talks.sessions)


async def check_logs(journal: str, sessions: list[str]) -> None:
    """Check that each ask is in its log once, and delete the sessions."""
    async with Runtime(journal=journal) as runtime:
        for session in sessions:
            events = runtime._storage.read(session)
            texts = [unpack(event.message).text for event in events if isinstance(event, AskStarted)]
            assert texts == [f"{session} asks {number}" for number in range(1, ASKS + 1)]
            await runtime.journal.delete(session)
    say(f"each of {ASKS * len(sessions)} asks is in its log once")


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="error")
    with TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "sessions.db"), folder))
    ray.shutdown()
