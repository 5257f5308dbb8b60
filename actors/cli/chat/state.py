"""Define the state that a chat and its slash commands share."""

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
    """The state of a chat: its session, its terminal, and the usage of its turns.

    Args:
        settings: Settings of each ask.
        usage: Tokens of all completed turns.
        cost: Cost of all completed turns, or None if a price is unknown.
        turns: Number of completed turns.
        code: The exit code, or None until the user leaves.
        reading: The scope of the task that reads lines. It is cancelled when the user leaves.
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

    def add_turn(self, result: AskResult) -> None:
        """Add the usage and cost of a completed turn. A turn that waits for its caller is added when it ends."""
        if result.status in ("awaiting", "late"):
            return
        self.turns += 1
        self.usage += result.usage
        if result.usage != Usage():
            self.cost = sum_costs((self.cost, result.cost))

    def leave(self, code: Exit = Exit.OK) -> None:
        """End the chat with an exit code, and cancel the current turn."""
        self.code = code if self.code is None else self.code
        self.reading.cancel()
