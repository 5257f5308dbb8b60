"""Print the demo: each request with its shape and the decisions behind it, each answer and each switch."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from actors.cli.screen import Screen, Style, escape_controls, one_line
from actors.cli.shape import Numbers, number, shape, split_unchanged
from actors.core.stream_events.events import (
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
from actors.core.stream_events.results import CallEnd
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import (
    Code,
    Media,
    Message,
    ProviderBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.strict.server import LoopbackServer
from actors.testing import Exchange

INDENT = " " * 11
"""Lines below a request are aligned with its status."""
_LABEL = 31
"""Width of the backend, status and bytes of a request."""

LEGEND = (
    "How to read a request: U is a user message, A an assistant message; in brackets T is thinking, t text, "
    "c1 a tool call, R1 its result, R1* a synthetic result because there is none. '+386 on 692': 386 new bytes "
    "follow 692 bytes that were sent before; (7) is the number of unchanged messages."
)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request and its answer.

    Args:
        status: HTTP status of the answer.
        same: Number of messages that are the same as in the last request to this provider.
        new: The words of the other messages.
        sent: The lane and the report.
        is_retry: Whether it repeats the last request.
    """

    backend: str
    status: int
    same: int
    new: list[str]
    sent: RequestRenderedEvent
    is_retry: bool


@dataclass(slots=True)
class Watch:
    """Joins the events of a session with the requests that the servers received, in the order of the log."""

    servers: Mapping[str, LoopbackServer]
    show: "Printed"
    counts: dict[str, int] = field(default_factory=dict[str, int])
    _open: RequestRenderedEvent | None = None
    _shapes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _numbers: dict[str, Numbers] = field(default_factory=dict[str, Numbers])
    _seen: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, what: str, by: int = 1) -> None:
        """Add to a counter of the table at the end."""
        self.counts[what] = self.counts.get(what, 0) + by

    def event(self, event: SessionEvent) -> None:
        """Print an event of the session."""
        match event:
            case RequestRenderedEvent():
                self._open = event
            case MessageEvent(message=message):
                self._answer(message, event.error)
            case ToolResultsEvent(results=results):
                if any(end.outcome != "returned" for end in results):
                    self.show.note("tools", _ends(results))
            case FailoverEvent(backend=target):
                self._flush()
                self.count("failovers")
                self.show.note("failover", f"the turn ended; {target} continues the same ask")
            case SwitchAppliedEvent(target=target):
                self.count("switches applied")
                self.show.note("switch", f"applied at the end of the turn: {target} is next")
            case SwitchFailedEvent(error=why):
                self.show.note("switch", f"failed at the end of the turn: {why}")
            case CompleteEvent(result=result) | ErrorEvent(result=result):
                self._flush()
                if result.status in ("failed", "interrupted"):
                    self.show.note("ended", f"{result.status}; every call is closed")
            case _:
                pass

    def _answer(self, message: Message, fault: str) -> None:
        sent = self._open
        self._flush()
        if sent is not None and message.blocks:
            self.show.message(message, fault)

    def _flush(self) -> None:
        """Print the open request with all its attempts, now that the server has answered."""
        sent, self._open = self._open, None
        if sent is None:
            return
        name = sent.binding.backend
        numbers = self._numbers.setdefault(name, Numbers())
        numbers.learn(sent.report)
        fresh = self.servers[name].requests[self._seen.get(name, 0) :]
        self._seen[name] = self._seen.get(name, 0) + len(fresh)
        for at, exchange in enumerate(fresh):
            self._request(name, exchange, sent, numbers, is_retry=at > 0)

    def _request(
        self, name: str, exchange: Exchange, sent: RequestRenderedEvent, numbers: Numbers, *, is_retry: bool
    ) -> None:
        words = shape(exchange.body, numbers)
        same, new = split_unchanged(self._shapes.get(name, []), words)
        self._shapes[name] = words
        self.show.request(SentRequest(name, exchange.status, same, new, sent, is_retry))


def _ends(results: Iterable[CallEnd]) -> str:
    """Return how calls ended, grouped by outcome: `c9 returned, c10 c11 cancelled`."""
    by_end: dict[str, list[str]] = {}
    for end in results:
        by_end.setdefault(end.outcome, []).append(f"c{number(end.call_id)}")
    return ", ".join(f"{' '.join(calls)} {how}" for how, calls in by_end.items())


@dataclass(slots=True)
class Printed:
    """Prints the demo in columns that fit the terminal."""

    screen: Screen
    _scenes: int = 0
    _compact: bool = False
    _names: int = 8
    _held: str = ""

    def scene(self, title: str, *, compact: bool = False, names: int = 8) -> None:
        """Start a scene. In a compact scene, a request and its answer share a line.

        Args:
            names: Width of the backends' names.
        """
        self._release()
        self._names = names
        self._scenes += 1
        self._compact = compact
        self.screen.line()
        for line in textwrap.wrap(f"{self._scenes}. {title}", self.screen.width, subsequent_indent="   "):
            self.screen.line(self.screen.style(line, "bold"))

    def user(self, text: str) -> None:
        """Print a message of the user."""
        self.note("you", text)

    def request(self, request: SentRequest) -> None:
        """Print a request."""
        self._release()
        label = f"  {self._name(request)} {self._status(request.status)} {self._lane(request)}"
        if self._compact:
            self._held = label
            return
        kept = [f"({request.same})"] if request.same else []
        words = ["again"] if request.is_retry else [*kept, *request.new]
        self._print_wrapped(" ".join(words), label)
        if text := "; ".join(f"{what} {which}" for what, which in _decisions(request.sent.report)):
            self._print_wrapped(text)

    def message(self, message: Message, fault: str) -> None:
        """Print a message of the model. A message of a broken answer has a fault."""
        text = "; ".join(_words(message, self.screen.width)) + (f" (incomplete: {fault})" if fault else "")
        if self._held:
            self._release(text)
        else:
            self.screen.line(f"{INDENT}> {one_line(text, self.screen.width - len(INDENT) - 2)}")

    def note(self, what: str, text: str) -> None:
        """Print an event that is neither a request nor an answer."""
        if self._compact and what in _ROUTINE:
            return
        self._release()
        label = _label(self.screen, what, 8)
        first, *more = textwrap.wrap(escape_controls(text), self.screen.width - len(INDENT)) or [""]
        self.screen.line(f"  {label} {first}")
        for line in more:
            self.screen.line(f"{INDENT}{line}")

    def _name(self, request: SentRequest) -> str:
        return _label(self.screen, request.backend, self._names)

    def _status(self, status: int) -> str:
        return self.screen.style(str(status), "green" if status == 200 else "red")

    def _lane(self, request: SentRequest) -> str:
        sent = request.sent
        return self.screen.style(
            f"+{sent.total_bytes - sent.reused_bytes:,} on {sent.reused_bytes:,}".ljust(15), "dim"
        )

    def _release(self, text: str = "") -> None:
        """Print the line of a request that was held for its answer, completed with `text`."""
        if self._held:
            self.screen.line(f"{self._held} {one_line(text, self.screen.width - _LABEL - self._names + 7)}")
        self._held = ""

    def _print_wrapped(self, text: str, label: str = "") -> None:
        """Print a text after `label`, or indented below the last one."""
        indent = " " * _LABEL if label else INDENT
        lines = textwrap.wrap(text, self.screen.width, initial_indent=indent, subsequent_indent=INDENT)
        for number_, line in enumerate(lines):
            if label and number_ == 0:
                self.screen.line(f"{label} {line.strip()}")
            else:
                self.screen.line(line if label else self.screen.style(line, "yellow"))


_ROUTINE = frozenset({"you", "switch", "tools"})
"""Notes that a compact scene omits."""
_COLORS: dict[str, tuple[Style, ...]] = {"gpt": ("cyan",), "claude": ("green",), "you": ("bold",)}


def _label(screen: Screen, name: str, width: int) -> str:
    return screen.style(f"{name:<{width}}", *_COLORS.get(name, ("yellow",)))


def _decisions(report: Report) -> Iterable[tuple[str, str]]:
    """Yield the decisions of a render, with the numbers of the calls."""
    if report.synthetic:
        yield "synthetic", _reasons(report.synthetic)
    if report.dedupe:
        yield "not sent", _reasons(report.dedupe)
    if report.losses:
        yield "dropped", ", ".join(f"{count} {kind}" for kind, count in report.losses)
    if report.fillers:
        yield "added", ", ".join(f"{count} {kind}" for kind, count in report.fillers)


def _reasons(pairs: Iterable[tuple[str, str]]) -> str:
    """Return results grouped by reason: `R10 R11 (cancelled), R12 (lost)`."""
    by_reason: dict[str, list[str]] = {}
    for call_id, reason in pairs:
        by_reason.setdefault(reason, []).append(f"R{number(call_id)}")
    return ", ".join(f"{' '.join(results)} ({reason})" for reason, results in by_reason.items())


def _words(message: Message, width: int) -> Iterable[str]:
    """Yield the blocks of a message as text, with the calls last."""
    calls: list[str] = []
    for block in message.blocks:
        match block:
            case Thinking(text=text) if text:
                yield f"thinks: {one_line(text, width)}"
            case Text(text=text):
                yield one_line(text, width)
            case ToolCall():
                calls.append(f"c{number(block.id)} {block.name}{_arguments(block)}")
            case Thinking() | ToolResult() | Media() | Code() | ProviderBlock():
                pass
    if calls:
        yield ", ".join(calls)


def _arguments(call: ToolCall) -> str:
    if call.raw is not None:
        return f"({call.raw} ..."
    return "(" + ", ".join(str(value) for value in call.arguments.values()) + ")"
