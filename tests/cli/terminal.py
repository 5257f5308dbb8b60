"""A terminal for tests: a pseudo-terminal with `actors` on it, and what a person would see."""

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

from tests.cli.command import environ, forked
from tests.runtime.forked import Child

ROWS, COLUMNS = 30, 90
CHAT = ("actors.cli.chat", "actors.cli.offline")
"""What only a chat loads."""
SECONDS = 60


class Terminal:
    """A process on a pseudo-terminal. Everything it writes is drawn on a screen; nothing is waited for by the clock."""

    def __init__(self, start: Callable[[Path], Child]) -> None:
        self._master, self._own = os.openpty()
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._drawn = pyte.ByteStream(self._screen)
        self.written = b""
        self.is_closed = self.is_over = False
        self._process = start(Path(os.ttyname(self._own)))

    @property
    def shown(self) -> str:
        """The screen as a person reads it."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    async def until(self, holds: str | Callable[[], bool]) -> None:
        """Read until the screen shows a text, or something holds."""
        seen = partial(self._shows, holds) if isinstance(holds, str) else holds
        with anyio.move_on_after(SECONDS) as scope:
            while not seen():
                await self._more()
        assert not scope.cancelled_caught, self.shown

    def _shows(self, words: str) -> bool:
        return words in self.shown

    async def _more(self) -> None:
        await anyio.wait_readable(self._master)
        read = os.read(self._master, 65536)
        self.written += read
        self._drawn.feed(read)

    def type(self, text: str) -> None:
        """Type these keys."""
        os.write(self._master, text.encode())

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        os.kill(self._process.pid, number)

    def wait(self) -> int:
        """Wait for the process's end, and return its status."""
        code = self._process.wait(SECONDS * 2)
        self.is_over = True
        return code

    def close(self) -> None:
        """Be gone, as a window that is closed."""
        if not self.is_closed:
            self.is_closed = True
            os.close(self._own)
            os.close(self._master)

    async def ended(self) -> int:
        """Read what is still written, wait for the process's end and return its code, a signal's as a shell has it.

        One that does not end by itself is killed. The wait is not given up: it would read the end of the next process.
        """
        async with anyio.create_task_group() as tasks:
            if not self.is_closed:
                tasks.start_soon(self._drain)
            tasks.start_soon(self._killed)
            code = await anyio.to_thread.run_sync(self.wait)
            tasks.cancel_scope.cancel()
        if not self.is_closed:
            self._rest()
        return code if code >= 0 else 128 - code

    async def _killed(self) -> None:
        await anyio.sleep(SECONDS)
        self.signal(signal.SIGKILL)

    async def _drain(self) -> None:
        while True:
            await self._more()

    def _rest(self) -> None:
        os.set_blocking(self._master, False)
        with suppress(BlockingIOError):
            while read := os.read(self._master, 65536):
                self.written += read
                self._drawn.feed(read)


@asynccontextmanager
async def terminal(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    before: str = "",
    loaded: Sequence[str] = CHAT,
    term: str = "xterm-256color",
) -> AsyncIterator[Terminal]:
    """Run `actors` on a terminal of its own, which is its controlling one, for the time of the block.

    `before` is Python that the process runs first; `loaded` is what it has loaded besides `tests.cli.forking.LOADED`.
    """
    given = environ({"TERM": term, **(env or {})})
    screen = Terminal(lambda own: forked([own], arguments, given, *loaded, before=before))
    try:
        yield screen
    finally:
        if not screen.is_over:
            screen.signal(signal.SIGKILL)
            screen.wait()
        screen.close()
