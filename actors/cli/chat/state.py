"""What a chat and its commands share."""

from dataclasses import dataclass, field

import anyio

from actors.cli.chat.face import Face
from actors.cli.exits import Exit
from actors.config import Config
from actors.core.settings.asking import AskSettings
from actors.core.settings.spending import total
from actors.core.stream_events.results import TurnResult
from actors.core.values.stream import Usage
from actors.runtime.handle import Session


@dataclass(slots=True)
class ChatState:
    """One person, one session, and what it came to so far.

    Args:
        bounds: Of each ask.
        usage: Of all turns that have ended.
        cost: What that costs; None as soon as a price is not known.
        code: Why the person leaves, once it is so.
        reading: Cancelled when nothing more is read.
    """

    session: Session
    config: Config
    face: Face
    bounds: AskSettings
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    turns: int = 0
    code: Exit | None = None
    reading: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def count(self, result: TurnResult) -> None:
        """Take note of what a turn came to. Of one that waits still, its end will say that."""
        if result.status in ("awaiting", "late"):
            return
        self.turns += 1
        self.usage += result.usage
        if result.usage != Usage():
            self.cost = total((self.cost, result.cost))

    def leave(self, code: Exit = Exit.OK) -> None:
        """End the chat; the turn in flight is cancelled."""
        self.code = code if self.code is None else self.code
        self.reading.cancel()
