"""Lines of standard input, for whoever may be cancelled while waiting for one.

No thread waits in `read`, so a process that leaves has nothing to wait for. A terminal gives a line once it is whole;
its end, a closed pipe and a terminal that is gone all end the lines.
"""

import codecs
import os
import stat

import anyio
import anyio.lowlevel

_CHUNK = 4096


class Keyboard:
    """Reads a descriptor, that of standard input by default. A line longer than `most` characters is cut."""

    def __init__(self, descriptor: int = 0, most: int = 1_000_000) -> None:
        self._descriptor = descriptor
        self._most = most
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text = ""
        self._ended = False
        self.is_gone = False
        """Whether the lines ended because there is no terminal any more."""
        self._waits = _can_wait(descriptor)
        self._is_terminal = os.isatty(descriptor)

    async def line(self) -> str | None:
        """Return the next line without its end, None after the last."""
        await anyio.lowlevel.checkpoint()
        while "\n" not in self._text and not self._ended:
            await self._more()
        line, newline, self._text = self._text.partition("\n")
        return line if newline or line else None

    async def _more(self) -> None:
        if self._waits:
            await anyio.wait_readable(self._descriptor)
        try:
            read = os.read(self._descriptor, _CHUNK)
        except OSError:  # EIO
            read = b""
        self._ended = not read
        self.is_gone = self._ended and self._is_terminal and not os.isatty(self._descriptor)
        text = self._decode(read, final=self._ended).replace("\r\n", "\n")
        self._text = (self._text + text)[: self._most]


def _can_wait(descriptor: int) -> bool:
    """Say whether reading may have to wait. Of a file or `/dev/null` it never does, and a selector refuses them."""
    kind = os.fstat(descriptor).st_mode
    return not stat.S_ISREG(kind) and (not stat.S_ISCHR(kind) or os.isatty(descriptor))
