"""Stats: how tool calls fare with each backend, counted as they happen, and counted again from a log.

Both counts are kept apart on purpose: `ToolCounts` is raised where a thing happens, `recount` knows only what the log
says of it. They must agree.
"""

from collections.abc import Iterable

from msgspec import Struct, field

from actors.core.log.events import (
    EpochBegan,
    Failed,
    LogEvent,
    Refused,
    RequestSent,
    Returned,
    RoundEnded,
    Scheduled,
    TurnEnded,
    TurnStarted,
)
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.packed import unpack
from actors.core.values.stream import Usage

OUR_BUG = "transcript"
"""The kind of a failure that refuses the structure of a transcript."""


class ToolCounts(Struct):
    """How tool calls fared with one backend.

    Args:
        tool_calls_total: Calls that its models made.
        tool_calls_invalid_args: Of these, those refused for their name or arguments.
        tool_calls_repaired: Of these, those whose arguments had a slip (no JSON, a text for a number), and could be
            read in exactly one way.
        tool_api_400_total: Requests that it refused for their structure.
        tool_loop_max_iterations: Turns that were brought to their end with tools off.
        tool_calls_repeated: Calls that came to the same as before so often in their turn that it was noticed.
        answers_repaired: Answers of `output=` that had a slip, and could be read in exactly one way.
    """

    tool_calls_total: int = 0
    tool_calls_invalid_args: int = 0
    tool_calls_repaired: int = 0
    tool_api_400_total: int = 0
    tool_loop_max_iterations: int = 0
    tool_calls_repeated: int = 0
    answers_repaired: int = 0

    def said(self, message: Message) -> None:
        """Count the calls of a model's message."""
        self.tool_calls_total += len(message.calls)

    def plus(self, other: "ToolCounts") -> "ToolCounts":
        """Return the sum of both."""
        return ToolCounts(*[getattr(self, name) + getattr(other, name) for name in COUNTERS])

    @property
    def invalid_rate(self) -> float:
        """Invalid calls of all calls; 0 where there were none."""
        return _rate(self.tool_calls_invalid_args, self.tool_calls_total)

    @property
    def repaired_rate(self) -> float:
        """Repaired calls of all calls; 0 where there were none."""
        return _rate(self.tool_calls_repaired, self.tool_calls_total)


COUNTERS = ToolCounts.__struct_fields__
"""Their names."""


def _rate(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


class Durations(Struct, frozen=True):
    """How long something took, each time.

    Args:
        counts: How often, by the seconds that it took at most; `inf` is the last.
        seconds: All of it.
        longest: The longest, in seconds.
    """

    counts: dict[float, int] = field(default_factory=dict)
    seconds: float = 0.0
    longest: float = 0.0

    @property
    def count(self) -> int:
        """How often."""
        return sum(self.counts.values())

    def centile(self, percent: float) -> float:
        """Return the seconds within which so many percent of the times were over, as far as `counts` tells."""
        left = self.count * percent / 100
        for seconds, count in self.counts.items():
            left -= count
            if left <= 0:
                return min(seconds, self.longest)
        return self.longest


class ModelStats(Struct, frozen=True):
    """One model of a backend, since the runtime was entered.

    Args:
        requests: Requests that have ended, by the status of HTTP; `none` where no response came, or it broke off,
            `cancelled` where they were stopped, `other` for a status that no standard knows.
        usage: The tokens of its answers.
        cost: What those cost; None where a price is not known.
        first_token: How long it took from a request to the first piece of its answer.
        answer: How long it took from a request to the end of its answer. Answers that broke off are not counted.
    """

    requests: dict[str, int]
    usage: Usage
    cost: float | None
    first_token: Durations
    answer: Durations

    @property
    def cache_share(self) -> float:
        """The part of the input tokens that was read from the provider's cache; 0 where there were none."""
        return _rate(self.usage.cache_read_tokens, self.usage.input_tokens)


class ToolStats(Struct, frozen=True):
    """One tool, since the runtime was entered: calls that have ended.

    Args:
        failures: Of these, those that raised, or took too long.
        seconds: How long they took.
    """

    failures: int
    seconds: Durations


class BackendStats(Struct, frozen=True):
    """One backend, since the runtime was entered.

    Args:
        tools: How tool calls fared.
        requests: Tries that were sent.
        retries: Of these, the second and later ones of their round.
        in_flight: Requests that are being answered now.
        waiting: Requests that wait for a place.
        is_open: Whether its breaker is open: it failed too often and is left alone.
        refused_media: Tries that it refused for an attachment.
        refused_parameters: Tries that it refused for an optional parameter.
        models: How requests to each of its models fare; from the 65th model on as `other`.
    """

    tools: ToolCounts
    requests: int = 0
    retries: int = 0
    in_flight: int = 0
    waiting: int = 0
    is_open: bool = False
    refused_media: int = 0
    refused_parameters: int = 0
    models: dict[str, ModelStats] = field(default_factory=dict)


class LearnedFact(Struct, frozen=True):
    """What refusals have taught of one binding: parameters that requests to it leave out for the life of the runtime.

    Args:
        binding: The binding: its endpoint, account and model. No other has learned from it.
        parameters: Names of the parameters that the provider does not support, each with the provider's words.
        entry: The `[models]` table of `actors.toml` that would make the facts permanent.
    """

    binding: Binding
    parameters: dict[str, str]
    entry: str


class Stalls(Struct, frozen=True):
    """How often a tool held up the event loop, and for how many seconds in all, as far as it was seen."""

    count: int = 0
    seconds: float = 0.0


LAG = 5.0
"""Seconds that an event would wait to be written from which on nothing new is taken in."""


class StorageSizes(Struct, frozen=True):
    """Sizes of the files of a storage, as its last transaction left them; None where it has none, or a server has them.

    Args:
        file_bytes: The file.
        log_bytes: Its write-ahead log.
        checkpoint_lag_bytes: About how much of the log is not in the file yet. It grows while a program reads the file.
    """

    file_bytes: int | None = None
    log_bytes: int | None = None
    checkpoint_lag_bytes: int | None = None


class JournalStats(Struct, frozen=True):
    """The journal.

    Args:
        level: What a log outlives.
        unavailable_since: When it became unavailable, as `time.time` says it; None while it can write.
        why: What its storage said then, without any content.
        refused: Events that could not be written since the runtime was entered.
        waiting: What waits to be written or read.
        damage: The first damage that was found since the runtime was entered, without any content; empty if none was.
        lag: Seconds that one more event would wait.
        lease: Seconds after which others may take over from a host that is not heard of; None where nobody could.
        lease_age: Seconds since this host was heard of.
        sizes: Of the journal's files.
        commits: How long commits of events took, in storages that may block.
    """

    level: str = "memory"
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
        """Whether the journal could write what it was last given."""
        return self.unavailable_since is None

    @property
    def is_ready(self) -> bool:
        """Whether it takes in what is new, is whole as far as is known, and nobody else may take over."""
        is_leased = self.lease is None or self.lease_age <= self.lease
        return self.is_available and not self.damage and self.lag <= LAG and is_leased


class ReuseStats(Struct, frozen=True):
    """How often a session that was used again was still in memory.

    Args:
        hits: Uses that found its state and its lanes in memory.
        rebuilds: Uses that made them of its log again, since they had been dropped to make room.
        dropped: How often they were. `limits.memory` says when.
    """

    hits: int = 0
    rebuilds: int = 0
    dropped: int = 0


class LoopLag(Durations, frozen=True):
    """How long the event loop took to come round each time that turns computed. Sockets and timers wait for that."""


class BudgetStats(Struct, frozen=True):
    """A budget that sessions share, and their usage in this period.

    Args:
        rounds, tokens, money: The limits; None is no limit.
        used_rounds, used_tokens, used_money: The usage. Money is counted if it is limited, and None while a price is
            missing.
        reserved_tokens: Estimate for the requests in flight.
        in_flight: Requests in flight.
        refused: Asks and requests refused because the budget was used up, since the runtime was entered.
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
        backends: By name.
        sessions: Those that are open.
        active: Of these, those that have actors now. The others are `hibernated`.
        memory: Bytes that they hold: their conversations, rendered too, and logs that are kept in memory.
        memory_limit: Bytes that they may hold (`limits.memory`, or what fits the machine).
        reuse: How often a session that was used again was still in memory.
        loop_lag: How long the runtime's event loop takes to come round, whatever else runs there.
        asks: Asks that have ended, by how: `complete`, `cancelled`, `failed`, `interrupted`; `refused` if they were not
            accepted, or waited too long behind a turn that waits for its caller; `dropped` if their session ended.
        asks_waiting: Asks that wait for the one before them in their session.
        asking: Sessions with an ask in flight.
        awaiting: Sessions whose turn waits for its caller: for results, or an approval. All others are `idle`.
        tools: How calls of each tool fare; from the 65th tool on as `other`.
        threads_waiting: Calls in this process that wait for a thread.
        refused: Transcripts that were refused for their structure, by a provider or by the judge.
        quarantined: Calls that are closed and still run, because their tools did not end: how many, by tool.
        slow_handlers: How often an actor held up all others.
        stalls: How often, and for how long, an async tool did.
        journal: Whether it can write.
        budgets: Of tenants and pools, by `tenants.NAME` and `pools.NAME`.
        learned: What refusals have taught of bindings, since the runtime was entered.
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
    budgets: dict[str, BudgetStats] = field(default_factory=dict)
    learned: tuple[LearnedFact, ...] = ()
    memory_limit: int = 0
    reuse: ReuseStats = ReuseStats()
    loop_lag: LoopLag = LoopLag()
    asks: dict[str, int] = field(default_factory=dict)
    asks_waiting: int = 0
    asking: int = 0
    awaiting: int = 0
    tools: dict[str, ToolStats] = field(default_factory=dict)
    threads_waiting: int = 0

    @property
    def idle(self) -> int:
        """Open sessions with no ask in flight and none that waits, with actors or without."""
        return self.sessions - self.asking - self.awaiting

    @property
    def hibernated(self) -> int:
        """Open sessions that have no actors."""
        return self.sessions - self.active

    @property
    def is_ready(self) -> bool:
        """Whether sessions can be used: the journal can write, soon enough, is undamaged, and the lease lasts."""
        return self.journal.is_ready

    @property
    def total(self) -> ToolCounts:
        """How tool calls fared, over all backends."""
        whole = ToolCounts()
        for backend in self.backends.values():
            whole = whole.plus(backend.tools)
        return whole


class _Recount(Struct):
    """The recount of one log."""

    counts: dict[str, ToolCounts] = field(default_factory=dict)
    backend: str = ""
    is_unanswered: bool = False
    is_limited: bool = False

    def take(self, event: LogEvent) -> None:
        match event:
            case TurnStarted(binding=binding):
                self.backend, self.is_limited, self.is_unanswered = binding.backend, False, False
            case RequestSent(tools_off=tools_off):
                self.is_unanswered = True
                self.mine.tool_loop_max_iterations += tools_off and not self.is_limited
                self.is_limited |= tools_off
            case RoundEnded(message=message):
                self.is_unanswered = False
                if message is not None:
                    self.mine.said(unpack(message))
            case Scheduled(repaired=repaired):
                self.mine.tool_calls_repaired += bool(repaired)
            case Refused():
                self.mine.tool_calls_invalid_args += 1
            case Returned() | Failed():
                self.mine.tool_calls_repeated += event.repeated
            case EpochBegan(reason="refusal" | "thinking"):
                self.refused()
            case TurnEnded(cause=cause, repaired=repaired):
                self.mine.answers_repaired += bool(repaired)
                if cause is not None and cause.kind == OUR_BUG:
                    self.refused()
            case _:
                pass

    @property
    def mine(self) -> ToolCounts:
        return self.counts.setdefault(self.backend, ToolCounts())

    def refused(self) -> None:
        """Count a request that brought no answer but a rewrite, or the end: it was refused for its structure."""
        self.mine.tool_api_400_total += self.is_unanswered
        self.is_unanswered = False


def recount(log: Iterable[LogEvent]) -> dict[str, ToolCounts]:
    """Return what a session's log says of how tool calls fared, by backend."""
    counting = _Recount()
    for event in log:
        counting.take(event)
    return {name: counts for name, counts in counting.counts.items() if counts != ToolCounts()}
