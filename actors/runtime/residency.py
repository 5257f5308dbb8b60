"""Decide which sessions keep their actors in memory, and which keep only the state that is rebuilt from their log.

The most recently used sessions keep their actors (`HostLimits.active`); other idle sessions keep the state, as a
replay. When all sessions together use more bytes than `HostLimits.memory`, replays are evicted first and then idle
actors are ended, least recently used first. Busy sessions are not affected. If the maximum number of sessions is open,
opening another session releases a session that no caller holds. By default, the limits depend on how much memory the
process may use.

A host thrashes if at least one use in five must rebuild a session from its log, because memory is too small for the
sessions that are in use. The threshold is not higher, because a caller often uses a session several times in a row, for
example to read its history after an ask, and only the first of these uses rebuilds the session.
"""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from actors.core.stats.stats import ReuseStats
from actors.core.turn.turn import Bounds
from actors.journal.log import TotalMemory
from actors.runtime.collector import MANY_SESSIONS, TUNING
from actors.telemetry import logger

if TYPE_CHECKING:
    from actors.config.settings import RuntimeLimits

MEMORY_SHARE = 2
"""By default, sessions may use 1/MEMORY_SHARE of the process's memory; connections, tools and Python need the rest."""
BYTES_PER_ACTIVE = 4 * 1024 * 1024
"""Bytes of the memory limit per idle session that keeps its actors, if `max_active_sessions` is not set."""
MIN_ACTIVE, MAX_ACTIVE = 64, 4096
"""Bounds of the derived number of sessions with actors.

Creating a session's actors takes a fifteenth of a turn's time, and a runtime must stop each actor when it exits.
"""
ASSUMED_MEMORY = 8 * 1024 * 1024 * 1024
"""Assumed memory of the process, in bytes, if the system does not report it."""
REBUILDS, HITS = 64, 4
"""After every `REBUILDS` rebuilds, the host counts as thrashing if there were fewer than `HITS` hits per rebuild."""
TRIES = 64
"""Maximum number of sessions to try when memory is needed, or when a session must be released for a new one."""


class HostLimits(Struct, frozen=True):
    """The limits of a host.

    Args:
        active: Maximum number of idle sessions that keep their actors.
        sessions: Maximum number of open sessions.
        memory: Maximum bytes of memory for all sessions together.
    """

    active: int
    sessions: int
    memory: int


def machine_limits(active: int | None, sessions: int, memory: int | None) -> HostLimits:
    """Return the limits of a host on this machine. A limit that is None gets a default; see `host_limits`."""
    from actors.runtime.machine import usable_memory  # imported late, so that `import actors` stays fast

    return host_limits(active, sessions, memory, usable_memory())


def host_limits(active: int | None, sessions: int, memory: int | None, usable: int | None) -> HostLimits:
    """Return the limits of a host, with defaults for limits that are None.

    Args:
        active: Maximum number of idle sessions that keep their actors; None to derive it from `memory`.
        sessions: Maximum number of open sessions.
        memory: Maximum bytes of memory for all sessions together; None for half of the usable memory.
        usable: Bytes of memory that the process may use; None if the system does not report it.
    """
    memory = (usable or ASSUMED_MEMORY) // MEMORY_SHARE if memory is None else memory
    if active is None:
        active = min(max(memory // BYTES_PER_ACTIVE, MIN_ACTIVE), MAX_ACTIVE)
    return HostLimits(active, sessions, memory)


def turn_bounds(limits: "RuntimeLimits") -> Bounds:
    """Return the default bounds of turns, which sessions and asks may override."""
    return Bounds(
        limits.max_rounds,
        limits.max_corrections,
        max_tool_corrections=limits.max_tool_corrections,
        on_repeat=limits.on_repeat,
        repair=limits.repair,
    )


class ReuseCounter(Struct):
    """Counts how often used sessions were in memory. The first use of each session does not count.

    Args:
        on_thrash: Called once, with the counts, when the host thrashes.
        hits: Number of uses for which the session was in memory.
        rebuilds: Number of uses for which the session was rebuilt from its log, because its state had been evicted.
        dropped: Number of evictions because memory was short.
    """

    on_thrash: Callable[[ReuseStats], object]
    hits: int = 0
    rebuilds: int = 0
    dropped: int = 0
    _hits_before: int = 0
    _is_thrash_reported: bool = False

    def count_rebuild(self) -> None:
        """Count a rebuild. After every `REBUILDS` rebuilds, check whether the host thrashes."""
        self.rebuilds += 1
        if self._is_thrash_reported or self.rebuilds % REBUILDS:
            return
        if self.hits - self._hits_before < HITS * REBUILDS:
            self._is_thrash_reported = True
            self.on_thrash(self.stats)
        self._hits_before = self.hits

    @property
    def stats(self) -> ReuseStats:
        """A copy of the counts, for `RuntimeStats`."""
        return ReuseStats(self.hits, self.rebuilds, self.dropped)


class HostedSession(Protocol):
    """The methods of a session that its host uses. `actors.runtime.lifecycle` implements them."""

    handles: int

    @property
    def name(self) -> str:
        """The session's id."""
        ...

    @property
    def fence(self) -> int:
        """The fencing number of the host's claim on the session."""
        ...

    def passivate(self) -> bool:
        """End the actors if they are idle, and keep their state. Return True if the session has no actors now."""
        ...

    def evict(self) -> None:
        """Remove the state that was rebuilt from the log (the replay) from memory."""

    def end_if_unused(self) -> bool:
        """If the session is idle and no caller holds it, end it on this host. Return True if it has ended."""
        ...

    async def interrupt_asks(self) -> None:
        """End the ask in flight, and drop the queued asks."""


class Residency(Struct):
    """The sessions of one host that are in memory.

    There are three groups of sessions, each ordered from least to most recently used.

    Args:
        limits: The number of sessions that keep their actors, and the bytes that all sessions may use.
        active: The sessions that have actors.
        folded: The sessions without actors whose state (replay) is in memory.
        unused: The sessions that every caller has released. A caller may have opened some of them again since.
        held: Counts the bytes that all sessions use.
        reuse: Counts how often a used session was in memory, and how often it was rebuilt from its log.
    """

    limits: HostLimits
    active: dict[str, HostedSession] = {}
    folded: dict[str, HostedSession] = {}
    unused: dict[str, HostedSession] = {}
    held: TotalMemory = field(default_factory=TotalMemory)
    reuse: ReuseCounter = field(default_factory=lambda: ReuseCounter(logger.memory_short))

    def add_folded(self, session: HostedSession) -> None:
        """Add a session that has no actors, but whose replay is in memory. If memory is short, evict replays."""
        self.folded[session.name] = session
        self.evict_replays(self.limits.memory)

    def remove_folded(self, session: HostedSession) -> None:
        """Remove a session from `folded`, because it gets actors or its replay was evicted."""
        self.folded.pop(session.name, None)

    def add_active(self, session: HostedSession) -> None:
        """Add a session that has actors. If it was already added, record that it was used again.

        If too many sessions have actors, end the actors of the least recently used sessions.
        """
        active = self.active
        active.pop(session.name, None)
        active[session.name] = session
        if len(active) == MANY_SESSIONS:
            TUNING.advise(MANY_SESSIONS)
        # For each added session, end the actors of up to two sessions, so that an excess shrinks.
        for _ in range(2):
            oldest = next(iter(active.values()))
            if len(active) <= self.limits.active or oldest is session:
                return
            self._passivate(oldest)

    def remove_active(self, session: HostedSession) -> None:
        """Remove a session from `active`, because its actors have ended."""
        self.active.pop(session.name, None)

    def add_unused(self, session: HostedSession) -> None:
        """Add a session that no caller holds any more, and end its actors if they are idle."""
        if session.name in self.active:
            self._passivate(session)
        self.unused.pop(session.name, None)
        self.unused[session.name] = session

    def forget(self, session: HostedSession) -> None:
        """Remove a session that has ended from all three groups."""
        for sessions in (self.active, self.folded, self.unused):
            sessions.pop(session.name, None)

    def trim(self) -> None:
        """End actors of idle sessions if too many sessions have actors or memory is short.

        The lifecycle of a session calls this method when an ask has ended.
        """
        for oldest in tuple(islice(self.active.values(), 2)):
            if len(self.active) > self.limits.active:
                self._passivate(oldest)
        self.free_memory()

    def free_memory(self) -> bool:
        """Free memory if it is short. Return False if busy sessions and logs in memory still use all of the memory."""
        return self.held.total < self.limits.memory or self._evict_and_passivate()

    def evict_replays(self, max_bytes: int) -> None:
        """Evict replays, least recently used first, until all sessions together use at most `max_bytes` bytes."""
        while self.held.total > max_bytes and self.folded:
            next(iter(self.folded.values())).evict()
            self.reuse.dropped += 1

    def release_one(self) -> bool:
        """Release the least recently used session that no caller holds. Return True if a session was released.

        At most `TRIES` sessions are tried. A session that cannot be released now is moved to the end of `unused`; a
        session that a caller holds again is removed from it.
        """
        for candidate in tuple(islice(self.unused.values(), TRIES)):
            if candidate.end_if_unused():
                return True
            del self.unused[candidate.name]
            if not candidate.handles:
                self.unused[candidate.name] = candidate
        return False

    def _evict_and_passivate(self) -> bool:
        """Evict replays and end idle actors, least recently used first. Return True if that freed enough memory."""
        most = self.limits.memory - 1
        self.evict_replays(most)
        for oldest in tuple(islice(self.active.values(), TRIES)):
            if self.held.total <= most:
                return True
            self._passivate(oldest)
            self.evict_replays(most)
        return self.held.total <= most

    def _passivate(self, session: HostedSession) -> None:
        """End the actors of a session if they are idle. If it is busy, move it to the end of `active`."""
        del self.active[session.name]
        if not session.passivate():
            self.active[session.name] = session
