"""Print the demo: each request with its shape and the changes that rendering made, each answer, and each switch."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from actors.cli.screen import Screen, Style, escape_controls, one_line
from actors.cli.shape import CallLabels, call_number, shape, split_unchanged
from actors.core.stream_events.ask_events import CallEnd, CompleteEvent, ErrorEvent, FailoverEvent
from actors.core.stream_events.events import SessionEvent, SwitchAppliedEvent, SwitchFailedEvent
from actors.core.stream_events.round_events import MessageEvent, RequestRenderedEvent, ToolResultsEvent
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
"""Indentation of the lines below a request, which aligns them with the request's status."""
_LABEL = 31
"""Columns that the name of the backend, the status and the sizes of a request take."""

LEGEND = (
    "How to read a request: U is a user message, A an assistant message; in brackets T is thinking, t text, "
    "c1 a tool call, R1 its result, R1* a synthetic result because there is none. '+386 on 692': 386 new bytes "
    "follow 692 bytes that were sent before; (7) is the number of unchanged messages."
)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request and the status of its answer.

    Args:
        status: HTTP status of the answer.
        same_count: Number of messages at the start that are the same as in the last request to this provider.
        new_words: One word for each later message (see `actors.cli.shape`).
        sent: The session's event about the request, which contains its sizes and the report of its rendering.
        is_retry: True if the request repeats the last one.
    """

    backend: str
    status: int
    same_count: int
    new_words: list[str]
    sent: RequestRenderedEvent
    is_retry: bool


@dataclass(slots=True)
class ExchangePrinter:
    """A printer of a session's events and of the requests that the servers received, in the order of the log.

    A request is printed when its answer has arrived, because only then is the number of its retries known.
    """

    servers: Mapping[str, LoopbackServer]
    printer: "DemoPrinter"
    counts: dict[str, int] = field(default_factory=dict[str, int])
    _open: RequestRenderedEvent | None = None
    _shapes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _labels: dict[str, CallLabels] = field(default_factory=dict[str, CallLabels])
    _seen: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, counter: str, amount: int = 1) -> None:
        """Add to one of the counts that the demo prints at its end."""
        self.counts[counter] = self.counts.get(counter, 0) + amount

    def print_event(self, event: SessionEvent) -> None:
        """Print an event of the session. The event of a request is kept until the answer has arrived."""
        match event:
            case RequestRenderedEvent():
                self._open = event
            case MessageEvent(message=message):
                self._print_answer(message, event.error)
            case ToolResultsEvent(results=results):
                if any(end.outcome != "returned" for end in results):
                    self.printer.print_note("tools", _outcomes_text(results))
            case FailoverEvent(backend=target):
                self._print_open_request()
                self.count("failovers")
                self.printer.print_note("failover", f"the turn ended; {target} continues the same ask")
            case SwitchAppliedEvent(target=target):
                self.count("switches applied")
                self.printer.print_note("switch", f"applied at the end of the turn: {target} is next")
            case SwitchFailedEvent(error=why):
                self.printer.print_note("switch", f"failed at the end of the turn: {why}")
            case CompleteEvent(result=result) | ErrorEvent(result=result):
                self._print_open_request()
                if result.status in ("failed", "interrupted"):
                    self.printer.print_note("ended", f"{result.status}; every call is closed")
            case _:
                pass

    def _print_answer(self, message: Message, error: str) -> None:
        sent = self._open
        self._print_open_request()
        if sent is not None and message.blocks:
            self.printer.print_message(message, error)

    def _print_open_request(self) -> None:
        """Print the rendered request that has just been answered, and its retries. Do nothing if there is none."""
        sent, self._open = self._open, None
        if sent is None:
            return
        name = sent.binding.backend
        labels = self._labels.setdefault(name, CallLabels())
        labels.add_report(sent.report)
        fresh = self.servers[name].requests[self._seen.get(name, 0) :]
        self._seen[name] = self._seen.get(name, 0) + len(fresh)
        for at, exchange in enumerate(fresh):
            self._print_exchange(name, exchange, sent, labels, is_retry=at > 0)

    def _print_exchange(
        self, name: str, exchange: Exchange, sent: RequestRenderedEvent, labels: CallLabels, *, is_retry: bool
    ) -> None:
        words = shape(exchange.body, labels)
        same, new = split_unchanged(self._shapes.get(name, []), words)
        self._shapes[name] = words
        self.printer.print_request(SentRequest(name, exchange.status, same, new, sent, is_retry))


def _outcomes_text(results: Iterable[CallEnd]) -> str:
    """Return the outcomes of calls, grouped by outcome, such as `c9 returned, c10 c11 cancelled`."""
    by_end: dict[str, list[str]] = {}
    for end in results:
        by_end.setdefault(end.outcome, []).append(f"c{call_number(end.call_id)}")
    return ", ".join(f"{' '.join(calls)} {how}" for how, calls in by_end.items())


@dataclass(slots=True)
class DemoPrinter:
    """A printer of the demo, in columns that fit the terminal."""

    screen: Screen
    _scenes: int = 0
    _compact: bool = False
    _names: int = 8
    _held: str = ""

    def start_scene(self, title: str, *, is_compact: bool = False, name_width: int = 8) -> None:
        """Print the title of a scene. In a compact scene, a request and its answer share a line.

        Args:
            name_width: Number of columns for the name of a backend.
        """
        self._print_held_request()
        self._names = name_width
        self._scenes += 1
        self._compact = is_compact
        self.screen.write_line()
        for line in textwrap.wrap(f"{self._scenes}. {title}", self.screen.width, subsequent_indent="   "):
            self.screen.write_line(self.screen.style(line, "bold"))

    def print_user_message(self, text: str) -> None:
        self.print_note("you", text)

    def print_request(self, request: SentRequest) -> None:
        """Print a request: its backend, its status, its sizes, and one word per message.

        In a compact scene, print it later, on the line of its answer.
        """
        self._print_held_request()
        label = f"  {self._backend_label(request)} {self._status_label(request.status)} {self._byte_counts(request)}"
        if self._compact:
            self._held = label
            return
        kept = [f"({request.same_count})"] if request.same_count else []
        words = ["again"] if request.is_retry else [*kept, *request.new_words]
        self._print_wrapped(" ".join(words), label)
        if text := "; ".join(f"{what} {which}" for what, which in _report_entries(request.sent.report)):
            self._print_wrapped(text)

    def print_message(self, message: Message, error: str) -> None:
        """Print a message of the model. `error` says why the message is incomplete, and is empty if it is complete."""
        text = "; ".join(_block_texts(message, self.screen.width)) + (
            f" (incomplete: {error})" if error else ""
        )
        if self._held:
            self._print_held_request(text)
        else:
            self.screen.write_line(f"{INDENT}> {one_line(text, self.screen.width - len(INDENT) - 2)}")

    def print_note(self, topic: str, text: str) -> None:
        """Print a note about an event that is neither a request nor an answer. `topic` is a label such as `switch`."""
        if self._compact and topic in _ROUTINE:
            return
        self._print_held_request()
        label = _name_label(self.screen, topic, 8)
        first, *more = textwrap.wrap(escape_controls(text), self.screen.width - len(INDENT)) or [""]
        self.screen.write_line(f"  {label} {first}")
        for line in more:
            self.screen.write_line(f"{INDENT}{line}")

    def _backend_label(self, request: SentRequest) -> str:
        return _name_label(self.screen, request.backend, self._names)

    def _status_label(self, status: int) -> str:
        return self.screen.style(str(status), "green" if status == 200 else "red")

    def _byte_counts(self, request: SentRequest) -> str:
        sent = request.sent
        return self.screen.style(
            f"+{sent.total_bytes - sent.reused_bytes:,} on {sent.reused_bytes:,}".ljust(15), "dim"
        )

    def _print_held_request(self, answer: str = "") -> None:
        """In a compact scene, print the request that was held back until now, with the text of its answer."""
        if self._held:
            self.screen.write_line(
                f"{self._held} {one_line(answer, self.screen.width - _LABEL - self._names + 7)}"
            )
        self._held = ""

    def _print_wrapped(self, text: str, label: str = "") -> None:
        """Print text after `label`, wrapped to the width of the screen.

        Without a label, the text is indented and coloured.
        """
        indent = " " * _LABEL if label else INDENT
        lines = textwrap.wrap(text, self.screen.width, initial_indent=indent, subsequent_indent=INDENT)
        for number_, line in enumerate(lines):
            if label and number_ == 0:
                self.screen.write_line(f"{label} {line.strip()}")
            else:
                self.screen.write_line(line if label else self.screen.style(line, "yellow"))


_ROUTINE = frozenset({"you", "switch", "tools"})
"""Topics of the notes that a compact scene omits."""
_COLORS: dict[str, tuple[Style, ...]] = {"gpt": ("cyan",), "claude": ("green",), "you": ("bold",)}


def _name_label(screen: Screen, name: str, width: int) -> str:
    return screen.style(f"{name:<{width}}", *_COLORS.get(name, ("yellow",)))


def _report_entries(report: Report) -> Iterable[tuple[str, str]]:
    """Yield a label and a text for each change made by rendering, such as `synthetic` and `R10 R11 (cancelled)`."""
    if report.synthetic:
        yield "synthetic", _group_by_reason(report.synthetic)
    if report.dedupe:
        yield "not sent", _group_by_reason(report.dedupe)
    if report.losses:
        yield "dropped", ", ".join(f"{count} {kind}" for kind, count in report.losses)
    if report.fillers:
        yield "added", ", ".join(f"{count} {kind}" for kind, count in report.fillers)


def _group_by_reason(pairs: Iterable[tuple[str, str]]) -> str:
    """Return results grouped by reason, such as `R10 R11 (cancelled), R12 (lost)`."""
    by_reason: dict[str, list[str]] = {}
    for call_id, reason in pairs:
        by_reason.setdefault(reason, []).append(f"R{call_number(call_id)}")
    return ", ".join(f"{' '.join(results)} ({reason})" for reason, results in by_reason.items())


def _block_texts(message: Message, width: int) -> Iterable[str]:
    """Yield the blocks of a message as text, with the calls last."""
    calls: list[str] = []
    for block in message.blocks:
        match block:
            case Thinking(text=text) if text:
                yield f"thinks: {one_line(text, width)}"
            case Text(text=text):
                yield one_line(text, width)
            case ToolCall():
                calls.append(f"c{call_number(block.id)} {block.name}{_arguments_text(block)}")
            case Thinking() | ToolResult() | Media() | Code() | ProviderBlock():
                pass
    if calls:
        yield ", ".join(calls)


def _arguments_text(call: ToolCall) -> str:
    if call.raw is not None:
        return f"({call.raw} ..."
    return "(" + ", ".join(str(value) for value in call.arguments.values()) + ")"
