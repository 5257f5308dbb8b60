"""Read lines from standard input in a task that can be cancelled, and write text to the terminal as it arrives.

No thread blocks in `read`, so nothing delays the end of the process. Reading ends at the end of input, or when the pipe
or the terminal is closed. The cursor never moves back, so the same output suits terminals, screen readers and pipes.
"""

import codecs
import os
import select
import stat
import sys
from collections.abc import Sequence

import anyio
import anyio.lowlevel

from actors.cli.screen import Screen, Style, align_columns

_CHUNK = 4096


class Keyboard:
    """A reader of lines from a descriptor, by default standard input. A line longer than `limit` characters is cut."""

    def __init__(self, descriptor: int = 0, limit: int = 1_000_000) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text = ""
        self._ended = False
        self.is_closed: bool = False
        """True if the lines ended because the terminal was closed."""
        self._waits = _can_wait(descriptor)
        self._is_terminal = os.isatty(descriptor)

    @property
    def has_input(self) -> bool:
        """True if the next line can be read without waiting."""
        return "\n" in self._text or bool(select.select([self._descriptor], [], [], 0)[0])

    async def read_line(self) -> str | None:
        """Return the next line without its newline; None after the last line."""
        await anyio.lowlevel.checkpoint()
        while "\n" not in self._text and not self._ended:
            await self._read_more()
        line, newline, self._text = self._text.partition("\n")
        return line if newline or line else None

    async def _read_more(self) -> None:
        if self._waits:
            await anyio.wait_readable(self._descriptor)
        try:
            read = os.read(self._descriptor, _CHUNK)
        except OSError:  # EIO: the terminal was closed
            read = b""
        self._ended = not read
        self.is_closed = self._ended and self._is_terminal and not os.isatty(self._descriptor)
        text = self._decode(read, final=self._ended).replace("\r\n", "\n")
        self._text = (self._text + text)[: self._limit]


def _can_wait(descriptor: int) -> bool:
    """Return True if `wait_readable` supports the descriptor.

    Files and `/dev/null` never block, and selectors reject them.
    """
    kind = os.fstat(descriptor).st_mode
    return not stat.S_ISREG(kind) and (not stat.S_ISCHR(kind) or os.isatty(descriptor))


class Terminal:
    """Reads standard input and writes standard output, with a prompt.

    Callers must first escape text from models and tools.
    """

    def __init__(self, screen: Screen) -> None:
        self.is_interactive: bool = sys.stdin.isatty()
        """True if a user types. From a pipe, each line is read only after the answer to the line before."""
        self.is_mid_line: bool = False
        """True if the last line of the output has no newline yet."""
        self._screen = screen
        self._keyboard = Keyboard()
        self._prompt = ""
        self._has_reader = True

    @property
    def is_closed(self) -> bool:
        """True if the terminal was closed, which ends the input."""
        return self._keyboard.is_closed

    async def read_line(self) -> str | None:
        """Return the next line, or None at the end of input."""
        line = await self._keyboard.read_line() if self._has_reader else None
        if line is not None:
            self._prompt, self.is_mid_line = "", False  # the terminal has echoed the newline
        return line

    def show_prompt(self, text: str) -> None:
        """Show a prompt, unless the next line has been entered already. An empty `text` removes the prompt."""
        if not text:
            self._prompt = ""
        elif self.is_interactive and text != self._prompt and not self._keyboard.has_input:
            self._prompt = text
            self.write(text)

    def write(self, text: str, style: Style | None = None) -> None:
        """Write text, which need not end with a newline."""
        if text:
            self._write(self._screen.style(text, style) if style else text)
            self.is_mid_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Write a newline unless the output already ends with one."""
        if self.is_mid_line:
            self.write("\n")

    def print(self, text: str, style: Style | None = None) -> None:
        """Write complete lines, and repeat the prompt below them."""
        start = "\n" if self.is_mid_line else ""
        lines = self._screen.style(text, style) if style else text
        # a single write, so that no typed key appears in between
        self._write(f"{start}{lines}\n{self._prompt}")
        self.is_mid_line = bool(self._prompt)

    def print_table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a header and rows with aligned columns."""
        first, *lines = align_columns([header, *rows])
        self.print(first, "dim")
        for line in lines:
            self.print(line)

    def _write(self, text: str) -> None:
        """Write text. If the output is closed, the next `read_line` returns None, which ends the chat."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            self._has_reader = False
