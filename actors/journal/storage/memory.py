"""Store logs in memory, for tests and one-shot use. This storage is the simplest implementation of `Storage`.

Nothing survives the process. Logs of closed sessions remain until they are deleted. Events are stored as objects, so
the log shares messages with the histories, and results with the ledgers. All runtimes that share one storage object
count as one host.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from time import time

from msgspec.structs import replace

from actors.core.data.persistent import EMPTY, ChunkedVector, append, from_index, item_count
from actors.core.log.codec import encode_event
from actors.core.log.events import Closed, LogEvent
from actors.core.settings.labels import metadata_of
from actors.core.stats.stats import StorageSizes
from actors.errors import ConfigError
from actors.journal.storage import NOTHING, PAGE, Appended, Claim, Durability, Entry, LogPage
from actors.journal.storage.clock import ObservedClock, observe
from actors.journal.storage.directory import (
    EVERY,
    ClaimedSession,
    Host,
    HostStatus,
    Page,
    RemainingData,
    SessionFilter,
    StoredSession,
    Summary,
    no_host_error,
)


class MemoryStorage:
    """A storage that keeps its logs in memory.

    Args:
        clock: Returns the wall-clock time in seconds since 1970.
    """

    blocking = False
    durability: Durability = "memory"
    """Logs do not survive the end of the process."""
    lease: float | None = None
    """Always None, because no other host can use the storage."""

    def __init__(self, *, clock: Callable[[], float] = time) -> None:
        self._now = clock
        self._logs: dict[str, ChunkedVector[LogEvent]] = {}
        self._fences: dict[str, int] = {}
        self._removed_fence = 0
        self._claimed: set[str] = set()
        self._opened: dict[str, float] = {}
        self._used: dict[str, float] = {}
        self._clock: ObservedClock | None = None
        self._status = HostStatus()

    @property
    def host(self) -> str:
        """The name of the only host."""
        return "memory"

    @property
    def sizes(self) -> StorageSizes:
        """Always empty, because the storage has no files."""
        return StorageSizes()

    def open(self) -> None:
        """Do nothing, because memory needs no preparation."""

    def close(self) -> None:
        """Release every session. The logs remain."""
        self._release_all_claims()
        self._status = HostStatus()

    def _release_all_claims(self) -> None:
        for session in self._claimed - self._logs.keys():
            self._remove_fence(session)
        self._claimed.clear()

    def renew_lease(self, status: HostStatus | None = None) -> None:
        """Store the host's status. No lease is renewed, because no other host can take over a session."""
        self._status = status or self._status

    def hosts(self, *, count_sessions: bool = True) -> Sequence[Host]:
        """Return this storage, the only host, if it has sessions or an address."""
        if not (self._claimed or self._status.address):
            return []
        status, sessions = self._status, len(self._claimed) if count_sessions else 0
        return [Host(self.host, status.address, status.state, sessions, status.lag, None)]

    def owned_sessions(self, after: str = "", limit: int = 1000) -> Sequence[ClaimedSession]:
        """Return the claimed sessions that have a log."""
        names = sorted(name for name in self._claimed & self._logs.keys() if name > after)
        return [ClaimedSession(name, self._fences[name]) for name in names[:limit]]

    def assign(self, session: str, fence: int, host: str) -> None:
        """Raise an error, because there is no other host."""
        known = self._fences.get(session) if session in self._logs else None
        if known != fence:
            raise Entry(session, fence, ()).unassigned_error(known)
        raise no_host_error(session, host)

    def release_all(self) -> None:
        """Release every session, and mark this host as draining."""
        self._status = replace(self._status, state="draining")
        self._release_all_claims()

    def transaction(
        self, claims: Sequence[str] = (), existing: Sequence[str] = ()
    ) -> AbstractContextManager[object]:
        """Return a context manager that does nothing, because each method takes effect at once."""
        return nullcontext()

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer."""
        if existing and session not in self._logs:
            return NOTHING
        fence = self._fences[session] = self._fences.get(session, self._removed_fence) + 1
        self._claimed.add(session)
        return Claim(fence, item_count(self._logs.get(session, EMPTY)))

    def check_owner(self, session: str) -> None:
        """Do nothing, because there is no other host."""

    def release(self, session: str, fence: int) -> None:
        """Release the session, so that it can be claimed again."""
        if self._fences.get(session) == fence:
            self._claimed.discard(session)
            if session not in self._logs:
                self._remove_fence(session)

    def _remove_fence(self, session: str) -> None:
        self._removed_fence = max(self._removed_fence, self._fences.pop(session, 0))

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries that need not be rejected."""
        now = self._now()
        return [self._append_entry(entry, now) for entry in entries]

    def _append_entry(self, entry: Entry, now: float) -> Appended:
        session, log = entry.session, self._logs.get(entry.session)
        last = 0 if log is None else item_count(log)
        if (fence := self._fences.get(session)) is None:
            return entry.missing_error()
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
        """Return a session's events after number `after`. The list is empty for an unknown session."""
        return list(from_index(self._logs.get(session, EMPTY), after))

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        """Return at most `limit` events of a session after number `after`."""
        log = self._logs.get(session, EMPTY)
        return LogPage(after, list(islice(from_index(log, after), limit)), item_count(log))

    def delete(self, *sessions: str) -> None:
        """Delete the logs of sessions."""
        for session in sessions:
            self._delete_log(session)

    def _delete_log(self, session: str) -> None:
        self._logs.pop(session, None)
        self._remove_fence(session)
        self._claimed.discard(session)
        self._opened.pop(session, None)
        self._used.pop(session, None)

    def record_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the wall-clock time, and return the updated record of the clock."""
        self._clock = observe(self._clock, now, elapsed)
        return self._clock

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        """Do nothing, because there are no files."""
        return ()

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        """Raise an error, because there is no file to copy.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(
            "A journal in memory has no file to back up; export its sessions, or use a journal in a file"
        )

    def sessions(
        self, conditions: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first."""
        found = [self._stored_session(session) for session in self._logs]
        wanted = [each for each in found if conditions.matches(each) and (after is None or each.page > after)]
        return sorted(wanted, key=lambda each: each.page)[:limit]

    def find(self, session: str) -> StoredSession | None:
        """Return the data about one session, or None if the session has no log."""
        return self._stored_session(session) if session in self._logs else None

    def _stored_session(self, session: str) -> StoredSession:
        events, summary = self.read(session), Summary()
        summary.apply_events(events)
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
