"""The state that a chat and its commands share."""

from dataclasses import dataclass, field

import anyio

from actors.cli.chat.terminal import Terminal
from actors.cli.exits import Exit
from actors.config import Config
from actors.core.settings.asking import AskSettings
from actors.core.settings.spending import sum_costs
from actors.core.stream_events.results import AskResult
from actors.core.values.stream import Usage
from actors.runtime.handle import Session


@dataclass(slots=True)
class ChatState:
    """One session at the terminal.

    Args:
        settings: Settings of each ask.
        usage: Tokens of all completed turns.
        cost: Their cost; None if a price is unknown.
        code: The exit code, once the person leaves.
        reading: Cancelled when the person leaves.
    """

    session: Session
    config: Config
    terminal: Terminal
    settings: AskSettings
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    turns: int = 0
    code: Exit | None = None
    reading: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def count(self, result: AskResult) -> None:
        """Add a completed turn. A turn that waits is counted at its end."""
        if result.status in ("awaiting", "late"):
            return
        self.turns += 1
        self.usage += result.usage
        if result.usage != Usage():
            self.cost = sum_costs((self.cost, result.cost))

    def leave(self, code: Exit = Exit.OK) -> None:
        """End the chat, and cancel the current turn."""
        self.code = code if self.code is None else self.code
        self.reading.cancel()
