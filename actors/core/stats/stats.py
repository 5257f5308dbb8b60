"""Define a runtime's stats, and count tool calls again from a log.

The runtime updates `ToolCounts` as things happen, and `recount` derives the same numbers from the log. The two are
independent, so that tests can check that they agree.
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
"""The failure kind of a request that was rejected for the structure of its transcript."""


class ToolCounts(Struct):
    """Counters of one backend's tool calls.

    Args:
        tool_calls_total: Calls made by the backend's models.
        tool_calls_invalid_args: Calls refused because of their tool name or arguments.
        tool_calls_repaired: Calls with malformed arguments (not JSON, or a string in place of a number) that had
            exactly one interpretation.
        tool_api_400_total: Requests rejected for their structure.
        tool_loop_max_iterations: Turns in which a limit forced a request that allows no tool calls.
        tool_calls_repeated: Calls detected as repeats of earlier calls with the same result in their turn.
        answers_repaired: Malformed answers of asks with `output=` that had exactly one interpretation.
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
        """Return the sum of both values, counter by counter."""
        return ToolCounts(*[getattr(self, name) + getattr(other, name) for name in COUNTERS])

    @property
    def invalid_rate(self) -> float:
        """Share of calls that were invalid; 0 if there were no calls."""
        return _rate(self.tool_calls_invalid_args, self.tool_calls_total)

    @property
    def repaired_rate(self) -> float:
        """Share of calls that were repaired; 0 if there were no calls."""
        return _rate(self.tool_calls_repaired, self.tool_calls_total)


COUNTERS = ToolCounts.__struct_fields__
"""The names of the counters in `ToolCounts`."""


def _rate(count: int, total: int) -> float:
    return count / total if total else 0.0


class Durations(Struct, frozen=True):
    """A histogram of durations.

    Args:
        counts: Number of durations in each bucket, by the bucket's upper bound in seconds; the last bound is `inf`.
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
        """Return the duration that `percent` % of all durations do not exceed, in seconds.

        The result is rounded up to a bound of the histogram, but it is never above the longest duration.
        """
        remaining = self.count * percent / 100
        for seconds, count in self.counts.items():
            remaining -= count
            if remaining <= 0:
                return min(seconds, self.longest)
        return self.longest


class ModelStats(Struct, frozen=True):
    """The requests to one model of a backend, since the runtime was entered.

    Args:
        requests: Number of ended requests by HTTP status. Requests without a complete response are counted as `none`,
            cancelled requests as `cancelled`, and unknown statuses as `other`.
        usage: Tokens of the requests and answers.
        cost: Cost of these tokens; None if a price is unknown.
        first_token: Time from a request to the first fragment of its answer.
        answer: Time from a request to the end of its answer. Interrupted answers are not counted.
    """

    requests: dict[str, int]
    usage: Usage
    cost: float | None
    first_token: Durations
    answer: Durations

    @property
    def cache_share(self) -> float:
        """Share of input tokens that were read from the provider's cache; 0 if there were no input tokens."""
        return _rate(self.usage.cache_read_tokens, self.usage.input_tokens)


class ToolStats(Struct, frozen=True):
    """The completed calls of one tool, since the runtime was entered.

    Args:
        failures: Calls that raised or timed out.
        durations: Durations of the calls.
    """

    failures: int
    durations: Durations


class BackendStats(Struct, frozen=True):
    """The requests and tool calls of one backend, since the runtime was entered.

    Args:
        tools: Counters of the tool calls.
        requests: Requests sent, including retries.
        retries: Second and later requests of a round.
        in_flight: Requests sent but not yet answered completely.
        waiting: Requests that wait for admission.
        is_open: True if the backend's circuit breaker is open after repeated failures.
        refused_media: Requests that the backend rejected because of an attachment.
        refused_parameters: Requests that the backend rejected because of an optional parameter.
        models: Stats of each model; all models after the 64th are counted as `other`.
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
    """Parameters that requests to a binding omit for the life of the runtime, because the provider rejected them.

    Args:
        binding: The endpoint, account and model. The fact applies to no other binding.
        parameters: The provider's error message, by the name of the unsupported parameter.
        entry: The `[models]` table of `actors.toml` that would make the fact permanent.
    """

    binding: Binding
    parameters: dict[str, str]
    entry: str


class Stalls(Struct, frozen=True):
    """The event-loop stalls that tools caused.

    Args:
        count: Number of the stalls.
        seconds: Total duration of the stalls.
    """

    count: int = 0
    seconds: float = 0.0


LAG = 5.0
"""Delay of the journal's writes, in seconds, above which the runtime accepts no new work."""


class StorageSizes(Struct, frozen=True):
    """File sizes of a storage after its last transaction; None if the storage has no files of its own.

    Args:
        file_bytes: Size of the database file.
        log_bytes: Size of the write-ahead log.
        checkpoint_lag_bytes: Approximate size of the part of the write-ahead log that is not in the database file yet.
            The size grows while a program reads the file.
    """

    file_bytes: int | None = None
    log_bytes: int | None = None
    checkpoint_lag_bytes: int | None = None


class JournalStats(Struct, frozen=True):
    """The state of the journal.

    Args:
        durability: The failure that acknowledged events survive: `memory` (none), `process` (a crash of the process) or
            `power` (a power failure).
        unavailable_since: Time when the journal became unavailable, as `time.time` returns it; None while the journal
            can write.
        reason: The storage's error at that time, without any session content.
        refused: Number of events that could not be written since the runtime was entered.
        waiting: Number of writes and reads in the journal's queue.
        damage: The first damage found since the runtime was entered, without any content; empty if there is none.
        lag: Estimated seconds that a new event would wait before it is written.
        lease: Seconds without renewal after which other hosts may take over; None for a storage without leases.
        lease_age: Seconds since this host last renewed its lease.
        sizes: Sizes of the journal's files.
        commits: Durations of commits, in storages that may block.
    """

    durability: str = "memory"
    unavailable_since: float | None = None
    reason: str = ""
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
        """True if the journal accepts new work.

        This requires that the journal is available and undamaged, that its delay is short, and that its lease is valid.
        """
        is_leased = self.lease is None or self.lease_age <= self.lease
        return self.is_available and not self.damage and self.lag <= LAG and is_leased


class ReuseStats(Struct, frozen=True):
    """Counters of session uses, with and without the session's state in memory.

    Args:
        hits: Uses that found the session's state and lanes in memory.
        rebuilds: Uses that had to rebuild the session's state from its log.
        dropped: States that were dropped to free memory; see `limits.memory`.
    """

    hits: int = 0
    rebuilds: int = 0
    dropped: int = 0


class LoopLag(Durations, frozen=True):
    """Durations of event-loop iterations in which session code ran. Sockets and timers wait during an iteration."""


class BudgetStats(Struct, frozen=True):
    """A shared budget and its usage in the current period.

    Args:
        rounds, tokens, money: The limits. `None` means no limit.
        used_rounds, used_tokens, used_money: The usage. Money is counted only if it is limited, and is None while a
            price is missing.
        reserved_tokens: Estimated tokens of the requests in flight.
        in_flight: Number of requests in flight.
        refused: Number of asks and requests rejected because the budget was used up, since the runtime was entered.
        left_seconds: Seconds until the next period; None if the budget has no period.
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
    """The state of a runtime at one moment.

    Args:
        backends: Stats of each backend, by name.
        sessions: Number of open sessions.
        active: Number of open sessions with running actors. The other sessions are `hibernated`.
        memory: Bytes used by sessions: histories, lanes, and logs of a journal in memory.
        memory_limit: Maximum of `memory` (`limits.memory`, or a share of the machine's memory).
        reuse: Counters of session uses, with and without the session's state in memory.
        loop_lag: Durations of event-loop iterations in which session code ran.
        asks: Number of ended asks by outcome: `complete`, `cancelled`, `failed` or `interrupted`. Asks that were not
            accepted, or waited too long for a paused turn, are counted as `refused`. Asks whose session ended first are
            counted as `dropped`.
        asks_waiting: Number of asks that wait for another ask of their session.
        asking: Number of sessions with an ask in flight.
        awaiting: Number of sessions whose turn waits for results or an approval from its caller. All other sessions are
            `idle`.
        tools: Stats of each tool; all tools after the 64th are counted as `other`.
        threads_waiting: Number of calls of blocking tools in this process that wait for a thread.
        refused: Number of transcripts rejected for their structure, by a provider or by the judge.
        quarantined: Number of closed calls whose tools are still running, by tool.
        slow_handlers: Number of times that an actor's handler was slow and delayed all other actors.
        stalls: Stalls of the event loop that async tools caused.
        journal: Stats of the journal.
        budgets: Budgets of tenants and pools, as `tenants.NAME` and `pools.NAME`.
        learned: Facts learned from rejected requests since the runtime was entered.
        is_draining: True if the runtime is moving its sessions to other hosts, or is being left. It opens no more
            sessions.
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
    is_draining: bool = False

    @property
    def idle(self) -> int:
        """Number of open sessions, active or hibernated, without an ask in flight or a paused turn."""
        return self.sessions - self.asking - self.awaiting

    @property
    def hibernated(self) -> int:
        """Number of open sessions without actors."""
        return self.sessions - self.active

    @property
    def is_ready(self) -> bool:
        """True if the runtime accepts sessions.

        This requires that the journal is available, undamaged and fast enough, that its lease is valid, and that the
        runtime is not draining.
        """
        return self.journal.is_ready and not self.is_draining

    @property
    def total(self) -> ToolCounts:
        """The tool counters summed over all backends."""
        total = ToolCounts()
        for backend in self.backends.values():
            total = total.plus(backend.tools)
        return total


class ToolRecount(Struct):
    """The tool counters of one session and the state of its current turn, while its events are read."""

    counts: dict[str, ToolCounts] = {}
    backend: str = ""
    is_unanswered: bool = False
    is_limited: bool = False

    def begin_turn(self, backend: str) -> None:
        """Begin a turn on this backend."""
        self.backend, self.is_limited, self.is_unanswered = backend, False, False

    def count_request(self, *, tools_off: bool) -> None:
        """Count a request. The first request of a turn with `tools_off` also counts as a reached limit of the turn."""
        self.is_unanswered = True
        self.backend_counts.tool_loop_max_iterations += tools_off and not self.is_limited
        self.is_limited |= tools_off

    @property
    def backend_counts(self) -> ToolCounts:
        """The counters of the turn's backend."""
        return self.counts.setdefault(self.backend, ToolCounts())

    def count_refusal(self) -> None:
        """Count the last request as rejected for its structure, unless it was answered or is already counted.

        Call this when a rejection leads to a rewritten lane or ends the turn.
        """
        self.backend_counts.tool_api_400_total += self.is_unanswered
        self.is_unanswered = False


class _LogRecount(ToolRecount):
    """The tool counters of one session, while its log is read."""

    def count_event(self, event: LogEvent) -> None:
        match event:
            case TurnStarted(binding=binding):
                self.begin_turn(binding.backend)
            case RequestSent(tools_off=tools_off):
                self.count_request(tools_off=tools_off)
            case RoundEnded(message=message):
                self.is_unanswered = False
                if message is not None:
                    self.backend_counts.count_calls(unpack(message))
            case Scheduled(repaired=repaired):
                self.backend_counts.tool_calls_repaired += bool(repaired)
            case Refused():
                self.backend_counts.tool_calls_invalid_args += 1
            case Returned() | Failed():
                self.backend_counts.tool_calls_repeated += event.repeated
            case EpochBegan(reason="refusal" | "thinking"):
                self.count_refusal()
            case TurnEnded(cause=cause, repaired=repaired):
                self.backend_counts.answers_repaired += bool(repaired)
                if cause is not None and cause.kind == OUR_BUG:
                    self.count_refusal()
            case _:
                pass


def recount(log: Iterable[LogEvent]) -> dict[str, ToolCounts]:
    """Count the tool calls in a session's log. Return the counters by backend; backends without counts are left out."""
    counting = _LogRecount()
    for event in log:
        counting.count_event(event)
    return {name: counts for name, counts in counting.counts.items() if counts != ToolCounts()}
