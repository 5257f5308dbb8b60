"""The terminal of a chat: text out as it arrives, whole lines in.

Nothing is redrawn and the cursor never moves back, so the same interface serves terminals, screen readers and pipes.
"""

import sys
from collections.abc import Sequence

from actors.cli.keyboard import Keyboard
from actors.cli.screen import Screen, Style, columns


class Terminal:
    """Standard input and output. Callers escape foreign text before they write it."""

    def __init__(self, screen: Screen) -> None:
        self.is_interactive: bool = sys.stdin.isatty()
        """True if a person types. Otherwise each line is read after the answer to the line before."""
        self.is_mid_line: bool = False
        """True if the last line of the output is incomplete."""
        self._screen = screen
        self._keyboard = Keyboard()
        self._prompt = ""
        self._has_reader = True

    @property
    def is_closed(self) -> bool:
        """True after the terminal was closed."""
        return self._keyboard.is_closed

    async def line(self) -> str | None:
        """Return the next line, or None at the end of input."""
        line = await self._keyboard.line() if self._has_reader else None
        if line is not None:
            self._prompt, self.is_mid_line = "", False  # the terminal has echoed the newline
        return line

    def prompt(self, text: str) -> None:
        """Show a prompt, unless the next line is there already, or hide it if `text` is empty."""
        if not text:
            self._prompt = ""
        elif self.is_interactive and text != self._prompt and not self._keyboard.has_input:
            self._prompt = text
            self.stream(text)

    def stream(self, text: str, style: Style | None = None) -> None:
        """Write a piece of text."""
        if text:
            self._write(self._screen.style(text, style) if style else text)
            self.is_mid_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Complete the last line."""
        if self.is_mid_line:
            self.stream("\n")

    def print(self, text: str, style: Style | None = None) -> None:
        """Write whole lines, and repeat the prompt below them."""
        start = "\n" if self.is_mid_line else ""
        lines = self._screen.style(text, style) if style else text
        self._write(f"{start}{lines}\n{self._prompt}")  # one write, between two keys of the person
        self.is_mid_line = bool(self._prompt)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write rows with aligned columns."""
        first, *lines = columns([header, *rows])
        self.print(first, "dim")
        for line in lines:
            self.print(line)

    def _write(self, text: str) -> None:
        """Write. If the output is closed, the chat ends as at the end of input."""
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            self._has_reader = False
