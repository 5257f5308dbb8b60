"""What a chat and its commands share."""

from dataclasses import dataclass, field

import anyio

from actors.cli.chat.face import Face
from actors.cli.exits import Exit
from actors.config import Config
from actors.core.stream import Usage
from actors.handle import Session


@dataclass(slots=True)
class ChatState:
    """One person, one session, and what it came to so far.

    Args:
        usage: Of all turns that have ended.
        code: Why the person leaves, once it is so.
        reading: Cancelled when nothing more is read.
    """

    session: Session
    config: Config
    face: Face
    usage: Usage = field(default_factory=Usage)
    turns: int = 0
    code: Exit | None = None
    reading: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def leave(self, code: Exit = Exit.OK) -> None:
        """End the chat; the turn in flight is cancelled."""
        self.code = code if self.code is None else self.code
        self.reading.cancel()
