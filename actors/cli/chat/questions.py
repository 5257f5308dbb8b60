"""Approvals in a chat: the next line the person writes is the answer."""

import anyio

from actors.cli.approvals import QUESTION, Word, read_word
from actors.cli.chat.face import Face


class Questions:
    """One question at a time, as `Approvals` puts them."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._word: Word = "no"
        self._answered: anyio.Event | None = None
        self.asked = anyio.Event()
        """Set while a question is open."""

    async def ask(self, words: str) -> Word:
        """Show a call and return what the person says to it."""
        self._answered = anyio.Event()
        self._face.put(f"  wants an approval: {words}", "yellow")
        self._face.prompt(f"Run it? {QUESTION} ")
        self.asked.set()
        try:
            await self._answered.wait()
        finally:
            self._answered, self.asked = None, anyio.Event()
            self._face.prompt("")
        return self._word

    def take(self, line: str) -> bool:
        """Answer the open question; False if there is none."""
        if self._answered is None or self._answered.is_set():
            return False
        self._word = read_word(line)
        self._answered.set()
        return True
