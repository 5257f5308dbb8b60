"""Run the hosts of docs/examples/deploy as processes, with their provider, their clients and their HTTP probes."""

import os
import runpy
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import anyio
import httpx2
from anyio.abc import ByteStream, SocketAttribute

from actors import Runtime
from actors.testing import OpenAIServer, Say, Turn, serve
from tests.deploy.manifests import FOLDER, Probe
from tests.runtime.forked import Child, Template, fork
from tests.runtime_support import Json

PACE = 10
"""How many times as often as in a manifest the tests probe. The thresholds are the manifest's."""
BETWEEN = 0.02
"""Seconds between two tries of a client."""
KEYS = {"OPENAI_API_KEY": "any"}


LOADED = (
    "actors.journal.storage.postgres",
    "actors.journal.storage.sqlite",
    "actors.runtime.hosting",
    "actors.runtime.journal_admin",
    "actors.runtime.runtime",
    "actors.transport.exchange",
    "actors.transport.pool",
    "anyio._backends._asyncio",
    "fastapi",
    "psycopg",
    "tests.deploy.machines",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
"""The modules that a host imports. Hosts are forked from a process that has imported them."""


class HostProcess:
    """The process of a host, which may be started again at the same address.

    Args:
        command: The command line in a manifest; `python` is this interpreter.
        environ: The variables of the process, with its `ADDRESS` and `PORT`.
        log: Receives the output.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        program, *flags, self._script = command
        assert Path(program).name == "python"
        self._template, self._log = Template(LOADED, tuple(flags)), log
        self._environ = {**_own_environment(), **environ}
        self.address = environ["ADDRESS"]
        self._process: Child | None = None

    def start(self) -> None:
        """Start the process, for the first time or after its end."""
        with self._log.open("ab") as log, open(os.devnull, "rb") as nothing:
            streams = (nothing.fileno(), log.fileno(), log.fileno())
            function = "tests.deploy.machines:run_host"
            self._process = fork(
                function, self._script, self._environ, template=self._template, streams=streams
            )

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        os.kill(self._child.pid, number)

    async def wait(self) -> int:
        """Wait for the end of the process. Return its status, or the negative number of the signal that ended it."""
        if self._child.returncode is None:
            process = os.pidfd_open(self._child.pid)
            try:
                await anyio.wait_readable(process)
            finally:
                os.close(process)
        return self._child.wait()

    @property
    def _child(self) -> Child:
        assert self._process is not None
        return self._process

    async def status(self, probe: Probe) -> int | None:
        """Return the status of the answer to a probe; None if there is no answer in time."""
        try:
            async with client() as probing:
                answer = await probing.get(self.address + probe.path, timeout=probe.timeout)
        except httpx2.TransportError:
            return None
        return answer.status_code

    async def first_failure(self, probe: Probe) -> int | None:
        """Probe until the probe fails. Return the status of the answer; None if there is none."""
        while (status := await self.status(probe)) == 200:  # noqa: ASYNC110  the host is another process
            await anyio.sleep(BETWEEN)
        return status

    async def wait_for_success(self, probe: Probe) -> None:
        """Probe until the probe succeeds, for the time that the manifest allows."""
        for _ in range(probe.failures * PACE):
            if await self.status(probe) == 200:
                return
            await anyio.sleep(probe.period / PACE)
        raise AssertionError(f"{probe.path} did not succeed: {self.output}")

    async def wait_for_failures(self, probe: Probe) -> None:
        """Probe until the probe has failed as often in a row as the manifest says."""
        failures = 0
        while failures < probe.failures:
            failures = 0 if await self.status(probe) == 200 else failures + 1
            await anyio.sleep(probe.period / PACE)

    @property
    def output(self) -> str:
        """The complete output of all processes so far."""
        return self._log.read_text()

    async def kill(self) -> None:
        """Kill the process if it has not ended."""
        if self._process is not None:
            self._process.kill()
            await self.wait()


def run_host(script: str, environ: Mapping[str, str]) -> None:
    """Run the program of a host, in a forked process."""
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(FOLDER)
    sys.path.insert(0, str(FOLDER))  # as for `python host.py`
    runpy.run_path(script, run_name="__main__")


def _own_environment() -> dict[str, str]:
    """Return the variables of this process without keys, base URLs and those that a service manager sets."""
    suffixes = ("_API_KEY", "_BASE_URL", "NOTIFY_SOCKET", "WATCHDOG_USEC")
    return {name: value for name, value in os.environ.items() if not name.endswith(suffixes)}


class ReservedPort:
    """A TCP port that no other process gets, because a socket that never listens is bound to it."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("0.0.0.0", 0))
        self.number = str(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class _Names(httpx2.AsyncHTTPTransport):
    """Resolves every name to this machine, as the names of pods have no other meaning here."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(host="127.0.0.1")
        return await super().handle_async_request(request)


def client() -> httpx2.AsyncClient:
    """Return a client that follows redirects, and waits as long as the test for its answers."""
    return httpx2.AsyncClient(transport=_Names(), follow_redirects=True, timeout=None)


def answer_to(question: str) -> str:
    """Return the provider's answer to a question."""
    return question.replace("Question", "Answer")


class Provider:
    """A provider that counts its requests by message. The first request with a chosen message can be held back."""

    def __init__(self) -> None:
        self.requests = Counter[str]()
        self.base_url = ""
        self._held = ""
        self.is_holding, self._released = anyio.Event(), anyio.Event()

    def hold(self, text: str) -> None:
        """Hold back the first request with this message."""
        self._held = text

    def release(self) -> None:
        """Pass on the request that is held back."""
        self._released.set()

    def answer(self, request: Json) -> Turn:
        """Answer `Question s1/2.` with `Answer s1/2.`"""
        text = str(request["messages"][-1]["content"])
        self.requests[text] += 1
        return Turn(Say(answer_to(text)))

    async def relay(self, stream: ByteStream, port: int) -> None:
        """Connect a host with the provider's server."""
        async with (
            stream,
            await anyio.connect_tcp("127.0.0.1", port) as server,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._copy, server, stream)
            await self._copy(stream, server)
            tasks.cancel_scope.cancel()

    async def _copy(self, source: ByteStream, target: ByteStream) -> None:
        try:
            async for data in source:
                if self._held and self._held.encode() in data:
                    self._held = ""
                    self.is_holding.set()
                    await self._released.wait()
                await target.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):  # a killed host
            pass


@asynccontextmanager
async def provider() -> AsyncIterator[Provider]:
    """Run a provider until the end of the block."""
    made = Provider()
    async with (
        serve(OpenAIServer(made.answer)) as (server,),
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        port = int(server.base_url.split(":")[2].split("/")[0])
        made.base_url = server.base_url.replace(f":{port}", f":{listener.extra(SocketAttribute.local_port)}")
        tasks.start_soon(listener.serve, lambda stream: made.relay(stream, port))
        yield made
        tasks.cancel_scope.cancel()


class Clients:
    """Clients of a service, which know the addresses of its hosts and repeat an ask until it is answered.

    Args:
        addresses: The hosts that a client tries in turn. A test may change them.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self.addresses = [*addresses]
        self.answers = Counter[str]()
        self.asks = dict[str, int]()

    async def ask(self, name: str) -> None:
        """Ask the next question in a session, and check the answer."""
        number = self.asks[name] = self.asks.get(name, 0) + 1
        message = {"text": f"Question {name}/{number}.", "key": f"{name}-{number}"}
        async with client() as asking:
            while (answer := await self._try(asking, name, message)) is None:  # noqa: ASYNC110  another process
                await anyio.sleep(BETWEEN)
        assert answer == answer_to(message["text"])
        self.answers[message["text"]] += 1

    async def ask_all(self, names: Iterable[str]) -> None:
        """Ask one question in each session, concurrently."""
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(self.ask, name)

    async def _try(self, asking: httpx2.AsyncClient, name: str, message: Mapping[str, str]) -> str | None:
        for address in self.addresses:
            try:
                answer = await asking.post(f"{address}/sessions/{name}/asks", json=message)
            except (httpx2.TransportError, httpx2.TooManyRedirects):
                continue
            if answer.status_code == 200:
                return str(answer.json()["text"])
            assert answer.status_code == 503, answer.text
        return None


async def sessions_by_address(journal: Runtime) -> dict[str, int]:
    """Return the number of sessions of each live host."""
    return {host.address: host.sessions for host in await journal.journal.hosts()}


async def times_in_logs(journal: Runtime, clients: Clients) -> dict[str, tuple[int, int]]:
    """Return how often each question and its answer are in a log."""
    found = dict[str, tuple[int, int]]()
    for name, last in clients.asks.items():
        log = await journal.journal.export(name)
        for number in range(1, last + 1):
            question = f"Question {name}/{number}."
            found[question] = _messages(log, question), _messages(log, answer_to(question))
    return found


def _messages(log: bytes, text: str) -> int:
    """Return the number of messages with this text in an exported log."""
    return log.count(f'"message":{{"text":"{text}"'.encode())
