"""Approvals and results of external calls in a chat: the next line the person writes is the answer."""

import anyio

from actors.cli.approvals import QUESTION, Answer, read_answer
from actors.cli.chat.face import Face
from actors.core.data.jsonio import JsonRefused, JsonValue, parse


class Questions:
    """One question at a time, as `Approvals` and a turn that waits put them."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._line = ""
        self._answered: anyio.Event | None = None
        self.asked = anyio.Event()
        """Set while a question is open."""

    async def ask(self, words: str) -> Answer:
        """Show a call and return what the person says to it."""
        return read_answer(await self._line_for(f"  wants an approval: {words}", f"Run it? {QUESTION} "))

    async def result(self, words: str) -> JsonValue:
        """Show an external call and return the result that the person gives it: JSON, else the line as a text."""
        line = await self._line_for(f"  wants a result from outside: {words}", "Its result (text or JSON)? ")
        try:
            return parse(line.encode("utf-8", "replace"))
        except JsonRefused:
            return line

    async def _line_for(self, question: str, prompt: str) -> str:
        self._answered = anyio.Event()
        self._face.put(question, "yellow")
        self._face.prompt(prompt)
        self.asked.set()
        try:
            await self._answered.wait()
        finally:
            self._answered = None
            self._settled()
            self._face.prompt("")
        return self._line

    def _settled(self) -> None:
        """Have no question open. Who waits for the next one may wait already."""
        if self.asked.is_set():
            self.asked = anyio.Event()

    def take(self, line: str) -> bool:
        """Answer the open question; False if there is none."""
        if self._answered is None or self._answered.is_set():
            return False
        self._line = line
        self._answered.set()
        self._settled()  # from a pipe, no line more is read until the next question, or the turn's end
        return True
