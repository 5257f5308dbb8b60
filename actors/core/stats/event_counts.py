"""Count the outcomes of tool calls, requests and asks from events in their JSON form.

In:  the output of `actors run --json`, or the events of one or more sessions, one after the other.
Out: the counters of each backend, as `actors.core.stats.stats.recount` derives them from the log, and totals of asks
     and requests.

Events show less than the log. A batch interrupted by the end of the process has no result events, so its invalid calls
are missing here. Subagents count as far as the parent's stream showed them.
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
        asks: Ended asks by status. An ask that awaits its caller has not ended.
        requests: Ended requests by binding and status.
        tokens: Tokens of the answers by binding.
        failures: Calls that raised or timed out.
    """

    asks: Counter[str] = field(default_factory=Counter[str])
    requests: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    tokens: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    failures: int = 0

    def take(self, event: Fields, binding: str) -> None:
        """Count an event of a turn on `binding`."""
        match event:
            case {
                "type": "complete" | "error",
                "result": {"status": "complete" | "cancelled" | "failed" | "interrupted" as status},
            }:
                self.asks[status] += 1
            case {"type": "request_failed"}:
                cause: Fields = event.get("cause") or {}
                self.answer(binding, cause.get("status"))
            case {"type": "message", "error": str(error)} if (
                error
            ):  # its request was already counted by `request_failed`
                self.use(binding, event.get("usage"))
            case {"type": "message", "message": {"calls": _}}:
                self.answer(binding, 200, event.get("usage"))
            case {"type": "tool_results", "results": list()}:
                self.failures += sum(each["outcome"] == "failed" for each in event["results"])
            case _:
                pass

    def answer(self, binding: str, status: int | None, usage: dict[str, int] | None = None) -> None:
        """Count an ended request and the tokens of its answer."""
        self.requests.setdefault(binding, Counter())[status_label(status)] += 1
        self.use(binding, usage)

    def use(self, binding: str, usage: dict[str, int] | None) -> None:
        """Add the tokens of an answer."""
        known = {name: count for name, count in (usage or {}).items() if name in NO_TOKENS}
        self.tokens.setdefault(binding, Counter(NO_TOKENS)).update(known)


def _none_below() -> "dict[str, _EventRecount]":
    return {}


@dataclass(slots=True)
class _EventRecount:
    """The counters and the current position in one session's events."""

    work: WorkCounts = field(default_factory=WorkCounts)
    binding: str = ""
    counts: dict[str, ToolCounts] = field(default_factory=dict[str, ToolCounts])
    backend: str = ""
    is_unanswered: bool = False
    is_limited: bool = False
    below: "dict[str, _EventRecount]" = field(default_factory=_none_below)

    def take(self, event: Fields) -> None:
        self.work.take(event, self.binding)
        match event:
            case {"type": "turn_started", "binding": str(binding)}:
                self.backend, self.is_limited, self.is_unanswered = _backend(binding), False, False
                self.binding = binding
            case {"type": "request_sent"}:
                self.is_unanswered, tools_off = True, bool(event.get("tools_off"))
                self.own_counts.tool_loop_max_iterations += tools_off and not self.is_limited
                self.is_limited |= tools_off
            case {"type": "message", "message": {"calls": list()}}:
                self.is_unanswered = False
                self.own_counts.count_calls(
                    Message("assistant", tuple(map(_call, event["message"]["calls"])))
                )
            case {"type": "tool_results", "results": list()}:
                refused = sum(each["outcome"] == "refused" for each in event["results"])
                self.own_counts.tool_calls_invalid_args += refused
                self.own_counts.tool_calls_repeated += event.get("repeated", 0)
            case {"type": "lane_rewritten", "reason": "refusal" | "thinking"}:
                self.count_refusal()
            case {"type": "call_repaired"}:
                self.own_counts.tool_calls_repaired += 1
            case {"type": "turn_ended"}:
                self.own_counts.answers_repaired += bool(event.get("repaired"))
                cause: Fields = event.get("cause") or {}
                if cause.get("kind") == OUR_BUG:
                    self.count_refusal()
            case {"type": "subagent", "session": str(name), "event": dict()}:
                below = self.below.setdefault(name, _EventRecount(self.work, counts=self.counts))
                below.take(event["event"])
            case _:
                pass

    @property
    def own_counts(self) -> ToolCounts:
        return self.counts.setdefault(self.backend, ToolCounts())

    def count_refusal(self) -> None:
        """Count a request refused for its structure: it led to a rewritten lane or the end, without an answer."""
        self.own_counts.tool_api_400_total += self.is_unanswered
        self.is_unanswered = False


def recount_events(events: Iterable[Fields]) -> dict[str, ToolCounts]:
    """Return the tool counters by backend, counted from events. Unknown events are skipped.

    Raises:
        KeyError, TypeError: An item is not an event.
    """
    return recount_work(events)[0]


def recount_work(events: Iterable[Fields]) -> tuple[dict[str, ToolCounts], WorkCounts]:
    """Return the tool counters by backend, and the totals of asks and requests.

    Raises:
        KeyError, TypeError: An item is not an event.
    """
    counting = _EventRecount()
    for event in events:
        counting.take(event)
    known = {name: counts for name, counts in counting.counts.items() if counts != ToolCounts()}
    return known, counting.work


def _backend(binding: str) -> str:
    """Return the backend's name from the display form of a binding."""
    return binding.partition(":")[0].partition(" via ")[0]


def _call(fields: Fields) -> ToolCall:
    return ToolCall(fields["id"], fields["name"], fields["arguments"], fields.get("raw"))
