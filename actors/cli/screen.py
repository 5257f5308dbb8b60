"""Write to the terminal safely: escape control characters, and use colour only for terminals or on request.

Text from a model or a tool may contain escape sequences that rename a window or write to the clipboard, so
`escape_controls` makes them visible and harmless. By default, only terminals get colour. NO_COLOR and `--color never`
turn colour off; `--color always` turns it on.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Literal, TextIO

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
ColorOption = Literal["auto", "always", "never"]

_CODES: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
# C0 controls except tab and newline, delete, C1 controls, bidirectional controls, line separators, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    r"""Return `text` with control characters escaped, such as `\x1b`. The text may be any fragment of a stream."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def one_line(text: str, width: int) -> str:
    """Return `text` on one line, with control characters escaped, and shortened to `width` characters."""
    line = " ".join(escape_controls(text).split())
    return line if len(line) <= width else line[: max(width - 3, 0)] + "..."


def align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows as lines with aligned columns. All rows must have the same number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


@dataclass(frozen=True, slots=True)
class Screen:
    """An output stream with its width in columns. `color` is True if the stream shows colour."""

    stream: TextIO
    color: bool = False
    width: int = 80

    def write_line(self, text: str = "") -> None:
        self.stream.write(text.rstrip() + "\n")

    def style(self, text: str, *styles: Style) -> str:
        """Return `text` with the escape sequences of the styles, or unchanged if the screen has no colour."""
        if not self.color or not text:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def screen(
    stream: TextIO | None = None, environ: Mapping[str, str] | None = None, color: ColorOption = "auto"
) -> Screen:
    """Return the screen of a stream, by default of standard output. Its width is from 60 to 100 columns."""
    target: TextIO = sys.stdout if stream is None else stream
    environ = os.environ if environ is None else environ
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    width = get_terminal_size().columns if target.isatty() else 80
    colored = color == "always" or (color == "auto" and target.isatty() and not plain)
    return Screen(target, colored, width=min(max(width, 60), 100))


def print_notice(text: str) -> None:
    """Write `actors: ` and the text as one line on standard error, if standard error is open."""
    lines = escape_controls(text).splitlines() or [""]
    with suppress(OSError):
        sys.stderr.write(f"actors: {' '.join(line.strip() for line in lines)}\n")
