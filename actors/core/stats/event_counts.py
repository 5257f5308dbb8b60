"""Count the outcomes of tool calls, requests and asks from stream events in their JSON form.

In:  the output of `actors run --json`, or the events of one or more sessions, one after the other.
Out: totals of asks and requests, and the counters of each backend. The counters equal those that
     `actors.core.stats.stats.recount` computes from the log.

Events contain less than the log. A batch that was interrupted by the end of the process has no result events, so its
invalid calls are missing from these counts. The work of a subagent is counted if the parent's stream contains its
events.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec.structs import asdict

from actors.core.stats.measures import status_label
from actors.core.stats.stats import OUR_BUG, ToolCounts
from actors.core.stream_events.event_json import Fields
from actors.core.values.content import Message, ToolCall
from actors.core.values.stream import Usage

NO_TOKENS = asdict(Usage())


@dataclass(slots=True)
class WorkCounts:
    """Totals of asks and requests, counted from events.

    Args:
        asks: Number of ended asks by status. An ask that awaits its caller has not ended.
        requests: Number of ended requests by binding and status.
        tokens: Tokens of the answers by binding.
        failures: Number of calls that raised or timed out.
    """

    asks: Counter[str] = field(default_factory=Counter[str])
    requests: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    tokens: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    failures: int = 0

    def count_event(self, event: Fields, binding: str) -> None:
        """Count an event of a turn. `binding` is the turn's binding as a string, such as `house:model`."""
        match event:
            case {
                "type": "complete" | "error",
                "result": {"status": "complete" | "cancelled" | "failed" | "interrupted" as status},
            }:
                self.asks[status] += 1
            case {"type": "request_failed"}:
                cause: Fields = event.get("cause") or {}
                self.count_request(binding, cause.get("status"))
            case {"type": "message", "error": str(error)} if error:
                # The request itself is counted at its `request_failed` event.
                self.add_usage(binding, event.get("usage"))
            case {"type": "message", "message": {"calls": _}}:
                self.count_request(binding, 200, event.get("usage"))
            case {"type": "tool_results", "results": list()}:
                self.failures += sum(each["outcome"] == "failed" for each in event["results"])
            case _:
                pass

    def count_request(self, binding: str, status: int | None, usage: dict[str, int] | None = None) -> None:
        """Count an ended request with this binding and HTTP status, and the tokens of its answer."""
        self.requests.setdefault(binding, Counter())[status_label(status)] += 1
        self.add_usage(binding, usage)

    def add_usage(self, binding: str, usage: dict[str, int] | None) -> None:
        """Add the tokens of an answer with this binding."""
        known = {name: count for name, count in (usage or {}).items() if name in NO_TOKENS}
        self.tokens.setdefault(binding, Counter(NO_TOKENS)).update(known)


def _no_subagents() -> "dict[str, _EventRecount]":
    return {}


@dataclass(slots=True)
class _EventRecount:
    """The tool counters of one session and the state of its current turn, while the events are read."""

    work: WorkCounts = field(default_factory=WorkCounts)
    binding: str = ""
    counts: dict[str, ToolCounts] = field(default_factory=dict[str, ToolCounts])
    backend: str = ""
    is_unanswered: bool = False
    is_limited: bool = False
    children: "dict[str, _EventRecount]" = field(default_factory=_no_subagents)

    def count_event(self, event: Fields) -> None:
        self.work.count_event(event, self.binding)
        match event:
            case {"type": "turn_started", "binding": str(binding)}:
                self.backend, self.is_limited, self.is_unanswered = _backend_name(binding), False, False
                self.binding = binding
            case {"type": "request_sent"}:
                self.is_unanswered, tools_off = True, bool(event.get("tools_off"))
                self.backend_counts.tool_loop_max_iterations += tools_off and not self.is_limited
                self.is_limited |= tools_off
            case {"type": "message", "message": {"calls": list()}}:
                self.is_unanswered = False
                self.backend_counts.count_calls(
                    Message("assistant", tuple(map(_read_call, event["message"]["calls"])))
                )
            case {"type": "tool_results", "results": list()}:
                refused = sum(each["outcome"] == "refused" for each in event["results"])
                self.backend_counts.tool_calls_invalid_args += refused
                self.backend_counts.tool_calls_repeated += event.get("repeated", 0)
            case {"type": "lane_rewritten", "reason": "refusal" | "thinking"}:
                self.count_refusal()
            case {"type": "call_repaired"}:
                self.backend_counts.tool_calls_repaired += 1
            case {"type": "turn_ended"}:
                self.backend_counts.answers_repaired += bool(event.get("repaired"))
                cause: Fields = event.get("cause") or {}
                if cause.get("kind") == OUR_BUG:
                    self.count_refusal()
            case {"type": "subagent", "session": str(name), "event": dict()}:
                child = self.children.setdefault(name, _EventRecount(self.work, counts=self.counts))
                child.count_event(event["event"])
            case _:
                pass

    @property
    def backend_counts(self) -> ToolCounts:
        return self.counts.setdefault(self.backend, ToolCounts())

    def count_refusal(self) -> None:
        """Count the last request as rejected for its structure, unless it was answered or is already counted.

        Call this when a rejection leads to a rewritten lane or ends the turn.
        """
        self.backend_counts.tool_api_400_total += self.is_unanswered
        self.is_unanswered = False


def recount_events(events: Iterable[Fields]) -> dict[str, ToolCounts]:
    """Count tool calls from events. Return the counters by backend. Unknown events are skipped.

    Raises:
        KeyError, TypeError: An item is not an event.
    """
    return recount_work(events)[0]


def recount_work(events: Iterable[Fields]) -> tuple[dict[str, ToolCounts], WorkCounts]:
    """Count tool calls, asks and requests from events. Return the tool counters by backend, and the totals.

    Raises:
        KeyError, TypeError: An item is not an event.
    """
    counting = _EventRecount()
    for event in events:
        counting.count_event(event)
    known = {name: counts for name, counts in counting.counts.items() if counts != ToolCounts()}
    return known, counting.work


def _backend_name(binding: str) -> str:
    """Return the name of the backend in a binding's string: `_backend_name("house:model") == "house"`."""
    return binding.partition(":")[0].partition(" via ")[0]


def _read_call(fields: Fields) -> ToolCall:
    return ToolCall(fields["id"], fields["name"], fields["arguments"], fields.get("raw"))
