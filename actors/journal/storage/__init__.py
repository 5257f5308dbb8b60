"""Store logs: the interface that journal backends implement.

A log is a sequence of a session's events, numbered from 1 without gaps. A durable storage keeps them as records: the
bytes of one event each. Records may contain any byte, so a file format must store their lengths. One writer, the
journal actor, appends; any process may read.

**Fencing.** A session has at most one live writer. `claim` makes its caller that writer and returns a fencing number
greater than all earlier ones of the session, even after `delete`. Each `Entry` carries the number. An entry with an
outdated number is rejected as `Fenced`, by itself: the other entries of the append are written.

A session that is deleted, or released without a log, leaves no data. Instead the storage keeps a floor: the greatest
number of all sessions removed in this way. An unknown session gets a number above the floor.

**Losses.** A storage may lose acknowledged events: a replica that lagged is promoted, or a backup is restored. So an
entry may also give the number of the last event that its writer knows. If the storage lacks that event, the entry is
rejected as `JournalBehind`; if the storage has later events, another writer wrote them, and the entry is `Fenced`.

**Hosts.** A claimed session belongs to the storage object that claimed it, its host, until it is released: by
`release`, by the record of its end (`Closed`), by `close`, or because the host is gone. A host that does
not renew its lease in time (`renew_lease`) is gone, and others may take over its sessions. It may continue to write
sessions that were not taken over.
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
from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.directory import EVERY, Page, SessionFilter, StoredSession

if TYPE_CHECKING:
    from pathlib import Path

Durability: TypeAlias = Literal["memory", "process", "power"]
"""The failure that acknowledged events survive: none, `kill -9` of the process, or also a power failure."""

Appended: TypeAlias = int | Fenced | JournalBehind
"""The outcome of an entry: the number of its last event, or the error if the entry was not written."""


class Entry(Struct, frozen=True):
    """Events of one session, to be appended in this order.

    Args:
        session: The session's id.
        fence: The fencing number of the writer's claim.
        events: The events.
        after: The number of the log's last event that the writer knows; None if unknown.
    """

    session: str
    fence: int
    events: tuple[LogEvent, ...]
    after: int | None = None

    @property
    def writer(self) -> tuple[str, int]:
        """The session and the fencing number of the claim that wrote the entry."""
        return self.session, self.fence

    @property
    def records(self) -> tuple[bytes, ...]:
        """The events as records. They are encoded at each access, so read the property once."""
        return tuple(map(encode_event, self.events))

    def refusal(self, fence: int, last: int) -> Fenced | JournalBehind | None:
        """Return why the entry is rejected, given the session's fencing number and its last event; None if it is
        accepted."""
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
            f"Session {self.session!r} has another writer: its number is {fence}, not {self.fence}; "
            "nothing is written. Go on where it is open now"
        )

    def unclaimed_error(self) -> Fenced:
        """Return the rejection for a claim that the storage does not know."""
        return Fenced(
            f"Session {self.session!r}: the journal went back to before it was opened here; nothing is written, and "
            "what was is lost. Open it anew"
        )

    def missing(self) -> Fenced:
        """Return the rejection for an unknown session."""
        return Fenced(
            f"Session {self.session!r} is not in the journal: it was deleted, or the journal went back to before it "
            "was opened here; nothing is written. Open it anew"
        )

    def behind_error(self, last: int, known: int) -> JournalBehind:
        """Return the rejection for lost events, where the log has only `last` of the `known` ones."""
        return JournalBehind(
            f"Session {self.session!r}: the journal went back to event {last}; events {last + 1} to {known} were "
            "acknowledged and are lost. Nothing is written; ask again",
            session=self.session,
            first=last + 1,
            last=known,
        )

    def _overtaken_error(self, last: int) -> Fenced:
        return Fenced(
            f"Session {self.session!r} has another writer: its log has {last} events, not {self.after}; "
            "nothing is written. Go on where it is open now"
        )


class Claim(Struct, frozen=True):
    """A claim of a session.

    Args:
        fence: The fencing number of its later entries.
        last: The number of the last event of its log; 0 without a log.
        taken_from: The previous host, if its lease has expired; empty if there was none.
    """

    fence: int
    last: int
    taken_from: str = ""


NOTHING = Claim(0, 0)
"""The claim of a session without a log, if only an existing session may be claimed."""


PAGE = 128
"""Events of a page, at most."""
PAGE_BYTES = 256 * 1024
"""Bytes of the records of a page, at most; a single record may be larger."""


class LogPage(Struct, frozen=True):
    """Consecutive events of a log, read at one moment.

    Args:
        after: The number of the event before the first.
        events: The events; empty only if the log has none after `after`.
        last: The number of the log's last event at that moment.
    """

    after: int
    events: Sequence[LogEvent]
    last: int

    @property
    def end(self) -> int:
        """The number of the last event of the page."""
        return self.after + len(self.events)

    def up_to(self, last: int) -> "LogPage":
        """Return the page as if the log ended at number `last`."""
        if last >= self.last:
            return self
        return LogPage(self.after, self.events[: max(0, last - self.after)], last)


NO_PAGE = LogPage(0, (), 0)
"""A page of a session that has no log."""


def decode_records(session: str, records: Iterable[bytes], after: int = 0) -> list[LogEvent]:
    """Return the events of a session's records after number `after`.

    Raises:
        JournalError: A record is not an event; the error names it.
    """
    return [_decode(session, number, record) for number, record in enumerate(records, after + 1)]


def decoded_page(session: str, records: Iterable[bytes], after: int, last: int) -> LogPage:
    """Return a page of the records after number `after`, as many as fit, of a log with `last` events.

    Raises:
        JournalError: A record is not an event; the error names it.
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
        raise JournalError(f"Session {session!r}, record {number}: {error}") from error


class Storage(Protocol):
    """A journal backend. The journal actor runs its writing methods one at a time, and its reading methods one at a
    time.

    Every method raises `JournalUnavailable` if a disk, a lock or a connection prevented the operation; it may succeed
    later, without a restart.
    """

    blocking: bool
    """True if the methods of the storage may block, so that they must run in a thread."""
    durability: Durability
    lease: float | None
    """Seconds after which a host that does not renew its lease is gone; None if no other host can take over."""

    @property
    def sizes(self) -> StorageSizes:
        """Sizes of the storage's own files after the last transaction. Can be read in any thread and does not block."""
        ...

    def open(self) -> None:
        """Prepare the storage for use. Repeated calls have no effect.

        Raises:
            JournalError: It cannot be used: it is not a journal, or a newer version wrote it.
        """

    def close(self) -> None:
        """Release every session of this host, and close files and connections. The storage may be opened again."""

    def renew_lease(self) -> None:
        """Renew this host's lease. Called every third of the lease."""

    def transaction(self, claims: Sequence[str] = ()) -> AbstractContextManager[object]:
        """Combine the claims and the append inside into few commits; results are reported only after the end.

        `claims`: sessions that are claimed inside, whether or not they have a log; a storage may claim them in
        advance. A rejected claim does not affect the others.
        """
        ...

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer, replacing a writer of this host or of a gone one.

        Args:
            session: The session's id.
            existing: Claim only a session with a log; otherwise nothing changes, and the claim's `last` is 0.

        Raises:
            SessionLeased: The session belongs to another live host.
        """
        ...

    def release(self, session: str, fence: int) -> None:
        """Release the session for other hosts, and remove it if it has no log.

        No effect if it was claimed with another number since.
        """

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all accepted entries durably; the entries of a session keep their order.

        After a rejected entry, no other entry of its writer is written.

        Raises:
            JournalError: Nothing was appended.
        """
        ...

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events after number `after`, oldest first; none for an unknown session.

        Raises:
            JournalDamaged: A record is missing or was altered.
            JournalError: A record is not an event (`decode_records`).
        """
        ...

    def page(self, session: str, after: int = 0, most: int = PAGE) -> LogPage:
        """Return the first events after number `after`: at most `most`, and as many as fit into `PAGE_BYTES`.

        The cost does not depend on the position in the log. It may run in another thread, concurrently with a writing
        method.

        Raises:

        As `read`.
        """
        ...

    def delete(self, *sessions: str) -> None:
        """Delete sessions durably, all or none: their logs and their names. Their writers are fenced.

        Raises:
            SessionLeased: A session belongs to another live host. Nothing was deleted.
            JournalError: Nothing was deleted.
        """

    def look_at_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the wall clock durably; return how far it is trusted (`actors.journal.storage.clock`).

        Args:
            now: The reading, in seconds since 1970. A storage on a server uses the server's clock if that is behind.
            elapsed: Seconds since this process's previous reading, by a monotonic clock; 0 at its first.
        """
        ...

    def vacuum(self, most: int | None = None) -> Sequence[RemainingData]:
        """Remove every byte of deleted logs from this storage's own files; return the data that could not be removed.

        Writers must be stopped, and it may take as long as copying all files. The result comes from a search
        afterwards, so an empty result means that nothing is left. For files that are not its own, it only searches.

        Args:
            most: Most bytes of a file that is rewritten.

        Raises:
            JournalUnavailable: The operation failed.
        """
        ...

    def backup(self, path: "Path", check: Callable[[], object]) -> None:
        """Copy everything written so far to a new file, while this storage and others write.

        Called in a thread of its own.

        Args:
            path: Path of the copy, which must not exist.
            check: Called now and then; its exception ends the backup, and the partial copy is removed.

        Raises:
            ConfigError: The file exists, or this storage cannot be copied; the error names the alternative.
            JournalDamaged: The journal cannot be read.
            JournalUnavailable: The copy cannot be written.
        """

    def sessions(
        self, which: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first.

        Tenant and state are found by an index. For a title or metadata, the remaining sessions are examined one after
        the other until the page is full.

        Args:
            which: The conditions; by default, all sessions.
            limit: Most sessions to return.
            after: `StoredSession.page` of the last session of the previous page.

        Like `page`, it may run concurrently with a writing method.
        """
        ...

    def find(self, session: str) -> StoredSession | None:
        """Return the directory's entry of a session; None if it has no log.

        Raises:
            JournalDamaged: The entry was altered.
        """
