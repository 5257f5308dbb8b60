"""Write text to the terminal of a chat as it arrives, and read complete lines.

The cursor never moves back, so the same output suits terminals, screen readers and pipes.
"""

import sys
from collections.abc import Sequence

from actors.cli.keyboard import Keyboard
from actors.cli.screen import Screen, Style, align_columns


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
