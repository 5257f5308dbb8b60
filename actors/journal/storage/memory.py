"""Store logs in memory: for tests, for one-shot use, and as the simplest implementation of the interface.

Nothing survives the process. Within it, the logs of closed sessions stay until they are deleted. Events are stored as
objects, so messages are shared with histories, and results with ledgers. All users of the object are one host.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from time import time

from actors.core.data.chunked import EMPTY, ChunkedVector, append, from_index, item_count
from actors.core.log.codec import encode_event
from actors.core.log.events import Closed, LogEvent
from actors.core.settings.labels import metadata_of
from actors.core.stats.stats import StorageSizes
from actors.errors import ConfigError
from actors.journal.storage import NOTHING, PAGE, Appended, Claim, Durability, Entry, LogPage
from actors.journal.storage.clock import ObservedClock, observe
from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.directory import EVERY, Page, SessionFilter, StoredSession, Summary


class MemoryStorage:
    """Logs in a dict.

    Args:
        clock: The wall clock, in seconds since 1970.
    """

    blocking = False
    durability: Durability = "memory"
    lease: float | None = None

    def __init__(self, *, clock: Callable[[], float] = time) -> None:
        self._now = clock
        self._logs: dict[str, ChunkedVector[LogEvent]] = {}
        self._fences: dict[str, int] = {}
        self._removed_fence = 0
        self._claimed: set[str] = set()
        self._opened: dict[str, float] = {}
        self._used: dict[str, float] = {}
        self._clock: ObservedClock | None = None

    @property
    def sizes(self) -> StorageSizes:
        """Empty: the storage has no files of its own."""
        return StorageSizes()

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Release every session; the logs stay."""
        for session in self._claimed - self._logs.keys():
            self._forget(session)
        self._claimed.clear()

    def renew_lease(self) -> None:
        """Do nothing: no other host can take over."""

    def transaction(self, claims: Sequence[str] = ()) -> AbstractContextManager[object]:
        """Do nothing: there are no commits."""
        return nullcontext()

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer."""
        if existing and session not in self._logs:
            return NOTHING
        fence = self._fences[session] = self._fences.get(session, self._removed_fence) + 1
        self._claimed.add(session)
        return Claim(fence, item_count(self._logs.get(session, EMPTY)))

    def release(self, session: str, fence: int) -> None:
        """Release the session for other claims."""
        if self._fences.get(session) == fence:
            self._claimed.discard(session)
            if session not in self._logs:
                self._forget(session)

    def _forget(self, session: str) -> None:
        self._removed_fence = max(self._removed_fence, self._fences.pop(session, 0))

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries except fenced ones."""
        now = self._now()
        return [self._append(entry, now) for entry in entries]

    def _append(self, entry: Entry, now: float) -> Appended:
        session, log = entry.session, self._logs.get(entry.session)
        last = 0 if log is None else item_count(log)
        if (fence := self._fences.get(session)) is None:
            return entry.missing()
        if (refusal := entry.refusal(fence, last)) is not None:
            return refusal
        if log is None:
            self._opened[session] = now
        self._used[session] = now
        log = self._logs[session] = append(EMPTY if log is None else log, entry.events)
        if type(entry.events[-1]) is Closed:
            self._claimed.discard(session)
        return item_count(log)

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events after number `after`."""
        return list(from_index(self._logs.get(session, EMPTY), after))

    def page(self, session: str, after: int = 0, most: int = PAGE) -> LogPage:
        """Return the first events of a session after number `after`."""
        log = self._logs.get(session, EMPTY)
        return LogPage(after, list(islice(from_index(log, after), most)), item_count(log))

    def delete(self, *sessions: str) -> None:
        """Drop the logs of sessions."""
        for session in sessions:
            self._delete(session)

    def _delete(self, session: str) -> None:
        self._logs.pop(session, None)
        self._forget(session)
        self._claimed.discard(session)
        self._opened.pop(session, None)
        self._used.pop(session, None)

    def look_at_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the wall clock; return how far it is trusted."""
        self._clock = observe(self._clock, now, elapsed)
        return self._clock

    def vacuum(self, most: int | None = None) -> Sequence[RemainingData]:
        """Do nothing: there are no files."""
        return ()

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        """Raise an error: there is no file."""
        raise ConfigError("A journal in memory has no file to back up; export its sessions, or name a file")

    def sessions(
        self, which: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first."""
        found = [self._stored_session(session) for session in self._logs]
        wanted = [each for each in found if which.takes(each) and (after is None or each.page > after)]
        return sorted(wanted, key=lambda each: each.page)[:limit]

    def find(self, session: str) -> StoredSession | None:
        """Return the directory's entry of a session."""
        return self._stored_session(session) if session in self._logs else None

    def _stored_session(self, session: str) -> StoredSession:
        events, summary = self.read(session), Summary()
        summary.take(events)
        return StoredSession(
            session,
            summary.tenant,
            summary.target,
            len(events),
            sum(len(encode_event(event)) for event in events),
            self._opened[session],
            self._used[session],
            "memory" if session in self._claimed else None,
            summary.state,
            summary.title,
            metadata_of(summary.metadata),
        )
