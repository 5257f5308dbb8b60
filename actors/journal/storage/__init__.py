"""Define `Storage`, the interface that journal backends implement, and the types of its arguments and results.

A log is a sequence of a session's events, numbered from 1 without gaps. A durable storage keeps each event as a record,
a byte string. Records may contain any byte, so a file format must store their lengths. The journal actor is the only
writer of a storage object; any process may read.

**Fencing.** A session has at most one live writer. `claim` makes its caller that writer and returns a fencing number.
The number is greater than all earlier numbers of the session, even after `delete`. Each `Entry` contains the number of
its writer. An entry with an outdated number is rejected as `Fenced`; the other entries of the append are still written.

A session that is deleted, or released without a log, leaves no data. Instead the storage keeps a floor: the highest
fencing number of all sessions that were removed in this way. An unknown session gets a number above the floor.

**Losses.** A storage may lose acknowledged events: a database fails over to a replica that lagged, or a backup is
restored. So an entry may contain the number of the last event that its writer knows. If the storage lacks that event,
the entry is rejected as `JournalBehind`. If the storage has later events, another writer wrote them, and the entry is
rejected as `Fenced`.

**Hosts.** A host is the storage object that claimed a session. The session belongs to this host until `release` or
`close` releases it, its log ends with `Closed`, or the host is gone. A host counts as gone if it does not renew its
lease in time (`renew_lease`). Other hosts may then take over its sessions. If the host was only late, it may still
write the sessions that were not taken over.

**Movement.** A host may hand a session over to another host (`assign`). In one step, the other host becomes the owner
and the fencing number is raised. So later entries of the first host are rejected, and no third host can claim the
session in between. `hosts` returns the live hosts, each with its address and its state. No session can be assigned to a
`draining` host.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import LogEvent
from actors.core.stats.stats import StorageSizes
from actors.errors import Fenced, JournalBehind, JournalError
from actors.journal.storage.clock import ObservedClock
from actors.journal.storage.directory import (
    EVERY,
    ClaimedSession,
    Host,
    HostStatus,
    Page,
    RemainingData,
    SessionFilter,
    StoredSession,
)

if TYPE_CHECKING:
    from pathlib import Path

Durability: TypeAlias = Literal["memory", "process", "power"]
"""The worst kind of failure that acknowledged events survive. `memory`: none. `process`: the process is killed (`kill
-9`). `power`: a power failure.
"""

Appended: TypeAlias = int | Fenced | JournalBehind
"""The outcome of appending an entry: the number of its last event, or the error if the entry was not written."""


class Entry(Struct, frozen=True):
    """Events to append to the log of one session.

    Args:
        session: The session's id.
        fence: The fencing number of the writer's claim.
        events: The events, in log order.
        after: The number of the last event in the log, as far as the writer knows; None if unknown.
    """

    session: str
    fence: int
    events: tuple[LogEvent, ...]
    after: int | None = None

    @property
    def writer(self) -> tuple[str, int]:
        """The session's id and the fencing number, which together identify the writer."""
        return self.session, self.fence

    @property
    def records(self) -> tuple[bytes, ...]:
        """The encoded events. Each access encodes them again, so read the property once."""
        return tuple(map(encode_event, self.events))

    def refusal(self, fence: int, last: int) -> Fenced | JournalBehind | None:
        """Return the error if the entry must be rejected; None if it can be written.

        Args:
            fence: The session's current fencing number.
            last: The number of the last event in the session's log.
        """
        if fence != self.fence:
            return self.fenced_error(fence)
        if self.after is None or last == self.after:
            return None
        return self.behind_error(last, self.after) if last < self.after else self._overtaken_error(last)

    def fenced_error(self, fence: int) -> Fenced:
        """Return the error for an entry with the wrong fencing number. `fence` is the session's current number."""
        if fence < self.fence:
            return self.unclaimed_error()
        return Fenced(
            f"Session {self.session!r} now has another writer, with fencing number {fence} instead of {self.fence}; "
            "the events were not written. Continue the session in the process that has it open"
        )

    def unassigned_error(self, fence: int | None) -> Fenced:
        """Return the error for a handover with a wrong fencing number.

        `fence` is the session's current fencing number, or None if the session has no log.
        """
        return self.missing_error() if fence is None else self.fenced_error(fence)

    def unclaimed_error(self) -> Fenced:
        """Return the error for an entry whose claim is missing from the storage."""
        return Fenced(
            f"After a failover or a restored backup, the journal lacks the event that opened session "
            f"{self.session!r} on this host; its later events are lost, and the new events were not written. "
            "Open the session again"
        )

    def missing_error(self) -> Fenced:
        """Return the error for an entry whose session does not exist in the storage."""
        return Fenced(
            f"Session {self.session!r} is not in the journal: it was deleted, or lost by a failover or a restored "
            "backup. The events were not written; open the session again"
        )

    def behind_error(self, last: int, known: int) -> JournalBehind:
        """Return the error for a log that lacks acknowledged events.

        Args:
            last: The number of the last event in the log.
            known: The number of the last acknowledged event.
        """
        return JournalBehind(
            f"The journal has lost acknowledged events {last + 1} to {known} of session {self.session!r}; its log now "
            f"ends at event {last}. The new events were not written; repeat the ask",
            session=self.session,
            first=last + 1,
            last=known,
        )

    def _overtaken_error(self, last: int) -> Fenced:
        """Return the error for a log to which another writer has appended events, up to event `last`."""
        return Fenced(
            f"Session {self.session!r} now has another writer: its log ends at event {last} instead of {self.after}; "
            "the events were not written. Continue the session in the process that has it open"
        )


class Claim(Struct, frozen=True):
    """The claim of a session by a host.

    Args:
        fence: The fencing number for the host's entries.
        last: The number of the last event in the log; 0 without a log.
        taken_from: The previous host, if the session was taken over after its lease had expired; otherwise empty.
    """

    fence: int
    last: int
    taken_from: str = ""


NOTHING = Claim(0, 0)
"""The result of `claim(existing=True)` for a session without a log."""


PAGE = 128
"""Maximum number of events in a page."""
PAGE_BYTES = 256 * 1024
"""Maximum size of a page's records in bytes. A page with a single record may be larger."""


class LogPage(Struct, frozen=True):
    """Consecutive events of a log, read in one operation.

    Args:
        after: The number of the event before the page.
        events: The events; empty only if the log has no event after `after`.
        last: The number of the log's last event at the time of reading.
    """

    after: int
    events: Sequence[LogEvent]
    last: int

    @property
    def end(self) -> int:
        """The number of the last event of the page."""
        return self.after + len(self.events)

    def up_to(self, last: int) -> "LogPage":
        """Return this page without the events after number `last`, as if `last` were the log's last event."""
        if last >= self.last:
            return self
        return LogPage(self.after, self.events[: max(0, last - self.after)], last)


NO_PAGE = LogPage(0, (), 0)
"""The page of a session without a log."""


def decode_records(session: str, records: Iterable[bytes], after: int = 0) -> list[LogEvent]:
    """Decode the records of a session. The first record has the number `after + 1`.

    Raises:
        JournalError: A record does not contain a valid event; the error gives its number.
    """
    return [_decode(session, number, record) for number, record in enumerate(records, after + 1)]


def decode_page(session: str, records: Iterable[bytes], after: int, last: int) -> LogPage:
    """Decode as many records as fit into `PAGE_BYTES`, and return them as a page of a log.

    Args:
        session: The session's id.
        records: The records from number `after + 1` on.
        after: The number of the event before the page.
        last: The number of the last event in the log.

    Raises:
        JournalError: A record does not contain a valid event; the error gives its number.
    """
    events, size = list[LogEvent](), 0
    for number, record in enumerate(records, after + 1):
        events.append(_decode(session, number, record))
        size += len(record)
        if size >= PAGE_BYTES:
            break
    return LogPage(after, events, last)


def _decode(session: str, number: int, record: bytes) -> LogEvent:
    try:
        return decode_event(record)
    except JournalError as error:
        raise JournalError(f"Record {number} of session {session!r} cannot be read: {error}") from error


class Storage(Protocol):
    """A journal backend.

    The journal actor runs at most one writing method and one reading method at the same time. Every method raises
    `JournalUnavailable` if a disk, a lock or a connection prevented the operation. A later attempt may succeed without
    a restart.
    """

    blocking: bool
    """True if the storage's methods may block and must run in a thread."""
    durability: Durability
    """The worst kind of failure that acknowledged events survive."""
    lease: float | None
    """Seconds after which a host that does not renew its lease counts as gone; None if there is only one host."""

    @property
    def host(self) -> str:
        """The name under which this storage owns sessions. Any thread may read it."""
        ...

    @property
    def sizes(self) -> StorageSizes:
        """The sizes of the storage's files after the last transaction. Any thread may read them; reading does not
        block.
        """
        ...

    def open(self) -> None:
        """Prepare the storage for use. Repeated calls have no effect.

        Raises:
            JournalError: The file or database is not a journal, or a newer version wrote it.
        """

    def close(self) -> None:
        """Release every session of this host, and close files and connections. The storage may be opened again."""

    def renew_lease(self, status: HostStatus | None = None) -> None:
        """Renew this host's lease. The runtime calls this method three times per lease period.

        Args:
            status: The host's address, state and lag, which `hosts` returns; None to keep the previous status. A
                storage whose status has an address becomes a host even without a claim. An earlier host with the same
                address then counts as gone, so its sessions can be claimed at once.
        """

    def hosts(self, *, count_sessions: bool = True) -> Sequence[Host]:
        """Return the live hosts of the journal, ordered by name, including this storage if it is a host.

        Like `page`, this method may run concurrently with a writing method.

        Args:
            count_sessions: Count the sessions of each host. Otherwise, `Host.sessions` is 0.
        """
        ...

    def owned_sessions(self, after: str = "", limit: int = 1000) -> Sequence[ClaimedSession]:
        """Return the sessions that belong to this host and have a log, ordered by id.

        Like `page`, this method may run concurrently with a writing method.

        Args:
            after: Return only sessions whose ids follow this id.
            limit: Maximum number of sessions to return.
        """
        ...

    def assign(self, session: str, fence: int, host: str) -> None:
        """Make another live host the owner of a session, and raise the session's fencing number, in one step.

        Args:
            session: The session's id.
            fence: The fencing number of the caller's claim.
            host: The name of the other host.

        Raises:
            Fenced: `fence` is outdated because the session was claimed again, or the session has no log.
            HostUnavailable: The other host is gone or draining.
        """

    def release_all(self) -> None:
        """Release every session of this host so that other hosts can claim it, and mark this host as draining.

        Later entries of this host are accepted until another host claims their sessions.
        """

    def transaction(
        self, claims: Sequence[str] = (), existing: Sequence[str] = ()
    ) -> AbstractContextManager[object]:
        """Return a context manager within which claims and an append are combined into few commits.

        The caller reports results only after the context manager has exited. A rejected claim does not affect the other
        claims.

        Args:
            claims: Ids of the sessions that will be claimed even if they have no log. A storage may claim them in
                advance.
            existing: Ids of the sessions that will be claimed only if they have a log. A storage may claim them in
                advance.
        """
        ...

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer.

        An earlier writer is replaced if it belongs to this host or to a host that is gone.

        Args:
            session: The session's id.
            existing: Claim the session only if it has a log. Without a log, nothing changes, and the claim's `last` is
                0.

        Raises:
            SessionLeased: The session belongs to another live host.
        """
        ...

    def check_owner(self, session: str) -> None:
        """Check that the session does not belong to another live host. An unknown session belongs to no host.

        Like `page`, this method may run concurrently with a writing method.

        Raises:
            SessionLeased: The session belongs to another live host.
        """

    def release(self, session: str, fence: int) -> None:
        """Release the session so that other hosts can claim it. If the session has no log, remove it.

        Nothing changes if `fence` is outdated because the session was claimed again.
        """

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append the entries durably and return one outcome per entry. Entries of one session keep their order.

        After a rejected entry, later entries of the same writer are rejected too.

        Raises:
            JournalError: Nothing was appended.
        """
        ...

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events after number `after`, oldest first. The list is empty for an unknown session.

        Raises:
            JournalDamaged: A record is missing or corrupt.
            JournalError: A record does not contain a valid event.
        """
        ...

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        """Return the first events after number `after`: at most `limit` events, and as many as fit into `PAGE_BYTES`.

        The cost does not depend on the position in the log. This method may run in another thread, concurrently with a
        writing method.

        Raises:
            JournalDamaged: A record is missing or corrupt.
            JournalError: A record does not contain a valid event.
        """
        ...

    def delete(self, *sessions: str) -> None:
        """Delete the logs and the ids of sessions durably, either all or none.

        Later entries of the sessions' writers are rejected as `Fenced`.

        Raises:
            SessionLeased: A session belongs to another live host. Nothing was deleted.
            JournalError: Nothing was deleted.
        """

    def record_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the wall-clock time durably, and return the updated record of the clock, which contains the trusted
        time.

        Args:
            now: The wall clock, in seconds since 1970. A storage on a server uses the time of the server's clock if it
                is earlier.
            elapsed: Seconds since this process last called the method, by a monotonic clock; 0 in its first call.
        """
        ...

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        """Remove every byte of deleted logs from this storage's files, and return data that could not be removed.

        Writers must be stopped. The operation may take as long as copying all files. It ends with a search for
        remaining data, so an empty result means that the data is gone. Files of other programs are searched, but not
        changed.

        Args:
            max_bytes: The size in bytes of the largest file to rewrite. None means no limit.

        Raises:
            JournalUnavailable: The operation failed.
        """
        ...

    def backup(self, path: "Path", check: Callable[[], object]) -> None:
        """Copy everything written so far to a new file. This storage and others may write in the meantime.

        The method is called in a separate thread.

        Args:
            path: Path of the copy. The file must not exist.
            check: Called repeatedly. If it raises an exception, the backup ends with that exception, and the partial
                copy is removed.

        Raises:
            ConfigError: The file exists, or this storage cannot be copied; the error names the alternative.
            JournalDamaged: The journal cannot be read.
            JournalUnavailable: The copy cannot be written.
        """

    def sessions(
        self, conditions: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first.

        An index finds the sessions of a tenant or a state. A filter for titles or metadata may examine the sessions one
        by one until the page is full. Like `page`, this method may run concurrently with a writing method.

        Args:
            conditions: The conditions; by default, all sessions.
            limit: Maximum number of sessions to return.
            after: `StoredSession.page` of the last session of the previous page; None for the first page.
        """
        ...

    def find(self, session: str) -> StoredSession | None:
        """Return the stored data about one session, or None if the session has no log.

        Raises:
            JournalDamaged: The stored data about the session is corrupt.
        """
