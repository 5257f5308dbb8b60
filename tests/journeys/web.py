"""A web application under a real uvicorn, and a client that reads its responses as they arrive."""

import json
import os
import select
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from threading import Thread

import anyio
import anyio.to_thread
from anyio.abc import SocketStream

from tests.cli.command import environ, fork_actors
from tests.runtime.forked import Child

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "with_uvicorn"
SECONDS = 60
"""The longest time, in seconds, until a process has written its port."""
LIFE = 300.0
"""The longest lifetime of a process in seconds."""
BEFORE = """
import socket, sys, warnings
warnings.resetwarnings()
listening = socket.create_server(("127.0.0.1", 0))
with open({port!r}, "w") as file:
    file.write(str(listening.getsockname()[1]))
sys.argv[1:] = [{app!r}, "--app-dir", {folder!r}, "--fd", str(listening.detach())]
"""
"""Code that runs before uvicorn, in a fork of a process in which warnings are errors."""


class WebServer:
    """A uvicorn process, and the requests to it."""

    def __init__(self, process: Child, output: Sequence[Path]) -> None:
        self.port = 0
        self._process, self._output = process, output
        self._over = Future[int]()
        Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        self._over.set_result(self._process.wait(LIFE))

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end of the process, and return its status."""
        os.kill(self._process.pid, number)
        return await anyio.to_thread.run_sync(self._over.result, abandon_on_cancel=True)

    def kill(self) -> None:
        """Kill the process if it has not ended."""
        if not self._over.done():
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        self._over.result()

    @property
    def log(self) -> str:
        """The complete output of the process."""
        return "".join(path.read_text(encoding="utf-8") for path in self._output)

    @asynccontextmanager
    async def request(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> AsyncIterator["WebResponse"]:
        """Send a request, and yield the response once its head has arrived; close the connection at the end."""
        data = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: test",
            "Connection: close",
            f"Content-Length: {len(data)}",
        ]
        lines += ["Content-Type: application/json"] if data else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send("\r\n".join([*lines, "", ""]).encode() + data)
            response = WebResponse(stream)
            await response.until("\r\n\r\n")
            yield response

    async def ask(self, name: str, text: str) -> tuple[int, str]:
        """Ask in a conversation, and return the status of the response and its body."""
        async with self.request("POST", f"/conversations/{name}/messages", {"text": text}) as response:
            return response.status, await response.rest()


class WebResponse:
    """A response, as it arrives."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self.text = ""

    @property
    def status(self) -> int:
        """The status code."""
        return int(self.text.split(" ", 2)[1])

    async def until(self, words: str) -> str:
        """Wait until the response contains these words, and return the text received so far."""
        while words not in self.text:
            self.text += (await self._stream.receive()).decode()
        return self.text

    async def wait_for_body(self) -> None:
        """Wait until a part of the body has arrived, or all of an empty one."""
        while not self.text.partition("\r\n\r\n")[2]:
            self.text += (await self._stream.receive()).decode()

    async def rest(self) -> str:
        """Wait for the end of the connection, and return the whole response."""
        try:
            while True:
                self.text += (await self._stream.receive()).decode()
        except anyio.EndOfStream:
            return self.text


@contextmanager
def uvicorn(app: str, base_url: str, folder: Path) -> Iterator[WebServer]:
    """Run an application of the documentation with its journal in `folder`; kill it if it does not end."""
    output, port = (folder / "out", folder / "errors"), folder / "port"
    for path in output:
        path.write_bytes(b"")
    os.mkfifo(port)
    before = BEFORE.format(app=f"{app}:app", folder=str(FOLDER), port=str(port))
    env = environ({"OPENAI_BASE_URL": base_url, "JOURNAL": str(folder / "journal.db")})
    program = str(files("uvicorn") / "__main__.py")
    process = fork_actors((Path(os.devnull), *output), (), env, script=program, before=before)
    server = WebServer(process, output)
    try:
        server.port = _read_number(port)
        yield server
    finally:
        server.kill()
        port.unlink()


def _read_number(pipe: Path) -> int:
    """Return the number that a process writes to a named pipe; raise an error after a timeout."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        select.select([reader], [], [], SECONDS)
        return int(os.read(reader, 16))
    finally:
        os.close(reader)
