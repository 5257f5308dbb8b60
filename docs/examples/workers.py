import json
import os
import signal
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import anyio
from anyio.abc import Process, SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from actors import Runtime, Session
from actors.errors import SessionUnknown
from actors.testing import OpenAIServer, Say, Turn, serve


class Host:
    """The host of a runtime, which resumes sessions from the journal or opens them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def answer(self, name: str, words: str, key: str) -> str:
        async with self._locks[name]:
            session = await self._session(name)
        return (await session.ask(words, key=key)).text  # one answer per key, even if another worker began it

    async def _session(self, name: str) -> Session:
        if name in self._runtime.sessions:
            return self._runtime.session(name)
        try:
            return await self._runtime.resume(name, wait=15)  # seconds until a stopped host loses its lease
        except SessionUnknown:
            return await self._runtime.open("openai:gpt-5.2", id=name)


async def worker(journal: str) -> None:
    """Answer questions on a TCP port: one question per connection, one line of JSON in each direction."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with (
        Runtime(journal=journal, gc="tuned") as runtime,
        listener,
        anyio.create_task_group() as tasks,
    ):
        host = Host(runtime)

        async def serve_client(client: SocketStream) -> None:
            async with client:
                question = json.loads(await BufferedByteReceiveStream(client).receive_until(b"\n", 1 << 20))
                await client.send(json.dumps(await host.answer(**question)).encode() + b"\n")

        tasks.start_soon(listener.serve, serve_client)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            print(listener.extra(SocketAttribute.local_port), flush=True)
            async for _ in signals:
                tasks.cancel_scope.cancel()  # leaving the runtime releases its sessions


class Proxy:
    """The router of questions to the worker of their session, or to another one if that worker is dead."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self.processes: dict[str, Process] = {}

    async def start(self, name: str, journal: str, base_url: str) -> None:
        env = {**os.environ, "OPENAI_API_KEY": "any", "OPENAI_BASE_URL": base_url}
        self.processes[name] = process = await anyio.open_process(
            [sys.executable, __file__, journal], stdin=None, stdout=PIPE, stderr=None, env=env
        )
        assert process.stdout is not None
        self.ports[name] = int(await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 16))

    def place(self, session: str) -> str:
        """Return the worker of a session by rendezvous hashing: if a worker dies, only its sessions move."""
        return max(self.ports, key=lambda worker: sha256(f"{worker} {session}".encode()).digest())

    async def ask(self, session: str, words: str) -> str:
        key = uuid4().hex
        while True:
            name = self.place(session)
            try:
                return await self._send(self.ports[name], {"name": session, "words": words, "key": key})
            except (OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
                self.ports.pop(name, None)  # dead; a process supervisor would restart it

    async def stop(self) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.terminate()
            await process.wait()

    async def _send(self, port: int, question: dict[str, object]) -> str:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(json.dumps(question).encode() + b"\n")
            return str(json.loads(await BufferedByteReceiveStream(stream).receive_until(b"\n", 1 << 20)))


SESSIONS = [f"s{number}" for number in range(12)]


async def main(journal: str) -> None:
    proxy = Proxy()
    answers: defaultdict[str, list[str]] = defaultdict(list)

    def model(request: dict[str, Any]) -> Turn:
        messages = [each["content"] for each in request["messages"] if each["role"] == "user"]
        session, question = max(words for words in messages if "asks" in words).split(" asks ")
        if question == "question 2" and session == last_of_b and proxy.place(session) == "b":
            proxy.processes["b"].kill()  # in the middle of a turn
        return Turn(Say(f"Answer {question[-1]}"))

    async def ask(session: str, number: int) -> None:
        answers[session].append(await proxy.ask(session, f"{session} asks question {number}"))

    async with serve(OpenAIServer(model)) as (server,):
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(proxy.start, name, journal, server.base_url)
        homes = {session: proxy.place(session) for session in SESSIONS}
        last_of_b = max(session for session, worker in homes.items() if worker == "b")
        for number in range(1, 4):
            async with anyio.create_task_group() as tasks:
                for session in SESSIONS:
                    tasks.start_soon(ask, session, number)
        moved = [session for session in SESSIONS if proxy.place(session) != homes[session]]
        print(len(moved), "sessions moved, all of them from:", *{homes[session] for session in moved})
        print("answers:", *set(map(tuple, answers.values())))
        await proxy.stop()
    async with Runtime(journal=journal) as runtime:
        for number in range(1, 4):
            times = {await count_in_log(runtime, session, f"question {number}") for session in SESSIONS}
            print(f"question {number}, times in a log:", *times)


async def count_in_log(runtime: Runtime, session: str, words: str) -> int:
    return (await runtime.journal.export(session)).count(words.encode())


if len(sys.argv) > 1:
    anyio.run(worker, sys.argv[1])
else:
    with TemporaryDirectory() as folder:
        anyio.run(main, str(Path(folder) / "sessions.db"))
