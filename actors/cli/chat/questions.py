"""Ask the user for approvals and external results during a turn.

The next line that the user enters is the answer.
"""

import anyio

from actors.cli.approvals import QUESTION, Answer, parse_answer
from actors.cli.chat.terminal import Terminal
from actors.core.data.jsonio import JsonRefused, JsonValue, parse


class Questions:
    """The open question of a chat, and its answer. There is at most one question at a time."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._line = ""
        self._answered: anyio.Event | None = None
        self.asked: anyio.Event = anyio.Event()
        """Set while a question is open. A new event replaces it when the question is answered."""

    async def approve(self, call: str) -> Answer:
        """Ask whether a call may run, and return the answer."""
        return parse_answer(await self._ask(f"  needs approval: {call}", f"Run it? {QUESTION} "))

    async def result(self, call: str) -> JsonValue:
        """Ask for the result of an external call. A line that is not JSON is returned as a string."""
        line = await self._ask(f"  needs an external result: {call}", "Its result (text or JSON)? ")
        try:
            return parse(line.encode("utf-8", "replace"))
        except JsonRefused:
            return line

    async def _ask(self, question: str, prompt: str) -> str:
        self._answered = anyio.Event()
        self._terminal.print(question, "yellow")
        self._terminal.show_prompt(prompt)
        self.asked.set()
        try:
            await self._answered.wait()
        finally:
            self._answered = None
            self._close_question()
            self._terminal.show_prompt("")
        return self._line

    def answer(self, line: str) -> bool:
        """Use a line as the answer to the open question. Return False if no question is open."""
        if self._answered is None or self._answered.is_set():
            return False
        self._line = line
        self._answered.set()
        self._close_question()  # until the next question or the end of the turn, nothing more is read from a pipe
        return True

    def _close_question(self) -> None:
        if self.asked.is_set():  # keep an event that is not set, because a task may already wait for it
            self.asked = anyio.Event()
