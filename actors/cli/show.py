"""Shows the demo: each request with its shape and what was done to make it so, each answer, each switch."""

import json
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from actors.cli.screen import Screen, Style, one_line, safe
from actors.cli.shape import Numbers, grown, number, shape
from actors.core.stream_events.events import (
    CallEnd,
    CompleteEvent,
    ErrorEvent,
    FailoverEvent,
    MessageEvent,
    RequestRenderedEvent,
    SessionEvent,
    SwitchAppliedEvent,
    SwitchFailedEvent,
    ToolResultsEvent,
)
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import Code, Media, Message, Native, Text, Thinking, ToolCall, ToolResult
from actors.strict.server import LoopbackServer
from actors.testing import Exchange

INDENT = " " * 11
"""What stands under a request begins where its status does."""
_LABEL = 31
"""Columns that a request's backend, status and bytes take."""

LEGEND = (
    "How to read a request: U is a user's message, A an assistant's; in brackets T is thinking, t text, "
    "c1 a tool call, R1 its result, R1* a result made up because there is none. '+386 on 692': 386 bytes are "
    "new, behind 692 that go out exactly as they were sent before; (7) so many messages."
)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One request as it was sent, and its answer.

    Args:
        order: Number of the request, over all providers, from 1.
        status: HTTP status of the answer.
        same: Messages that are as they were in the request before it to this provider.
        new: The words of the others.
        sent: The lane and the report.
        again: Whether it is the request before, tried again.
    """

    order: int
    backend: str
    status: int
    same: int
    new: list[str]
    sent: RequestRenderedEvent
    again: bool


class Show(Protocol):
    """Where the demo's doings are shown."""

    def scene(self, title: str, *, compact: bool = False, names: int = 8) -> None:
        """A new scene begins. A compact one has one line for each request, with what came of it.

        `names` is how wide the names of its backends are.
        """

    def said(self, words: str) -> None:
        """The user says something."""

    def request(self, request: SentRequest) -> None:
        """A request was sent and answered."""

    def message(self, backend: str, message: Message, fault: str) -> None:
        """The model's message, whole."""

    def note(self, what: str, text: str) -> None:
        """Something happened beside the requests."""


@dataclass(slots=True)
class Watch:
    """Joins a session's events with what the servers received, and shows both in the order of the log."""

    servers: Mapping[str, LoopbackServer]
    show: Show
    counts: dict[str, int] = field(default_factory=dict)
    _open: RequestRenderedEvent | None = None
    _shapes: dict[str, list[str]] = field(default_factory=dict)
    _numbers: dict[str, Numbers] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)
    _requests: int = 0

    def count(self, what: str, by: int = 1) -> None:
        """Count something for the table at the end."""
        self.counts[what] = self.counts.get(what, 0) + by

    def event(self, event: SessionEvent) -> None:
        """Show an event of the session."""
        match event:
            case RequestRenderedEvent():
                self._open = event
            case MessageEvent(message=message):
                self._answered(message, event.error)
            case ToolResultsEvent(results=results):
                if any(end.outcome != "returned" for end in results):
                    self.show.note("tools", _ends(results))
            case FailoverEvent(backend=target):
                self._flush()
                self.count("failovers")
                self.show.note("failover", f"the turn is over; {target} takes it up in the same ask")
            case SwitchAppliedEvent(target=target):
                self.count("switches applied")
                self.show.note("switch", f"applied at the turn's end: {target} is next")
            case SwitchFailedEvent(error=why):
                self.show.note("switch", f"failed at the turn's end: {why}")
            case CompleteEvent(result=result) | ErrorEvent(result=result):
                self._flush()
                if result.status in ("failed", "interrupted"):
                    self.show.note("ended", f"{result.status}; every call is closed")
            case _:
                pass

    def _answered(self, message: Message, fault: str) -> None:
        sent = self._open
        self._flush()
        if sent is not None and message.blocks:
            self.show.message(sent.binding.backend, message, fault)

    def _flush(self) -> None:
        """Show the open request, and each try of it, now that the server has answered."""
        sent, self._open = self._open, None
        if sent is None:
            return
        name = sent.binding.backend
        numbers = self._numbers.setdefault(name, Numbers())
        numbers.learn(sent.report)
        fresh = self.servers[name].requests[self._seen.get(name, 0) :]
        self._seen[name] = self._seen.get(name, 0) + len(fresh)
        for at, exchange in enumerate(fresh):
            self._exchanged(name, exchange, sent, numbers, again=at > 0)

    def _exchanged(
        self, name: str, exchange: Exchange, sent: RequestRenderedEvent, numbers: Numbers, *, again: bool
    ) -> None:
        words = shape(exchange.body, numbers)
        same, new = grown(self._shapes.get(name, []), words)
        self._shapes[name] = words
        self._requests += 1
        self.show.request(SentRequest(self._requests, name, exchange.status, same, new, sent, again))


def _ends(results: Iterable[CallEnd]) -> str:
    """Return how calls ended, those that ended alike together: `c9 returned, c10 c11 cancelled`."""
    by_end: dict[str, list[str]] = {}
    for end in results:
        by_end.setdefault(end.outcome, []).append(f"c{number(end.call_id)}")
    return ", ".join(f"{' '.join(calls)} {how}" for how, calls in by_end.items())


@dataclass(slots=True)
class Printed:
    """Shows it to a person, in columns that fit the terminal."""

    screen: Screen
    _scenes: int = 0
    _compact: bool = False
    _names: int = 8
    _held: str = ""

    def scene(self, title: str, *, compact: bool = False, names: int = 8) -> None:
        self._release()
        self._names = names
        self._scenes += 1
        self._compact = compact
        self.screen.line()
        for line in textwrap.wrap(f"{self._scenes}. {title}", self.screen.width, subsequent_indent="   "):
            self.screen.line(self.screen.styled(line, "bold"))

    def said(self, words: str) -> None:
        self.note("you", words)

    def request(self, request: SentRequest) -> None:
        self._release()
        label = f"  {self._who(request)} {self._status(request.status)} {self._lane(request)}"
        if self._compact:
            self._held = label
            return
        kept = [f"({request.same})"] if request.same else []
        words = ["again"] if request.again else [*kept, *request.new]
        self._wrapped(" ".join(words), label)
        if told := "; ".join(f"{what} {text}" for what, text in decisions(request.sent.report)):
            self._wrapped(told)

    def message(self, backend: str, message: Message, fault: str) -> None:
        said = "; ".join(_words(message, self.screen.width))
        if fault:
            said += f" (kept of an answer that broke: {fault})"
        if self._held:
            self._release(said)
        else:
            self.screen.line(f"{INDENT}> {one_line(said, self.screen.width - len(INDENT) - 2)}")

    def note(self, what: str, text: str) -> None:
        if self._compact and what in _ROUTINE:
            return
        self._release()
        label = _colored(self.screen, what, 8)
        first, *more = textwrap.wrap(safe(text), self.screen.width - len(INDENT)) or [""]
        self.screen.line(f"  {label} {first}")
        for line in more:
            self.screen.line(f"{INDENT}{line}")

    def _who(self, request: SentRequest) -> str:
        return _colored(self.screen, request.backend, self._names)

    def _status(self, status: int) -> str:
        return self.screen.styled(str(status), "green" if status == 200 else "red")

    def _lane(self, request: SentRequest) -> str:
        sent = request.sent
        return self.screen.styled(
            f"+{sent.total_bytes - sent.reused_bytes:,} on {sent.reused_bytes:,}".ljust(15), "dim"
        )

    def _release(self, text: str = "") -> None:
        """Print the line of a request that was held until the answer that completes it, or whatever came instead."""
        if self._held:
            self.screen.line(f"{self._held} {one_line(text, self.screen.width - _LABEL - self._names + 7)}")
        self._held = ""

    def _wrapped(self, text: str, label: str = "") -> None:
        """Print a text behind `label`, or indented below one."""
        indent = " " * _LABEL if label else INDENT
        lines = textwrap.wrap(text, self.screen.width, initial_indent=indent, subsequent_indent=INDENT)
        for number_, line in enumerate(lines):
            if label and number_ == 0:
                self.screen.line(f"{label} {line.strip()}")
            else:
                self.screen.line(line if label else self.screen.styled(line, "yellow"))


_ROUTINE = frozenset({"you", "switch", "tools"})
"""What a compact scene leaves out: its lines say it."""
_COLORS: dict[str, tuple[Style, ...]] = {"gpt": ("cyan",), "claude": ("green",), "you": ("bold",)}


def _colored(screen: Screen, name: str, width: int) -> str:
    return screen.styled(f"{name:<{width}}", *_COLORS.get(name, ("yellow",)))


def decisions(report: Report) -> Iterable[tuple[str, str]]:
    """Give what a render decided, as (what, which and why), with the calls' numbers."""
    if report.synthetic:
        yield "made up", _reasons(report.synthetic)
    if report.dedupe:
        yield "set aside", _reasons(report.dedupe)
    if report.losses:
        yield "left out", ", ".join(f"{count} {kind}" for kind, count in report.losses)
    if report.fillers:
        yield "filled in", ", ".join(f"{count} {kind}" for kind, count in report.fillers)


def _reasons(pairs: Iterable[tuple[str, str]]) -> str:
    """Return which results and why, those of one reason together: `R10 R11 (cancelled), R12 (lost)`."""
    by_reason: dict[str, list[str]] = {}
    for call_id, reason in pairs:
        by_reason.setdefault(reason, []).append(f"R{number(call_id)}")
    return ", ".join(f"{' '.join(results)} ({reason})" for reason, results in by_reason.items())


def _words(message: Message, width: int) -> Iterable[str]:
    """Give what a model said, block by block, its calls together."""
    calls: list[str] = []
    for block in message.blocks:
        match block:
            case Thinking(text=text) if text:
                yield f"thinks: {one_line(text, width)}"
            case Text(text=text):
                yield one_line(text, width)
            case ToolCall():
                calls.append(f"c{number(block.id)} {block.name}{_arguments(block)}")
            case Thinking() | ToolResult() | Media() | Code() | Native():
                pass
    if calls:
        yield ", ".join(calls)


def _arguments(call: ToolCall) -> str:
    if call.raw is not None:
        return f"({call.raw} ..."
    return "(" + ", ".join(str(value) for value in call.arguments.values()) + ")"


@dataclass(slots=True)
class JsonLines:
    """Shows it to a program, one JSON object a line."""

    screen: Screen

    def scene(self, title: str, *, compact: bool = False, names: int = 8) -> None:
        self.put(type="scene", title=title)

    def said(self, words: str) -> None:
        self.put(type="user", text=words)

    def request(self, request: SentRequest) -> None:
        report = request.sent.report
        self.put(
            type="request",
            order=request.order,
            backend=request.backend,
            status=request.status,
            again=request.again,
            messages_as_before=request.same,
            shape=request.new,
            reused_bytes=request.sent.reused_bytes,
            total_bytes=request.sent.total_bytes,
            epoch=request.sent.epoch,
            synthetic=[list(pair) for pair in report.synthetic],
            dedupe=[list(pair) for pair in report.dedupe],
            losses=dict(report.losses),
            fillers=dict(report.fillers),
        )

    def message(self, backend: str, message: Message, fault: str) -> None:
        self.put(
            type="message", backend=backend, text=message.text, calls=[call.id for call in message.calls]
        )

    def note(self, what: str, text: str) -> None:
        self.put(type=what, text=text)

    def put(self, **fields: Any) -> None:  # Any: JSON values
        """Write one object."""
        self.screen.line(json.dumps(fields))
