"""Where logs are kept: the interface that journal backends implement.

A log is a sequence of a session's events, numbered from 1 without gaps. A storage that outlives the process keeps them
as records: the bytes of one event each. Any byte may be in one, so who writes records into a file says how long each
is. One writer, the journal actor, appends; anyone may read.

**Fencing.** A session has at most one live writer. `claim` makes its caller that writer and gives it a number that is
greater than every number given before, also after `delete`. Each `Entry` carries the number, and one that is not the
session's current number is refused as `Fenced`, alone: what else is in the same append is written.

Of a session that is deleted, or released without a log, nothing is kept. Instead the storage keeps its floor: the
greatest number of all sessions that it has dropped so. A session that it does not know gets a number above that.

**What is lost.** A storage may go back behind what it acknowledged: a server that lagged is promoted, or a copy is
restored. So an entry may also say which number the last event had that its writer knows of. One that the storage does
not have is refused as `JournalBehind`; if the storage has more than that, another writer wrote it, and it is `Fenced`.

**Hosts.** A session that is claimed belongs to the storage object that claimed it, its host, until it is released:
by `release`, by the record of its end (`Closed`), by `close`, or because the host is gone. A host that is not heard of
(`beat`) for its lease is gone, and others may take its sessions over. It may go on writing those that nobody took.
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

Level: TypeAlias = Literal["memory", "process", "power"]
"""What a log outlives: nothing, the process (`kill -9`), or a loss of power too."""

Appended: TypeAlias = int | Fenced | JournalBehind
"""What became of an entry: the number of its last event, or why it was not written."""


class Entry(Struct, frozen=True):
    """Events of one session, to be appended in this order.

    Args:
        session: Whose.
        fence: The number that the writer was given when it claimed the session.
        events: What happened.
        after: The number of the last event of the log, as the writer knows it; None if it does not.
    """

    session: str
    fence: int
    events: tuple[LogEvent, ...]
    after: int | None = None

    @property
    def writer(self) -> tuple[str, int]:
        """Which claim of which session wrote it."""
        return self.session, self.fence

    @property
    def records(self) -> tuple[bytes, ...]:
        """The events as records. Encoded at each read, so read it once."""
        return tuple(map(encode_event, self.events))

    def refusal(self, fence: int, last: int) -> Fenced | JournalBehind | None:
        """Return why the entry is refused, where the session has this number and its log so many events; or None."""
        if fence != self.fence:
            return self.fenced(fence)
        if self.after is None or last == self.after:
            return None
        return self.behind(last, self.after) if last < self.after else self._overtaken(last)

    def fenced(self, fence: int) -> Fenced:
        """Return why the entry is refused, where the session's number is `fence`."""
        if fence < self.fence:
            return self.unclaimed()
        return Fenced(
            f"Session {self.session!r} has another writer: its number is {fence}, not {self.fence}; "
            "nothing is written. Go on where it is open now"
        )

    def unclaimed(self) -> Fenced:
        """Return why the entry is refused where the storage does not know that its writer claimed the session."""
        return Fenced(
            f"Session {self.session!r}: the journal went back to before it was opened here; nothing is written, and "
            "what was is lost. Open it anew"
        )

    def missing(self) -> Fenced:
        """Return why the entry is refused where the storage does not know its session."""
        return Fenced(
            f"Session {self.session!r} is not in the journal: it was deleted, or the journal went back to before it "
            "was opened here; nothing is written. Open it anew"
        )

    def behind(self, last: int, known: int) -> JournalBehind:
        """Return why the entry is refused, where the log has only `last` events of those that are known."""
        return JournalBehind(
            f"Session {self.session!r}: the journal went back to event {last}; events {last + 1} to {known} were "
            "acknowledged and are lost. Nothing is written; ask again",
            session=self.session,
            first=last + 1,
            last=known,
        )

    def _overtaken(self, last: int) -> Fenced:
        return Fenced(
            f"Session {self.session!r} has another writer: its log has {last} events, not {self.after}; "
            "nothing is written. Go on where it is open now"
        )


class Claim(Struct, frozen=True):
    """A session that is claimed.

    Args:
        fence: What its entries carry from now on.
        last: The number of the last event of its log; 0 if there is none.
        taken_from: The host that had it, if its lease has ended; empty if no other host had it.
    """

    fence: int
    last: int
    taken_from: str = ""


NOTHING = Claim(0, 0)
"""Of a session that has no log, where only one that exists is wanted."""


PAGE = 128
"""Events of a page, at most."""
PAGE_BYTES = 256 * 1024
"""Bytes of the records of a page, at most; a single record may be larger."""


class LogPage(Struct, frozen=True):
    """Consecutive events of a log, read at one moment.

    Args:
        after: The number of the event before the first.
        events: The events; empty only if the log has none past `after`.
        last: The number of the last event that the log had at that moment.
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


def decoded(session: str, records: Iterable[bytes], after: int = 0) -> list[LogEvent]:
    """Return the events of a session's records past number `after`.

    Raises:
        JournalError: A record is not an event; the error says which.
    """
    return [_decoded(session, number, record) for number, record in enumerate(records, after + 1)]


def decoded_page(session: str, records: Iterable[bytes], after: int, last: int) -> LogPage:
    """Return a page of the records past number `after`, as many as it holds, of a log that has `last` events.

    Raises:
        JournalError: A record is not an event; the error says which.
    """
    events, size = list[LogEvent](), 0
    for number, record in enumerate(records, after + 1):
        events.append(_decoded(session, number, record))
        size += len(record)
        if size >= PAGE_BYTES:
            break
    return LogPage(after, events, last)


def _decoded(session: str, number: int, record: bytes) -> LogEvent:
    try:
        return decode_event(record)
    except JournalError as error:
        raise JournalError(f"Session {session!r}, record {number}: {error}") from error


class Storage(Protocol):
    """A journal backend. The journal actor decides where its methods run: those that write, one at a time, and those
    that read, one at a time.

    Every method raises `JournalUnavailable` if what was asked was not done because of a disk, a lock or a connection;
    it may work later, without a restart.
    """

    blocking: bool
    """Whether its methods may block, and so belong in a thread."""
    level: Level
    lease: float | None
    """Seconds after which a host that is not heard of is gone; None where nobody else could take over."""

    @property
    def sizes(self) -> StorageSizes:
        """Sizes of its own files, as its last transaction left them. Read in any thread; it does not block."""

    def open(self) -> None:
        """Make ready what can be made ready before the first use; a second time changes nothing.

        Raises:
            JournalError: It cannot be used: it is not a journal, or a newer version wrote it.
        """

    def close(self) -> None:
        """Release every session of this host, and what is open. It may be opened again."""

    def beat(self) -> None:
        """Prolong this host's lease. Called every third of it."""

    def together(self, claims: Sequence[str] = ()) -> AbstractContextManager[object]:
        """Make few commits of the claims and the append that are called inside; nothing of it is told before its end.

        `claims`: sessions that are claimed inside, whether they have a log or not; a storage may claim them ahead. One
        that is refused harms no other.
        """

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer, in place of any other that this host or a gone one has.

        Args:
            session: Which.
            existing: Only if it has a log; else nothing changes, and the claim's `last` is 0.

        Raises:
            SessionLeased: It belongs to another host that is not gone.
        """

    def release(self, session: str, fence: int) -> None:
        """Let others claim the session, and forget it if it has no log.

        Nothing happens if it was claimed with another number since.
        """

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries, durably, but those that are refused; a session's own stay in their order.

        Behind one that is refused, no other of its writer is written.

        Raises:
            JournalError: Nothing was appended.
        """

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events past number `after`, oldest first; empty for an unknown one.

        Raises:
            JournalDamaged: A record is missing, or not as it was written.
            JournalError: A record is not an event (`decoded`).
        """

    def page(self, session: str, after: int = 0, most: int = PAGE) -> LogPage:
        """Return the first events past number `after`: at most `most`, and as many as `PAGE_BYTES` hold.

        It costs as much for the end of a log as for its beginning, and may be called in another thread than the
        methods that write, while one of them runs.

        Raises:
            As `read`.
        """

    def delete(self, *sessions: str) -> None:
        """Delete sessions, durably, all or none: their logs and their names. Their writers are fenced.

        Raises:
            SessionLeased: One belongs to another host that is not gone. Nothing was deleted.
            JournalError: Nothing was deleted.
        """

    def look_at_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Note the wall clock, durably; return how far it is trusted (`actors.journal.storage.clock`).

        Args:
            now: Its reading, in seconds since 1970. A storage on a server takes the server's if that is behind it.
            elapsed: Seconds since this process looked before, by a clock that nobody sets; 0 if it did not.
        """

    def vacuum(self, most: int | None = None) -> Sequence[RemainingData]:
        """Remove every byte of deleted logs from this storage's own files; return what could not be removed.

        Nobody writes meanwhile, and it may take as long as copying all files. What is returned was looked for after
        that, so a storage that returns nothing holds nothing. Where files are not its own, it only looks.

        Args:
            most: The size of files, in bytes, up to which they may be written anew.

        Raises:
            JournalUnavailable: It is not done.
        """

    def backup(self, path: "Path", check: Callable[[], object]) -> None:
        """Copy everything that is written by now to a new file, while others write, and this storage too.

        It is called in a thread of its own.

        Args:
            path: Of the copy, where there is no file.
            check: To be called now and then; what it raises ends the backup, and nothing is left of it.

        Raises:
            ConfigError: There is such a file, or this storage cannot be copied; the error says what to do.
            JournalDamaged: It cannot be read.
            JournalUnavailable: The copy cannot be written.
        """

    def sessions(
        self, which: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, those used last first.

        Tenant and state are found by an index. For a title or metadata, the sessions that those leave are looked at
        one after the other until there are enough.

        Args:
            which: The conditions that they meet; all if it is not given.
            limit: How many at most.
            after: `StoredSession.page` of the last one of the page before.

        Like `page`, it may be called while a method that writes runs.
        """

    def find(self, session: str) -> StoredSession | None:
        """Return the directory's entry of a session; None if it has no log.

        Raises:
            JournalDamaged: The entry is not as it was written.
        """
