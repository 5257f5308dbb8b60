"""Decide which sessions keep their actors in memory, and which keep only the state that their log folds to.

The most recently used sessions keep their actors (`HostLimits.active`); other idle sessions keep the folded state. When
all sessions hold more bytes than `HostLimits.memory`, folded states are evicted and then idle actors are ended, least
recently used first. Busy sessions are not affected. A runtime with the maximum number of sessions releases one without
a handle.
"""

from itertools import islice
from typing import Protocol

from msgspec import Struct, field

from actors.journal.holding import TotalMemory
from actors.runtime.collector import CROWD, TUNING
from actors.runtime.limits import HostLimits
from actors.runtime.reuse import Reuse
from actors.telemetry import logger

TRIES = 64
"""Most sessions that are tried when memory is needed, or a session must be released for a new one."""


class HostedSession(Protocol):
    """The part of a session that its host uses (`actors.runtime.lifecycle`)."""

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
        """End the actors if they have nothing to do. Return True if the session is without actors now."""
        ...

    def evict(self) -> None:
        """Drop the folded state."""

    def let_go(self) -> bool:
        """End the session here if it has no handle and is idle; its log stays open. Return True if it has ended."""
        ...

    async def interrupt_asks(self) -> None:
        """End the ask in flight, and drop the queued asks."""


class Residency(Struct):
    """The sessions of one host that are in memory, in three orders, each with the least recently used session first.

    Args:
        limits: The number of sessions that keep their actors, and the bytes that all sessions may hold.
        active: The sessions that have actors.
        folded: The sessions without actors whose folded state is in memory.
        unused: The sessions that had no handle when they were last given back.
        held: Counts the bytes that all sessions hold.
        reuse: Counts uses of sessions that were still in memory, and of others.
    """

    limits: HostLimits
    active: dict[str, HostedSession] = {}
    folded: dict[str, HostedSession] = {}
    unused: dict[str, HostedSession] = {}
    held: TotalMemory = field(default_factory=TotalMemory)
    reuse: Reuse = field(default_factory=lambda: Reuse(logger.memory_short))

    def add_folded(self, session: HostedSession) -> None:
        """Add a session that keeps only its folded state. If memory is short, evict others."""
        self.folded[session.name] = session
        self.evict_folds(self.limits.memory)

    def remove_folded(self, session: HostedSession) -> None:
        """Remove a session from those that keep only their folded state."""
        self.folded.pop(session.name, None)

    def add_active(self, session: HostedSession) -> None:
        """Mark a session with actors as used now. If too many sessions have actors, end those of idle sessions."""
        active = self.active
        active.pop(session.name, None)
        active[session.name] = session
        if len(active) == CROWD:
            TUNING.advise(CROWD)
        for _ in range(2):  # two for each one added, so that an excess shrinks
            oldest = next(iter(active.values()))
            if len(active) <= self.limits.active or oldest is session:
                return
            self._passivate(oldest)

    def remove_active(self, session: HostedSession) -> None:
        """Remove a session whose actors have ended."""
        self.active.pop(session.name, None)

    def add_unused(self, session: HostedSession) -> None:
        """Add a session that has no handle any more, and end its actors if they are idle."""
        if session.name in self.active:
            self._passivate(session)
        self.unused.pop(session.name, None)
        self.unused[session.name] = session

    def forget(self, session: HostedSession) -> None:
        """Forget a session that has ended."""
        for sessions in (self.active, self.folded, self.unused):
            sessions.pop(session.name, None)

    def trim(self) -> None:
        """End actors of idle sessions if too many have actors or memory is short. Called when an ask has ended."""
        for oldest in tuple(islice(self.active.values(), 2)):
            if len(self.active) > self.limits.active:
                self._passivate(oldest)
        self.has_room()

    def has_room(self) -> bool:
        """Free memory if it is short. Return False if busy sessions and logs in memory hold all of it."""
        return self.held.total < self.limits.memory or self._make_room()

    def evict_folds(self, most: int) -> None:
        """Evict folded states until all sessions together hold at most `most` bytes."""
        while self.held.total > most and self.folded:
            next(iter(self.folded.values())).evict()
            self.reuse.dropped += 1

    def let_one_go(self) -> bool:
        """Release the least recently used session without a handle. Return True if one was released.

        At most `TRIES` sessions are tried. A session that cannot be released now goes to the end of the order; one that
        has a handle again leaves it.
        """
        for candidate in tuple(islice(self.unused.values(), TRIES)):
            if candidate.let_go():
                return True
            del self.unused[candidate.name]
            if not candidate.handles:
                self.unused[candidate.name] = candidate
        return False

    def _make_room(self) -> bool:
        """Evict folded states and end idle actors, least recently used first. Return True if that freed enough."""
        most = self.limits.memory - 1
        self.evict_folds(most)
        for oldest in tuple(islice(self.active.values(), TRIES)):
            if self.held.total <= most:
                return True
            self._passivate(oldest)
            self.evict_folds(most)
        return self.held.total <= most

    def _passivate(self, session: HostedSession) -> None:
        """End the actors of a session if they have nothing to do; a busy session counts as used now."""
        del self.active[session.name]
        if not session.passivate():
            self.active[session.name] = session
