"""What a chat needs of where it is shown: lines out, lines in, and a place for what is not finished yet."""

from collections.abc import Sequence
from enum import Enum, auto
from types import TracebackType
from typing import Protocol, Self, TypeAlias

from actors.cli.screen import Style


class Control(Enum):
    """What a person gives that is not a line."""

    INTERRUPT = auto()
    """Ctrl-C."""
    CLEARED = auto()
    """Ctrl-C on a line that was being written, which is gone."""
    END = auto()
    """Ctrl-D, or the end of what is piped in."""
    GONE = auto()
    """There is no terminal any more."""


Given: TypeAlias = str | Control
Live: TypeAlias = Sequence[tuple[str, Style | None]]
Row: TypeAlias = tuple[str, ...]


class Face(Protocol):
    """Where a chat is shown. What is put comes out in order; nothing here waits for the person but `next`.

    Texts are safe to show: whoever puts them has written control characters out.
    """

    is_live: bool
    """Whether lines are taken while a turn runs. If not, they come from a pipe and are taken one after the other."""

    async def __aenter__(self) -> Self:
        """Take the terminal."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back as it was."""

    async def next(self) -> Given:
        """Return what the person gives next."""

    def put(self, text: str, style: Style | None = None) -> None:
        """Show whole lines."""

    def table(self, columns: Row, rows: Sequence[Row]) -> None:
        """Show rows of the same columns."""

    def live(self, lines: Live) -> None:
        """Show what is not finished yet, in place of what was so before."""

    def prompt(self, text: str) -> None:
        """Say what stands in front of the person's line; empty while nothing is expected."""

    def restore(self) -> None:
        """Give the terminal back at once, because the process ends here."""
