"""Hosts that are killed, suspended, restarted and added under load, behind a client that knows no owners.

    python -m tests.commands.hosts_matrix                   all cases, with a file
    python -m tests.commands.hosts_matrix --postgres        all cases, with a temporary Postgres server
    python -m tests.commands.hosts_matrix --only suspend    one case

Each host is a uvicorn process with an address of its own. The client sends each request to the next host, and to the
one after it if the connection fails, with the same key, as a load balancer does. The program prints a line per case
and fails if a request was not answered, or an ask is not in its log exactly once.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from itertools import count as numbers
from pathlib import Path
from time import monotonic

import anyio
from anyio.abc import Process, TaskGroup
from httpx2 import AsyncClient, TransportError

from actors import Runtime
from actors.testing import OpenAIServer, serve
from tests.hosts.support import answer, asked, open_storage
from tests.saying import say

ROOT = Path(__file__).resolve().parents[2]
APP = "tests.hosts.host_app:app"
LEASE = 2.0
"""Seconds of the lease of a host."""
STARTED = 60.0
"""The longest time until a host answers, in seconds."""
PAUSE = 1.0
"""Seconds of load between two steps of a case."""


class HostProcess:
    """A uvicorn process at an address that stays the same when the process is started again."""

    def __init__(self, environ: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._environ = {
            **os.environ,
            **environ,
            "ADDRESS": self.url,
            "LEASE": str(LEASE),
            "PYTHONPATH": str(ROOT),
        }
        self._process: Process
        self.log = ""

    async def start(self, tasks: TaskGroup) -> None:
        """Start the process, and wait until it accepts requests."""
        command = [sys.executable, "-m", "uvicorn", APP, "--port", str(self._port)]
        command += ["--timeout-graceful-shutdown", "20", "--no-access-log"]
        self._process = await anyio.open_process(command, env=self._environ, stderr=subprocess.STDOUT)
        started = anyio.Event()
        tasks.start_soon(self._read_log, self._process, started)
        with anyio.fail_after(STARTED):
            await started.wait()

    async def _read_log(self, process: Process, started: anyio.Event) -> None:
        assert process.stdout is not None
        async for data in process.stdout:
            self.log += data.decode()
            if b"Uvicorn running" in data:
                started.set()

    async def end(self, number: signal.Signals) -> int:
        """Send a signal that ends the process, and return its status."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        return await self._process.wait()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)


class Load:
    """Continuous asks of several sessions, and the time that each took."""

    def __init__(self, client: AsyncClient, hosts: list[HostProcess]) -> None:
        self._client, self._hosts = client, hosts
        self._turn = numbers()
        self.asked = defaultdict[str, list[str]](list)
        self.seconds = list[float]()
        self.is_ending = False
        self.answered = anyio.Event()
        """Set at the next answer."""

    async def talk(self, session: str) -> None:
        """Ask a session until the load ends."""
        while not self.is_ending:
            text = f"{session} asks {len(self.asked[session])}"
            began = monotonic()
            await self.ask(session, text)
            self.seconds.append(monotonic() - began)
            self.asked[session].append(text)
            self.answered.set()
            self.answered = anyio.Event()

    async def ask(self, session: str, text: str) -> None:
        """Ask through the next host. If the connection fails, use the host after it, with the same key."""
        for _ in range(50):
            host = self._hosts[next(self._turn) % len(self._hosts)]
            try:
                response = await self._client.post(
                    f"{host.url}/sessions/{session}/ask",
                    json={"text": text},
                    headers={"idempotency-key": text},
                )
            except TransportError:
                await anyio.sleep(0.02)
                continue
            assert response.status_code == 200, response.text
            assert response.json()["text"] == f"Answer to {text}"
            return
        raise AssertionError(f"no answer to {text!r}")


class Hosts:
    """The hosts of a case, under load."""

    def __init__(
        self, tasks: TaskGroup, environ: dict[str, str], load: Load, processes: list[HostProcess]
    ) -> None:
        self._tasks, self._environ = tasks, environ
        self.load, self.processes = load, processes

    async def add(self) -> HostProcess:
        """Start a further host."""
        added = HostProcess(self._environ)
        await added.start(self._tasks)
        self.processes.append(added)
        return added

    async def restart(self, host: HostProcess, number: signal.Signals) -> None:
        """End a host with a signal, and start it again at its address."""
        await host.end(number)
        await host.start(self._tasks)

    async def wait_for_asks(self) -> None:
        """Wait until each session was asked once more, and then for a short time."""
        counts = {session: len(texts) for session, texts in self.load.asked.items()}
        while any(len(self.load.asked[session]) <= count for session, count in counts.items()):
            await self.load.answered.wait()
        await anyio.sleep(PAUSE)


async def kill(hosts: Hosts) -> None:
    """Kill a host, and start it again at its address after the others have taken over its sessions."""
    first = hosts.processes[0]
    await first.end(signal.SIGKILL)
    await hosts.wait_for_asks()
    await hosts.restart(first, signal.SIGKILL)


async def replace_killed(hosts: Hosts) -> None:
    """Kill a host, and start it again at its address at once."""
    await hosts.restart(hosts.processes[0], signal.SIGKILL)


async def suspend(hosts: Hosts) -> None:
    """Suspend a host until its lease has expired and its sessions were taken over, and then continue it.

    A client that sends a request to the suspended host itself gets no answer until the host continues, so the load
    balancer does not use the host, as after a failed health check.
    """
    first = hosts.processes.pop(0)
    first.send_signal(signal.SIGSTOP)
    await anyio.sleep(2 * LEASE)
    first.send_signal(signal.SIGCONT)
    await hosts.wait_for_asks()
    hosts.processes.append(first)


async def roll(hosts: Hosts) -> None:
    """Restart all hosts in order, twice."""
    for host in [*hosts.processes, *hosts.processes]:
        await hosts.restart(host, signal.SIGTERM)
        await hosts.wait_for_asks()


async def join(hosts: Hosts) -> None:
    """Start a further host."""
    await hosts.add()


Case = Callable[[Hosts], Awaitable[None]]
CASES: dict[str, Case] = {
    "kill": kill,
    "replace": replace_killed,
    "suspend": suspend,
    "roll": roll,
    "join": join,
}


async def run_case(name: str, journal: str, *, count: int = 3, sessions: int = 12) -> str:
    """Run one case with `count` hosts and so many sessions, and return a line with its figures.

    Raises:
        AssertionError: A request was not answered, or an ask is not in its log once.
    """
    server = OpenAIServer(answer)
    async with serve(server), AsyncClient(timeout=60) as client, anyio.create_task_group() as tasks:
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url, "JOURNAL": journal}
        processes = [HostProcess(environ) for _ in range(count)]
        async with running(processes, tasks):
            load = Load(client, processes)
            hosts = Hosts(tasks, environ, load, processes)
            async with anyio.create_task_group() as talks:
                for number in range(sessions):
                    load.asked[f"{name}-{number}"] = []
                    talks.start_soon(load.talk, f"{name}-{number}")
                await hosts.wait_for_asks()
                await CASES[name](hosts)
                await hosts.wait_for_asks()
                load.is_ending = True
        logs = [host.log for host in processes]
    await check_logs(journal, load)
    assert server.refusals == []
    assert not [log for log in logs if "Traceback" in log], logs
    total = len(load.seconds)
    return f"{name:8} {total:6} asks, each once, no error; slowest {max(load.seconds):.2f} s"


@asynccontextmanager
async def running(processes: list[HostProcess], tasks: TaskGroup) -> AsyncIterator[None]:
    """Start the processes at once. Terminate them at the end of the block, or kill them if it raises."""
    started = list[HostProcess]()
    number = signal.SIGKILL
    try:
        async with anyio.create_task_group() as starting:
            for each in processes:
                started.append(each)
                starting.start_soon(each.start, tasks)
        yield
        number = signal.SIGTERM
    finally:
        with anyio.CancelScope(shield=True):
            for each in {*started, *processes}:
                await each.end(number)


async def check_logs(journal: str, load: Load) -> None:
    """Check that the log of each session contains each of its asks once, in order."""
    async with Runtime(journal=open_storage(journal, LEASE)) as runtime:
        for session, texts in load.asked.items():
            assert asked(runtime, session) == texts


@contextmanager
def temporary_journal(*, postgres: bool) -> Iterator[str]:
    """Return a journal that is removed at the end of the block."""
    if not postgres:
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder) / "sessions.db")
        return
    from tests.journal.postgres import temporary_server

    with temporary_server() as server:
        server.start()
        yield server.url(server.schema())


def main(arguments: Sequence[str]) -> None:
    """Run the selected cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.hosts_matrix")
    parser.add_argument("--only", choices=[*CASES], action="append")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=12)
    options = parser.parse_args(arguments)
    for name in options.only or CASES:
        with temporary_journal(postgres=options.postgres) as journal:
            say(anyio.run(partial(run_case, name, journal, count=options.hosts, sessions=options.sessions)))


if __name__ == "__main__":
    main(sys.argv[1:])
