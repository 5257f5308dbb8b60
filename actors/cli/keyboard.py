"""Read lines from standard input in a task that can be cancelled.

No thread blocks in `read`, so nothing delays the end of the process. The lines end at the end of input, and when the
pipe or the terminal is closed.
"""

import codecs
import os
import select
import stat

import anyio
import anyio.lowlevel

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
        """Return the next line without its newline, and None after the last line."""
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
