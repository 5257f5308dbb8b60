"""A terminal for tests: a pseudo-terminal that runs `actors`, and the screen that a person would see."""

import fcntl
import os
import signal
import struct
import termios
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pyte

from tests.cli.command import environ, fork_actors
from tests.runtime.forked import Child

ROWS, COLUMNS = 30, 90
CHAT = ("actors.cli.chat", "actors.cli.offline")
"""Modules that only a chat imports."""
SECONDS = 60


class Terminal:
    """A process on a pseudo-terminal. Its output is drawn on a screen; tests wait for the screen, never for a time."""

    def __init__(self, start: Callable[[Path], Child]) -> None:
        self._master, self._own = os.openpty()
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._drawn = pyte.ByteStream(self._screen)
        self.written = b""
        self.is_closed = self.is_over = False
        self._process = start(Path(os.ttyname(self._own)))

    @property
    def screen_text(self) -> str:
        """The screen's text."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    async def until(self, holds: str | Callable[[], bool]) -> None:
        """Read until the screen shows a text or a condition holds."""
        seen = partial(self._shows, holds) if isinstance(holds, str) else holds
        with anyio.move_on_after(SECONDS) as scope:
            while not seen():
                await self._read_more()
        assert not scope.cancelled_caught, self.screen_text

    def _shows(self, words: str) -> bool:
        return words in self.screen_text

    async def _read_more(self) -> None:
        await anyio.wait_readable(self._master)
        read = os.read(self._master, 65536)
        self.written += read
        self._drawn.feed(read)

    def type(self, text: str) -> None:
        """Type these keys."""
        os.write(self._master, text.encode())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        os.kill(self._process.pid, number)

    def wait(self) -> int:
        """Wait for the end of the process, and return its status."""
        code = self._process.wait(SECONDS * 2)
        self.is_over = True
        return code

    def close(self) -> None:
        """Close the terminal, like a window."""
        if not self.is_closed:
            self.is_closed = True
            os.close(self._own)
            os.close(self._master)

    async def wait_for_end(self) -> int:
        """Read the remaining output, wait for the end of the process and return its exit code, 128 + N for a signal.

        A process that does not end is killed. The wait is never abandoned: it would later reap the next process.
        """
        async with anyio.create_task_group() as tasks:
            if not self.is_closed:
                tasks.start_soon(self._drain)
            tasks.start_soon(self._kill)
            code = await anyio.to_thread.run_sync(self.wait)
            tasks.cancel_scope.cancel()
        if not self.is_closed:
            self._drain_rest()
        return code if code >= 0 else 128 - code

    async def _kill(self) -> None:
        await anyio.sleep(SECONDS)
        self.signal(signal.SIGKILL)

    async def _drain(self) -> None:
        while True:
            await self._read_more()

    def _drain_rest(self) -> None:
        os.set_blocking(self._master, False)
        with suppress(BlockingIOError):
            while read := os.read(self._master, 65536):
                self.written += read
                self._drawn.feed(read)


@asynccontextmanager
async def run_terminal(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    before: str = "",
    loaded: Sequence[str] = CHAT,
    term: str = "xterm-256color",
) -> AsyncIterator[Terminal]:
    """Run `actors` on its own controlling terminal until the end of the block.

    The process runs the Python code `before` first; `loaded` are modules that it has imported besides
    `tests.cli.forking.LOADED`.
    """
    given = environ({"TERM": term, **(env or {})})
    screen = Terminal(lambda own: fork_actors([own], arguments, given, *loaded, before=before))
    try:
        yield screen
    finally:
        if not screen.is_over:
            screen.signal(signal.SIGKILL)
            screen.wait()
        screen.close()
