"""What a person sees of a turn: text and thinking as they come, each call with its state and how long it took."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from actors.cli.answer import failure_reason, incomplete_parts, note
from actors.cli.approvals import call_text
from actors.cli.chat.face import Face
from actors.cli.screen import Style, one_line, safe
from actors.config import Config
from actors.core.ledger import Ledger
from actors.core.stream_events.events import (
    CompleteEvent,
    ErrorEvent,
    MessageEvent,
    SessionEvent,
    TextEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolProgressEvent,
    ToolResultsEvent,
)
from actors.core.stream_events.results import TurnResult
from actors.core.stream_events.round_text import RoundText
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId

_STYLES: dict[str, Style] = {"returned": "green", "failed": "red", "refused": "red"}
_SAID = 80
"""Characters of a tool's progress."""


class _Lines:
    """Whole lines of a text that comes in pieces."""

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, text: str) -> list[str]:
        """Return the lines that a piece completes."""
        *lines, self.rest = (self.rest + text).split("\n")
        return lines

    def end(self) -> list[str]:
        """Return what is left as the last line, if anything is."""
        rest, self.rest = self.rest, ""
        return [rest] if rest else []


@dataclass(frozen=True, slots=True)
class _Running:
    words: str
    began: float
    said: str = ""

    def text(self, now: float, *, waits: bool) -> str:
        """Return the line that stands for the call."""
        return (
            f"  {self.words} waits for you"
            if waits
            else f"  {self.words} running {now - self.began:.1f} s{self.said}"
        )


class View:
    """Shows the events of a session's turns.

    Args:
        clock: Seconds, from any beginning.
        config: Whom the session talks to.
        thinking: Whether it is shown.
    """

    def __init__(
        self, face: Face, clock: Callable[[], float], config: Config, *, thinking: bool = True
    ) -> None:
        self._face = face
        self._config = config
        self._clock = clock
        self._shows_thinking = thinking
        self._answer = RoundText()
        self._text, self._thought = _Lines(), _Lines()
        self._calls: dict[CallId, _Running] = {}
        self._waiting: set[CallId] = set()

    @property
    def calls_run(self) -> bool:
        """Whether there are calls whose end was not shown."""
        return bool(self._calls)

    def event(self, event: SessionEvent) -> None:
        """Show an event."""
        match event:
            case ThinkingEvent():
                self._answer.delta(event)
                self._think(event.text)
            case TextEvent():
                self._say(self._answer.delta(event))
            case ToolCallEvent():
                call = ToolCall(event.call_id, event.name, event.arguments)
                self._calls[event.call_id] = _Running(call_text(call), self._clock())
            case MessageEvent():
                self._say(self._answer.rest(event.message.text, broken=bool(event.error)))
                self._end_round()
            case ToolProgressEvent():
                self._progress(event)
            case ToolResultsEvent(results=results):
                for end in results:
                    self._call_ended(end.call_id, end.outcome)
            case CompleteEvent(result=result) | ErrorEvent(result=result):
                self._ended(result)
            case _:  # a subagent's events too: the line of its call shows that it runs
                self._note(event)
        self.refresh()

    def settle(self, ledger: Ledger) -> None:
        """Show the end of each call that has one."""
        for call_id in tuple(self._calls):
            known = ledger.get(call_id)
            if known is not None and known.end is not None:
                self._call_ended(call_id, type(known.end).__name__.lower())
        self.refresh()

    def refresh(self) -> None:
        """Show what is not finished as it stands now."""
        lines: list[tuple[str, Style | None]] = []
        if self._thought.rest and self._shows_thinking:
            lines.append((f"thinking: {self._thought.rest}", "dim"))
        if self._text.rest:
            lines.append((self._text.rest, None))
        now = self._clock()
        calls = ((call, call_id in self._waiting) for call_id, call in self._calls.items())
        lines += [(call.text(now, waits=waits), "cyan") for call, waits in calls]
        self._face.live(lines)

    @contextmanager
    def waiting(self, call_id: CallId) -> Iterator[None]:
        """Show that a call waits for the person. It runs from the end of the block on."""
        self._waiting.add(call_id)
        self.refresh()
        try:
            yield
            if (call := self._calls.get(call_id)) is not None:
                self._calls[call_id] = replace(call, began=self._clock())
        finally:
            self._waiting.discard(call_id)

    def _think(self, text: str) -> None:
        for line in self._thought.feed(safe(text)):
            self._put_thought(line)

    def _put_thought(self, line: str) -> None:
        if self._shows_thinking:
            self._face.put(f"thinking: {line}", "dim")

    def _say(self, text: str) -> None:
        if text:
            self._end_thought()
        for line in self._text.feed(safe(text)):
            self._face.put(line)

    def _end_thought(self) -> None:
        for line in self._thought.end():
            self._put_thought(line)

    def _end_round(self) -> None:
        self._end_thought()
        for line in self._text.end():
            self._face.put(line)

    def _progress(self, event: ToolProgressEvent) -> None:
        if (call := self._calls.get(event.call_id)) is not None:
            self._calls[event.call_id] = replace(call, said=one_line(f": {event.message}", _SAID))

    def _note(self, event: SessionEvent) -> None:
        if line := note(event):
            self._end_round()
            self._face.put(f"  {safe(line)}", "yellow")

    def _call_ended(self, call_id: CallId, how: str) -> None:
        call = self._calls.pop(call_id, None)
        if call is not None and call_id in self._waiting:
            self._face.put(f"  {call.words} {how} before it ran", _STYLES.get(how, "yellow"))
        elif call is not None:
            took = self._clock() - call.began
            self._face.put(f"  {call.words} {how} after {took:.1f} s", _STYLES.get(how, "yellow"))

    def cancelled(self) -> None:
        """Show that the turn was cancelled, and its calls with it."""
        for call_id in tuple(self._calls):
            self._call_ended(call_id, "cancelled")
        self.refresh()
        self._face.put("  cancelled; every call is closed", "yellow")

    def _ended(self, result: TurnResult) -> None:
        self._end_round()
        if result.status == "awaiting":
            return
        for call_id in tuple(self._calls):
            self._call_ended(call_id, "cancelled")
        for line in incomplete_parts(result):
            self._face.put(f"  {safe(line)}", "yellow")
        if result.status == "cancelled":
            self.cancelled()
        elif result.status in ("failed", "interrupted"):
            self._face.put(f"  {safe(failure_reason(result, self._config))}", "red")
