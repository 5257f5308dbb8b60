"""Host sessions on Ray: each worker has a runtime, and the id of a session determines its worker.

    python docs/examples/with_ray/hosts.py [JOURNAL]

The program starts three workers and a model server on this machine, and kills one worker during its turns. JOURNAL is a
file or `postgresql://...`; without it, the program uses a temporary file.
"""

import asyncio
import os
import signal
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any
from uuid import uuid4

import ray
from ray.exceptions import RayActorError

from actors import Runtime, Session
from actors.errors import SessionUnknown
from actors.testing import OpenAIServer, Say, Turn, serve


@ray.remote(max_concurrency=1000)
class Worker:
    """The host of a runtime. Ray calls each method in a new task, all on one asyncio event loop."""

    async def __init__(self, journal: str, base_url: str) -> None:
        self._environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": base_url}
        self._journal = journal
        self._runtime: asyncio.Future[Runtime] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._life = asyncio.create_task(self._live())

    async def _live(self) -> None:
        """Enter and leave the runtime in one task; Ray calls each method in a new task."""
        async with Runtime(environ=self._environ, journal=self._journal) as runtime:
            self._runtime.set_result(runtime)
            await self._stop.wait()

    async def pid(self) -> int:
        await self._runtime
        return os.getpid()

    async def stop(self) -> None:
        """Release the sessions."""
        self._stop.set()
        await self._life

    async def ask(self, name: str, words: str, key: str) -> str:
        async with self._locks[name]:
            session = await self._session(await self._runtime, name)
        return (await session.ask(words, key=key)).text  # one answer per key, even if another worker began it

    async def _session(self, runtime: Runtime, name: str) -> Session:
        if name in runtime.sessions:
            return runtime.session(name)
        try:
            return await runtime.resume(name, wait=15)  # seconds until a stopped worker loses its lease
        except SessionUnknown:
            return await runtime.open("openai:gpt-5.2", id=name)


class Workers:
    """The router of asks to the worker of their session, or to another one if that worker is dead."""

    def __init__(self, names: str, journal: str, base_url: str) -> None:
        self.live = {name: Worker.remote(journal, base_url) for name in names}

    def place(self, session: str) -> str:
        """Return the worker of a session by rendezvous hashing: if a worker dies, only its sessions move."""
        return max(self.live, key=lambda worker: sha256(f"{worker} {session}".encode()).digest())

    async def ask(self, session: str, words: str) -> str:
        key = uuid4().hex
        while True:
            name = self.place(session)
            try:
                return await self.live[name].ask.remote(session, words, key)
            except RayActorError:
                self.live.pop(name, None)


async def main(journal: str) -> None:
    run = uuid4().hex[:8]
    sessions = [f"ray-{run}-{number}" for number in range(30)]
    answers, pids = defaultdict[str, list[str]](list), dict[str, int]()

    def model(request: dict[str, Any]) -> Turn:
        messages = [each["content"] for each in request["messages"] if each["role"] == "user"]
        session, question = max(words for words in messages if "asks" in words).split(" asks ")
        if question == "question 2" and workers.place(session) == "b" and "b" in pids:
            os.kill(pids.pop("b"), signal.SIGKILL)  # in the middle of a turn
        return Turn(Say(f"Answer {question[-1]}"))

    async def ask(session: str, number: int) -> None:
        answers[session].append(await workers.ask(session, f"{session} asks question {number}"))

    async with serve(OpenAIServer(model)) as (server,):
        workers = Workers("abc", journal, server.base_url)
        for name, worker in workers.live.items():
            pids[name] = await worker.pid.remote()
        homes = {session: workers.place(session) for session in sessions}
        for number in range(1, 4):
            began = monotonic()
            await asyncio.gather(*[ask(session, number) for session in sessions])
            print(
                f"question {number}: {len(sessions)} answers in {monotonic() - began:.1f} s, workers",
                *workers.live,
            )
        moved = [session for session in sessions if workers.place(session) != homes[session]]
        print(len(moved), "sessions moved, all of them from:", *{homes[session] for session in moved})
        print("answers:", *set(map(tuple, answers.values())))
        for worker in workers.live.values():
            await worker.stop.remote()
    async with Runtime(journal=journal) as runtime:
        logs = [await runtime.journal.export(session) for session in sessions]
        for number in range(1, 4):
            print(
                f"question {number}, times in a log:",
                *{log.count(f"question {number}".encode()) for log in logs},
            )
        for session in sessions:
            await runtime.journal.delete(session)


ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="error")
with TemporaryDirectory() as folder:
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "sessions.db")))
ray.shutdown()
