"""Define a runtime's stats, and count tool calls again from a log.

There are two independent counts on purpose: `ToolCounts` is raised where a thing happens, and `recount` derives the
same numbers from the log. They must agree.
"""

from collections.abc import Iterable

from msgspec import Struct

from actors.core.log.call_events import Failed, Refused, Returned, Scheduled
from actors.core.log.events import EpochBegan, LogEvent, RequestSent, RoundEnded, TurnEnded, TurnStarted
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.packed import unpack
from actors.core.values.stream import Usage

OUR_BUG = "transcript"
"""The failure kind of a request that was refused for its transcript's structure."""


class ToolCounts(Struct):
    """Counters of one backend's tool calls.

    Args:
        tool_calls_total: Calls made by its models.
        tool_calls_invalid_args: Calls refused for their name or arguments.
        tool_calls_repaired: Calls with malformed arguments (not JSON, a string for a number) that had exactly one
            interpretation.
        tool_api_400_total: Requests refused for their structure.
        tool_loop_max_iterations: Turns that were ended by a request with tools off.
        tool_calls_repeated: Calls that repeated a call and its result so often in their turn that it was detected.
        answers_repaired: Malformed answers of `output=` that had exactly one interpretation.
    """

    tool_calls_total: int = 0
    tool_calls_invalid_args: int = 0
    tool_calls_repaired: int = 0
    tool_api_400_total: int = 0
    tool_loop_max_iterations: int = 0
    tool_calls_repeated: int = 0
    answers_repaired: int = 0

    def count_calls(self, message: Message) -> None:
        """Count the calls of an assistant message."""
        self.tool_calls_total += len(message.calls)

    def plus(self, other: "ToolCounts") -> "ToolCounts":
        """Return the sum of both."""
        return ToolCounts(*[getattr(self, name) + getattr(other, name) for name in COUNTERS])

    @property
    def invalid_rate(self) -> float:
        """Share of invalid calls; 0 if there were no calls."""
        return _rate(self.tool_calls_invalid_args, self.tool_calls_total)

    @property
    def repaired_rate(self) -> float:
        """Share of repaired calls; 0 if there were no calls."""
        return _rate(self.tool_calls_repaired, self.tool_calls_total)


COUNTERS = ToolCounts.__struct_fields__
"""The names of the counters."""


def _rate(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


class Durations(Struct, frozen=True):
    """A histogram of durations.

    Args:
        counts: Number of durations by upper bound in seconds; the last bound is `inf`.
        seconds: Sum of all durations.
        longest: The longest duration, in seconds.
    """

    counts: dict[float, int] = {}
    seconds: float = 0.0
    longest: float = 0.0

    @property
    def count(self) -> int:
        """Number of durations."""
        return sum(self.counts.values())

    def centile(self, percent: float) -> float:
        """Return the percentile in seconds, with the precision of the histogram's bounds."""
        left = self.count * percent / 100
        for seconds, count in self.counts.items():
            left -= count
            if left <= 0:
                return min(seconds, self.longest)
        return self.longest


class ModelStats(Struct, frozen=True):
    """One model of a backend, since the runtime was entered.

    Args:
        requests: Ended requests by HTTP status; `none` without a complete response, `cancelled` if stopped, `other` for
            an unknown status.
        usage: Tokens of its answers.
        cost: Cost of these tokens; None if a price is unknown.
        first_token: Time from a request to the first piece of its answer.
        answer: Time from a request to the end of its answer. Interrupted answers are not counted.
    """

    requests: dict[str, int]
    usage: Usage
    cost: float | None
    first_token: Durations
    answer: Durations

    @property
    def cache_share(self) -> float:
        """Share of input tokens read from the provider's cache; 0 if there were none."""
        return _rate(self.usage.cache_read_tokens, self.usage.input_tokens)


class ToolStats(Struct, frozen=True):
    """The completed calls of one tool, since the runtime was entered.

    Args:
        failures: Calls that raised or timed out.
        seconds: Durations of the calls.
    """

    failures: int
    seconds: Durations


class BackendStats(Struct, frozen=True):
    """One backend, since the runtime was entered.

    Args:
        tools: Counters of its tool calls.
        requests: Requests sent, retries included.
        retries: Second and later requests of a round.
        in_flight: Requests sent but not yet answered completely.
        waiting: Requests that wait for admission.
        is_open: True if its circuit breaker is open after repeated failures.
        refused_media: Requests that it refused for an attachment.
        refused_parameters: Requests that it refused for an optional parameter.
        models: Stats of each model; from the 65th model on as `other`.
    """

    tools: ToolCounts
    requests: int = 0
    retries: int = 0
    in_flight: int = 0
    waiting: int = 0
    is_open: bool = False
    refused_media: int = 0
    refused_parameters: int = 0
    models: dict[str, ModelStats] = {}


class LearnedFact(Struct, frozen=True):
    """Parameters that requests to a binding omit for the life of the runtime, because its provider refused them.

    Args:
        binding: The binding: its endpoint, account and model. The fact applies to no other binding.
        parameters: The provider's error message by name of the unsupported parameter.
        entry: The `[models]` table of `actors.toml` that would make the fact permanent.
    """

    binding: Binding
    parameters: dict[str, str]
    entry: str


class Stalls(Struct, frozen=True):
    """Detected stalls of the event loop by tools, with their total duration in seconds."""

    count: int = 0
    seconds: float = 0.0


LAG = 5.0
"""Write delay of the journal in seconds from which the runtime accepts no new work."""


class StorageSizes(Struct, frozen=True):
    """File sizes of a storage after its last transaction; None for a storage without files of its own.

    Args:
        file_bytes: The database file.
        log_bytes: Its write-ahead log.
        checkpoint_lag_bytes: Approximate part of the write-ahead log that is not in the file yet. It grows while a
            program reads the file.
    """

    file_bytes: int | None = None
    log_bytes: int | None = None
    checkpoint_lag_bytes: int | None = None


class JournalStats(Struct, frozen=True):
    """The journal.

    Args:
        durability: The failure that acknowledged events survive: `memory` (none), `process` or `power`.
        unavailable_since: Time when it became unavailable, as `time.time` returns it; None while it can write.
        why: The storage's error at that time, without any content.
        refused: Events that could not be written since the runtime was entered.
        waiting: Writes and reads in its queue.
        damage: The first damage found since the runtime was entered, without any content; empty if there is none.
        lag: Seconds that another event would wait.
        lease: Seconds without renewal after which other hosts may take over; None for a storage without leases.
        lease_age: Seconds since this host last renewed its lease.
        sizes: Sizes of the journal's files.
        commits: Durations of commits, in storages that may block.
    """

    durability: str = "memory"
    unavailable_since: float | None = None
    why: str = ""
    refused: int = 0
    waiting: int = 0
    damage: str = ""
    lag: float = 0.0
    lease: float | None = None
    lease_age: float = 0.0
    sizes: StorageSizes = StorageSizes()
    commits: Durations = Durations()

    @property
    def is_available(self) -> bool:
        """True if the last write succeeded."""
        return self.unavailable_since is None

    @property
    def is_ready(self) -> bool:
        """True if the journal accepts new work: it is available and undamaged, its delay is short and its lease is
        valid.
        """
        is_leased = self.lease is None or self.lease_age <= self.lease
        return self.is_available and not self.damage and self.lag <= LAG and is_leased


class ReuseStats(Struct, frozen=True):
    """Cache hits of session state kept in memory.

    Args:
        hits: Uses of a session with its state and lanes in memory.
        rebuilds: Uses that had to rebuild the state from the session's log.
        dropped: States dropped to free memory; see `limits.memory`.
    """

    hits: int = 0
    rebuilds: int = 0
    dropped: int = 0


class LoopLag(Durations, frozen=True):
    """Delays of the event loop while turns computed. Sockets and timers wait for as long."""


class BudgetStats(Struct, frozen=True):
    """A shared budget and its usage in the current period.

    Args:
        rounds, tokens, money: The limits; None for no limit.
        used_rounds, used_tokens, used_money: The usage. Money is counted only if it is limited, and None while a price
            is missing.
        reserved_tokens: Estimate for the requests in flight.
        in_flight: Requests in flight.
        refused: Asks and requests refused because the budget was exhausted, since the runtime was entered.
        left_seconds: Seconds until the next period; None if there is none.
    """

    rounds: int | None = None
    tokens: int | None = None
    money: float | None = None
    used_rounds: int = 0
    used_tokens: int = 0
    used_money: float | None = None
    reserved_tokens: int = 0
    in_flight: int = 0
    refused: int = 0
    left_seconds: float | None = None


class RuntimeStats(Struct, frozen=True):
    """A runtime at one moment.

    Args:
        backends: Stats of each backend, by name.
        sessions: Open sessions.
        active: Open sessions with running actors. The others are `hibernated`.
        memory: Bytes held by sessions: histories, lanes, and logs of a journal in memory.
        memory_limit: Maximum of these bytes (`limits.memory`, or a share of the machine's memory).
        reuse: Cache hits of session state.
        loop_lag: Delays of the runtime's event loop, whatever causes them.
        asks: Ended asks by outcome: `complete`, `cancelled`, `failed`, `interrupted`; `refused` if they were not
            accepted or waited too long behind a paused turn; `dropped` if their session ended.
        asks_waiting: Asks queued behind another ask of their session.
        asking: Sessions with an ask in flight.
        awaiting: Sessions whose turn waits for results or an approval from its caller. All others are `idle`.
        tools: Stats of each tool; from the 65th tool on as `other`.
        threads_waiting: Calls of blocking tools in this process that wait for a thread.
        refused: Transcripts refused for their structure, by a provider or by the judge.
        quarantined: Closed calls whose tools are still running: count by tool.
        slow_handlers: Number of slow actor handlers, which delay all other actors.
        stalls: Stalls of the event loop by async tools.
        journal: Stats of the journal.
        budgets: Budgets of tenants and pools, as `tenants.NAME` and `pools.NAME`.
        learned: Facts learned from refusals since the runtime was entered.
    """

    backends: dict[str, BackendStats]
    sessions: int
    active: int
    memory: int
    refused: int
    quarantined: dict[str, int]
    slow_handlers: int
    stalls: Stalls
    journal: JournalStats
    budgets: dict[str, BudgetStats] = {}
    learned: tuple[LearnedFact, ...] = ()
    memory_limit: int = 0
    reuse: ReuseStats = ReuseStats()
    loop_lag: LoopLag = LoopLag()
    asks: dict[str, int] = {}
    asks_waiting: int = 0
    asking: int = 0
    awaiting: int = 0
    tools: dict[str, ToolStats] = {}
    threads_waiting: int = 0

    @property
    def idle(self) -> int:
        """Open sessions without an ask in flight or a paused turn, active or hibernated."""
        return self.sessions - self.asking - self.awaiting

    @property
    def hibernated(self) -> int:
        """Open sessions without actors."""
        return self.sessions - self.active

    @property
    def is_ready(self) -> bool:
        """True if sessions can be used: the journal is available, undamaged and fast enough, and its lease is valid."""
        return self.journal.is_ready

    @property
    def total(self) -> ToolCounts:
        """The tool counters summed over all backends."""
        whole = ToolCounts()
        for backend in self.backends.values():
            whole = whole.plus(backend.tools)
        return whole


class _Recount(Struct):
    """The counters and the current position in one log."""

    counts: dict[str, ToolCounts] = {}
    backend: str = ""
    is_unanswered: bool = False
    is_limited: bool = False

    def take(self, event: LogEvent) -> None:
        match event:
            case TurnStarted(binding=binding):
                self.backend, self.is_limited, self.is_unanswered = binding.backend, False, False
            case RequestSent(tools_off=tools_off):
                self.is_unanswered = True
                self.own_counts.tool_loop_max_iterations += tools_off and not self.is_limited
                self.is_limited |= tools_off
            case RoundEnded(message=message):
                self.is_unanswered = False
                if message is not None:
                    self.own_counts.count_calls(unpack(message))
            case Scheduled(repaired=repaired):
                self.own_counts.tool_calls_repaired += bool(repaired)
            case Refused():
                self.own_counts.tool_calls_invalid_args += 1
            case Returned() | Failed():
                self.own_counts.tool_calls_repeated += event.repeated
            case EpochBegan(reason="refusal" | "thinking"):
                self.count_refusal()
            case TurnEnded(cause=cause, repaired=repaired):
                self.own_counts.answers_repaired += bool(repaired)
                if cause is not None and cause.kind == OUR_BUG:
                    self.count_refusal()
            case _:
                pass

    @property
    def own_counts(self) -> ToolCounts:
        return self.counts.setdefault(self.backend, ToolCounts())

    def count_refusal(self) -> None:
        """Count a request that the provider rejected for its structure.

        Its lane was rewritten, or its turn ended, before an answer arrived.
        """
        self.own_counts.tool_api_400_total += self.is_unanswered
        self.is_unanswered = False


def recount(log: Iterable[LogEvent]) -> dict[str, ToolCounts]:
    """Return the tool counters by backend, counted from a session's log."""
    counting = _Recount()
    for event in log:
        counting.take(event)
    return {name: counts for name, counts in counting.counts.items() if counts != ToolCounts()}
