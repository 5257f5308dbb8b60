"""Show the events of a turn in a chat: text and thinking as they arrive, and each call with its outcome and duration.

During the turn, `Questions` asks the user for approvals and external results. The next line that the user enters is the
answer.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from actors.cli.conversation import (
    QUESTION,
    Answer,
    call_text,
    event_note,
    failure_reason,
    incomplete_answer_notes,
    parse_answer,
)
from actors.cli.screen import Style, escape_controls, one_line
from actors.cli.terminal import Terminal
from actors.config import Config
from actors.core.data.jsonio import JsonRefused, JsonValue, parse
from actors.core.ledger import Ledger
from actors.core.stream_events.ask_events import AskResult, CompleteEvent, ErrorEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.round_events import (
    MessageEvent,
    RoundTextAssembler,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolProgressEvent,
    ToolResultsEvent,
)
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId

_STYLES: dict[str, Style] = {"returned": "green", "failed": "red", "refused": "red"}
_PROGRESS_WIDTH = 80


@dataclass(slots=True)
class _CallLine:
    """A call that is shown as running: its text, and the time at which it began."""

    text: str
    began: float


class ChatView:
    """The output of a session's turns on a terminal.

    Args:
        clock: Returns the time in seconds, from any origin.
        config: Used to suggest a fix for a failure.
        thinking: True to show the model's thinking.
    """

    def __init__(
        self, terminal: Terminal, clock: Callable[[], float], config: Config, *, thinking: bool = True
    ) -> None:
        self._terminal = terminal
        self._config = config
        self._clock = clock
        self._shows_thinking = thinking
        self._is_thinking = False
        self._answer = RoundTextAssembler()
        self._calls: dict[CallId, _CallLine] = {}
        self._waiting: set[CallId] = set()

    @property
    def has_calls(self) -> bool:
        """True while a call is shown as running."""
        return bool(self._calls)

    def show_event(self, event: SessionEvent) -> None:
        """Write the lines for an event, if there are any."""
        match event:
            case ThinkingEvent():
                self._answer.add_delta(event)
                self._show_thinking(escape_controls(event.text))
            case TextEvent():
                self._show_text(self._answer.add_delta(event))
            case MessageEvent():
                self._show_text(self._answer.end_round(event.message.text, interrupted=bool(event.error)))
                self._end_round()
            case ToolCallEvent():
                self._start_call(event)
            case ToolProgressEvent():
                self._show_progress(event)
            case ToolResultsEvent(results=results):
                for end in results:
                    self._end_call(end.call_id, end.outcome)
            case CompleteEvent(result=result) | ErrorEvent(result=result):
                self._end_turn(result)
            case _ if line := event_note(event):
                self._end_round()
                self._terminal.print(f"  {escape_controls(line)}", "yellow")
            case _:
                pass

    def show_ended_calls(self, ledger: Ledger) -> None:
        """Show the outcome of each running call that has an outcome in the ledger."""
        for call_id in tuple(self._calls):
            known = ledger.get(call_id)
            if known is not None and known.end is not None:
                self._end_call(call_id, type(known.end).__name__.lower())

    def show_cancellation(self) -> None:
        """Show that the turn and its remaining calls were cancelled."""
        self._end_round()
        for call_id in tuple(self._calls):
            self._end_call(call_id, "cancelled")
        self._terminal.print("  cancelled; every call is closed", "yellow")

    @contextmanager
    def mark_waiting(self, call_id: CallId) -> Generator[None]:
        """Mark a call as waiting for the user during the block, and exclude this time from the call's duration."""
        self._waiting.add(call_id)
        try:
            yield
            if (call := self._calls.get(call_id)) is not None:
                call.began = self._clock()
        finally:
            self._waiting.discard(call_id)

    def _show_thinking(self, text: str) -> None:
        for line in text.splitlines(keepends=True) if self._shows_thinking else ():
            label = "" if self._terminal.is_mid_line else "thinking: "
            self._terminal.write(f"{label}{line}", "dim")
            self._is_thinking = True

    def _show_text(self, text: str) -> None:
        if text and self._is_thinking:
            self._end_round()
        self._terminal.write(escape_controls(text))

    def _end_round(self) -> None:
        self._is_thinking = False
        self._terminal.end_line()

    def _start_call(self, event: ToolCallEvent) -> None:
        text = call_text(ToolCall(event.call_id, event.name, event.arguments))
        self._calls[event.call_id] = _CallLine(text, self._clock())
        self._terminal.print(f"  calls {text}", "cyan")

    def _show_progress(self, event: ToolProgressEvent) -> None:
        if (call := self._calls.get(event.call_id)) is not None:
            self._terminal.print(f"  {call.text}: {one_line(event.message, _PROGRESS_WIDTH)}", "dim")

    def _end_call(self, call_id: CallId, outcome: str) -> None:
        if (call := self._calls.pop(call_id, None)) is None:
            return
        seconds = f"after {self._clock() - call.began:.1f} s"
        place = "before it ran" if call_id in self._waiting else seconds
        self._terminal.print(f"  {call.text} {outcome} {place}", _STYLES.get(outcome, "yellow"))

    def _end_turn(self, result: AskResult) -> None:
        self._end_round()
        if result.status == "awaiting":
            return
        for call_id in tuple(self._calls):
            self._end_call(call_id, "cancelled")
        for line in incomplete_answer_notes(result):
            self._terminal.print(f"  {escape_controls(line)}", "yellow")
        if result.status == "cancelled":
            self.show_cancellation()
        elif result.status in ("failed", "interrupted"):
            self._terminal.print(f"  {escape_controls(failure_reason(result, self._config))}", "red")


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
        """Answer the open question with a line. Return False if no question is open."""
        if self._answered is None or self._answered.is_set():
            return False
        self._line = line
        self._answered.set()
        self._close_question()  # until the next question or the end of the turn, nothing more is read from a pipe
        return True

    def _close_question(self) -> None:
        if self.asked.is_set():  # keep an event that is not set, because a task may already wait for it
            self.asked = anyio.Event()
