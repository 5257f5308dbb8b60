"""A web application under a real uvicorn, and a client that reads its responses as they come."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import SocketStream

from tests.cli.command import environ

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples" / "with_uvicorn"


class WebServer:
    """A uvicorn process, and the requests that it is sent."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.process, self._port, self._log = process, port, log

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end of the process, and return its status."""
        self.process.send_signal(number)
        return await anyio.to_thread.run_sync(self.process.wait, abandon_on_cancel=True)

    @property
    def log(self) -> str:
        """Everything that it has written."""
        return self._log.read_text(encoding="utf-8")

    @asynccontextmanager
    async def request(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> AsyncIterator["WebResponse"]:
        """Send a request, and give the response once its head is there; the connection is closed at the end."""
        data = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: test",
            "Connection: close",
            f"Content-Length: {len(data)}",
        ]
        lines += ["Content-Type: application/json"] if data else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        async with await anyio.connect_tcp("127.0.0.1", self._port) as stream:
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
        """Its status code."""
        return int(self.text.split(" ", 2)[1])

    async def until(self, words: str) -> str:
        """Wait until the response holds these words, and return what has come."""
        while words not in self.text:
            self.text += (await self._stream.receive()).decode()
        return self.text

    async def begun(self) -> None:
        """Wait until a part of its body is there."""
        while self.text.endswith("\r\n\r\n"):
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
    """Run an application of the documentation; with its journal in `folder`; kill it if it does not end."""
    log = folder / f"{app}.log"
    with socket.create_server(("127.0.0.1", 0)) as listening, log.open("ab") as output:
        line = [sys.executable, "-m", "uvicorn", f"{app}:app", "--app-dir", str(FOLDER)]
        process = subprocess.Popen(
            [*line, "--fd", str(listening.fileno())],
            pass_fds=[listening.fileno()],
            stdout=output,
            stderr=output,
            env=environ({"OPENAI_BASE_URL": base_url, "JOURNAL": str(folder / "journal.db")}) | _path(),
        )
        port = listening.getsockname()[1]
    try:
        yield WebServer(process, port, log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
