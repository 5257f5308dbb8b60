"""A chat as plain lines: nothing moves the cursor, nothing is drawn twice, no colour.

For screen readers, dumb terminals and pipes. A line of the answer is written once it is whole. From a pipe, the
next line is read when the last one has been answered.
"""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from actors.cli.chat.face import Control, Given, Live, Row
from actors.cli.keyboard import Keyboard
from actors.cli.screen import Style


class PlainFace:
    """Lines on standard output, lines from standard input."""

    def __init__(self) -> None:
        self.is_live = sys.stdin.isatty()
        self._keyboard = Keyboard()
        self._prompt = ""
        self._gone = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._prompt:
            self._write("\n")

    async def next(self) -> Given:
        """Return the next line."""
        line = None if self._gone else await self._keyboard.line()
        self._prompt = ""
        if line is not None:
            return line
        return Control.GONE if self._keyboard.is_closed else Control.END

    def put(self, text: str, style: Style | None = None) -> None:
        """Write lines; a prompt that stands there is written again below."""
        again = self._prompt
        self._write(f"\n{text}\n{again}" if again else f"{text}\n")

    def table(self, columns: Row, rows: Sequence[Row]) -> None:
        """Write each row as one line that a voice can read: every column with its name."""
        for row in rows:
            cells = zip(columns, row, strict=True)
            self.put("; ".join(f"{name} {cell}" for name, cell in cells if cell))

    def live(self, lines: Live) -> None:
        """What is not finished is not shown."""

    def prompt(self, text: str) -> None:
        """Write what stands in front of the person's line, if there is a person."""
        if self.is_live and text and text != self._prompt:
            self._write(text)
            self._prompt = text

    def restore(self) -> None:
        """Nothing was taken."""

    def _write(self, text: str) -> None:
        """Write, as long as anybody reads it; then the chat ends as it does at the end of the lines."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            self._gone = True
