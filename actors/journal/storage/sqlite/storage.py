"""The SQLite storage. Every method is one transaction, or one read."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from sqlite3 import Connection
from stat import S_ISDIR
from time import time

from actors.core.log.events import LogEvent
from actors.core.stats.stats import StorageSizes
from actors.errors import ConfigError, Fenced, JournalBehind, JournalDamaged
from actors.journal.storage import (
    NO_PAGE,
    NOTHING,
    PAGE,
    Appended,
    Claim,
    Durability,
    Entry,
    LogPage,
    decode_records,
    decoded_page,
)
from actors.journal.storage.blobs import LARGE, extract_blobs
from actors.journal.storage.clock import ObservedClock, observe
from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.directory import EVERY, Page, SessionFilter, StoredSession
from actors.journal.storage.rows import JournalPlace
from actors.journal.storage.sqlite.connection import Connections
from actors.journal.storage.sqlite.format import (
    note_clock,
    note_removal,
    noted_clock,
    removed_fence,
    sessions_kept,
    sessions_made,
    set_sessions_made,
)
from actors.journal.storage.sqlite.hosts import Hosts
from actors.journal.storage.sqlite.listing import list_sessions
from actors.journal.storage.sqlite.locks import check_platform
from actors.journal.storage.sqlite.records import (
    COLUMNS,
    WRITTEN,
    PlacedRow,
    Written,
    delete_records,
    last_place,
    records,
    row_of,
    waypoints,
)

LEASE = 10.0
PATIENCE = 5.0
CACHED = 4096
"""Maximum number of rows that are cached between transactions, as long as no other process writes."""
_ROW = f"SELECT {COLUMNS} FROM session WHERE name = ?"  # noqa: S608  constants
_OWNED = f"SELECT {COLUMNS} FROM session WHERE owner = ?"  # noqa: S608  as above
_WRITE = f"INSERT OR REPLACE INTO session ({WRITTEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_GO_ON = """
UPDATE session SET owner = ?4, last = ?5, size = ?6, target = ?8, state = ?9, opened = ?10, used = ?11,
title = ?12, folded = ?13, metadata = ?14, checksum = ?15, place = ?16
WHERE name = ?1 AND key = ?2 AND fence = ?3 AND last = ?19
"""
"""Does not set indexed columns: SQLite would rewrite each index even if the value is unchanged."""
_INDEX = "UPDATE session SET tenant = ?, bucket = ?, lifecycle = ? WHERE name = ?"


class SqliteStorage:
    """Logs in one file, which several processes of this machine may share. It must be on a local disk.

    Args:
        path: The file; it is created if missing, but its folder is not. Further files have its name and a suffix.
        durability: `process` survives `kill -9`; `power` also a loss of power, at the cost of a sync per commit.
        lease: Seconds without a heartbeat after which a host is gone; `kill -9` is noticed earlier.
        patience: Seconds to wait for another writing process, before `JournalUnavailable`.
        clock: The wall clock, in seconds since 1970.

    Raises:
        ConfigError: The path cannot be a file, the durability is `memory`, or the platform has no file locks.
    """

    blocking = True

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        durability: Durability = "power",
        lease: float = LEASE,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time,
    ) -> None:
        if durability == "memory":
            raise ConfigError(
                f"{path}: durability 'memory' keeps no file; use MemoryStorage, or 'process' or 'power'"
            )
        self._now = clock
        self.path: Path = _file(path)
        check_platform(self.path)
        self.durability: Durability = durability
        self.lease: float | None = lease
        self._connections = Connections(self.path, durability, patience)
        self._hosts = Hosts(self.path, lease)
        self._rows: dict[str, PlacedRow] = {}
        self._is_searched = False

    @property
    def sizes(self) -> StorageSizes:
        """Sizes of the file and its write-ahead log after this process's last transaction."""
        return self._connections.sizes

    def open(self) -> None:
        """Create the file if it does not exist."""
        with self._connections.transaction():
            pass

    def close(self) -> None:
        """Release every session of this host and close the file."""
        try:
            if self._hosts.is_begun:
                with self._connections.transaction() as connection:
                    self._release_all(connection)
        finally:
            self._rows.clear()
            self._is_searched = False
            self._hosts.end()
            self._connections.close()

    def renew_lease(self) -> None:
        """Renew this host's lease, if this is a host."""
        if self._hosts.is_begun:
            with self._connections.transaction() as connection:
                self._hosts.renew_lease(connection)

    def transaction(self, claims: Sequence[str] = ()) -> AbstractContextManager[object]:
        """Combine the calls inside into one transaction."""
        return self._connections.transaction()

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer."""
        with self._connections.transaction() as connection:
            row = self._row(connection, session)
            if existing and (row is None or not row.last):
                return NOTHING
            row = row or self._new(connection, session)
            self._check_not_leased(connection, row)
            self._hosts.begin(connection)
            before = row.owner
            self._write(connection, row, row.fence + 1, self._hosts.name)
            return row.claim(before)

    def release(self, session: str, fence: int) -> None:
        """Release the session for other hosts."""
        with self._connections.transaction() as connection:
            row = self._row(connection, session)
            if row is not None and row.fence == fence and row.owner is not None:
                self._release_claim(connection, row)

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries except fenced ones, in one transaction."""
        encoded = [entry.records for entry in entries]
        now, outcomes, written = self._now(), list[Appended](), list[Written]()
        rows, before = dict[str, PlacedRow](), list[tuple[int, tuple[str, int, str]]]()
        refused = dict[tuple[str, int], Fenced | JournalBehind]()
        try:
            with self._connections.transaction() as connection:
                place = last_place(connection)
                for entry, its_records in zip(entries, encoded, strict=True):
                    row = rows.get(entry.session) or self._row(connection, entry.session)
                    if (refusal := refused.get(entry.writer) or _refusal(entry, row)) is not None:
                        outcomes.append(refused.setdefault(entry.writer, refusal))
                        continue
                    assert row is not None
                    if entry.session not in rows:
                        rows[entry.session] = row
                        before.append((row.last, row.index_columns))
                    row.take(entry.events, now)
                    for record in its_records:
                        place += 1
                        stored = (
                            record if len(record) < LARGE else self._extract_blobs(connection, row, record)
                        )
                        written.append(row.append(stored, place))
                        row.size += len(record)
                    outcomes.append(row.last)
                self._append(connection, written, list(zip(rows.values(), before, strict=True)))
        except BaseException:
            self._rows.clear()
            raise
        return outcomes

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events after number `after`, each verified by its checksum."""
        with self._connections.reading() as connection:
            row = self._find_row(connection, session)
            if row is None:
                return []
            return decode_records(
                session, records(connection, row, after, JournalPlace(str(self.path))), after
            )

    def page(self, session: str, after: int = 0, most: int = PAGE) -> LogPage:
        """Return the first events of a session after number `after`, each verified by its checksum."""
        with self._connections.reading() as connection:
            row = self._find_row(connection, session)
            if row is None:
                return NO_PAGE
            found = records(connection, row, after, JournalPlace(str(self.path)), most)
            return decoded_page(session, found, after, row.last)

    def delete(self, *sessions: str) -> None:
        """Delete logs, unreferenced blobs, and their remains in the write-ahead log.

        A reader in another process may delay the last step until the next write after it has finished.
        """
        with self._connections.transaction() as connection:
            for session in sessions:
                row = self._row(connection, session)
                if row is not None:
                    self._check_not_leased(connection, row)
                    self._delete(connection, row)

    def look_at_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the wall clock; return how far it is trusted."""
        with self._connections.transaction() as connection:
            clock = observe(noted_clock(connection), now, elapsed)
            note_clock(connection, clock)
            return clock

    def vacuum(self, most: int | None = None) -> Sequence[RemainingData]:
        """Rewrite the file if a deletion requires it, and empty the write-ahead log."""
        found = self._connections.remove_deleted(most)
        self.renew_lease()  # the rewrite may have taken longer than the lease
        return found

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        """Copy the current file to a new one, while others write."""
        self._connections.copy(path, check)

    def sessions(
        self, which: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first."""
        with self._connections.reading() as connection:
            return list_sessions(connection, which, limit, after, JournalPlace(str(self.path)))

    def find(self, session: str) -> StoredSession | None:
        """Return the directory's entry of a session."""
        with self._connections.reading() as connection:
            row = self._find_row(connection, session)
            return row.stored_session if row is not None and row.last else None

    # Rows

    def _row(self, connection: Connection, session: str) -> PlacedRow | None:
        """Return a session's row, which the transaction may change."""
        if self._connections.changed or len(self._rows) > CACHED:
            self._connections.changed = False
            self._rows.clear()
        if (row := self._rows.get(session)) is None and (
            row := self._find_row(connection, session)
        ) is not None:
            self._rows[session] = row
        return row

    def _find_row(self, connection: Connection, session: str) -> PlacedRow | None:
        values = connection.execute(_ROW, (session,)).fetchone()
        if values is None:
            self._search(connection)
            return None
        return row_of(values, JournalPlace(str(self.path)))

    def _search(self, connection: Connection) -> None:
        """Check once, before a session is reported as unknown, that no row is missing or has another name."""
        if self._is_searched:
            return
        names = [
            row_of(values, JournalPlace(str(self.path))).name
            for values in connection.execute(f"SELECT {COLUMNS} FROM session")  # noqa: S608
        ]
        if (
            len(names) != sessions_kept(connection, str(self.path))
            or sorted(set(names), key=str.encode) != names
        ):
            raise JournalDamaged(
                f"{self.path}: sessions are missing from its directory; restore a copy, or see `actors sessions fsck`"
            )
        self._is_searched = True

    def _new(self, connection: Connection, session: str) -> PlacedRow:
        key = sessions_made(connection, str(self.path)) + 1
        set_sessions_made(connection, key)
        row = self._rows[session] = PlacedRow(session, key, removed_fence(connection, str(self.path)))
        return row

    def _write(self, connection: Connection, row: PlacedRow, fence: int, owner: str | None) -> None:
        """Assign another writer to a session."""
        self._rows.pop(row.name, None)
        row.fence, row.owner = fence, owner
        connection.execute(_WRITE, row.values)

    def _check_not_leased(self, connection: Connection, row: PlacedRow) -> None:
        """Raise if the session belongs to another live host."""
        if row.owner is None or row.owner == self._hosts.name:
            return
        if seconds := self._hosts.lease_left(connection, row.owner):
            raise row.leased_error(seconds)

    def _release_all(self, connection: Connection) -> None:
        name = self._hosts.name
        for values in connection.execute(_OWNED, (name,)).fetchall():
            row = row_of(values, JournalPlace(str(self.path)))
            self._release_claim(connection, row)
        self._hosts.forget(connection, name)

    def _release_claim(self, connection: Connection, row: PlacedRow) -> None:
        if row.last:
            self._write(connection, row, row.fence, None)
        else:
            self._remove(connection, row)

    def _delete(self, connection: Connection, row: PlacedRow) -> None:
        uses = connection.execute("SELECT hash FROM blob_use WHERE session = ?", (row.key,)).fetchall()
        for (digest,) in uses:
            connection.execute("UPDATE blob_count SET uses = uses - 1 WHERE hash = ?", (digest,))
            if connection.execute("DELETE FROM blob_count WHERE hash = ? AND uses <= 0", (digest,)).rowcount:
                connection.execute("DELETE FROM blob WHERE hash = ?", (digest,))
        connection.execute("DELETE FROM blob_use WHERE session = ?", (row.key,))
        delete_records(connection, row)
        self._remove(connection, row)

    def _remove(self, connection: Connection, row: PlacedRow) -> None:
        """Remove the row of a session without records."""
        self._rows.pop(row.name, None)
        connection.execute("DELETE FROM session WHERE name = ?", (row.name,))
        note_removal(connection, str(self.path), row.fence)
        self._connections.deleted = True

    # Records

    def _append(
        self,
        connection: Connection,
        written: Sequence[Written],
        rows: Sequence[tuple[PlacedRow, tuple[int, tuple[str, int, str]]]],
    ) -> None:
        """Write records, and the rows of their sessions.

        Each row comes with the previous number of its last record, and its previous indexed columns.
        """
        connection.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)", written)
        connection.executemany("INSERT OR REPLACE INTO waypoint VALUES (?, ?, ?)", waypoints(written))
        changed = connection.executemany(_GO_ON, [(*row.values, last) for row, (last, _) in rows]).rowcount
        moved = [(*row.index_columns, row.name) for row, (_, indexed) in rows if row.index_columns != indexed]
        connection.executemany(_INDEX, moved)
        if rows and changed != len(rows):
            raise JournalDamaged(
                f"{self.path}: entries of sessions have changed since they were read; restore a copy, "
                "or see `actors sessions fsck`"
            )
        self._connections.pages += len(rows) + len(written) // 8

    def _extract_blobs(self, connection: Connection, row: PlacedRow, record: bytes) -> bytes:
        """Return a record as it is stored, after storing its blobs."""
        stored, blobs = extract_blobs(record)
        for digest, content in blobs.items():
            use = connection.execute("INSERT OR IGNORE INTO blob_use VALUES (?, ?)", (row.key, digest))
            if not use.rowcount:
                continue
            first = connection.execute("INSERT OR IGNORE INTO blob_count VALUES (?, 0)", (digest,)).rowcount
            connection.execute("UPDATE blob_count SET uses = uses + 1 WHERE hash = ?", (digest,))
            if first:
                connection.execute("INSERT INTO blob VALUES (?, ?)", (digest, content))
                self._connections.pages += len(content) // 4096
        return stored


def _refusal(entry: Entry, row: PlacedRow | None) -> Fenced | JournalBehind | None:
    return entry.missing() if row is None else entry.refusal(row.fence, row.last)


def _file(path: str | PathLike[str]) -> Path:
    """Return the absolute path of a file, independent of later changes of the working directory.

    Raises:
        ConfigError: It cannot be a file, or is a folder.
    """
    try:
        found = Path(os.path.realpath(path))  # a symbolic link's own name would lead to other locks
    except FileNotFoundError:
        raise ConfigError(
            f"journal: {str(path)!r} is relative, but the current folder no longer exists; pass an absolute path"
        ) from None
    except ValueError:
        raise ConfigError(
            f"journal: {str(path)[:80]!a} is not a valid file name; choose another one"
        ) from None
    try:
        is_folder = S_ISDIR(os.stat(found).st_mode)
    except OSError:  # reported when the file is used
        return found
    if is_folder:
        raise ConfigError(f"journal: {str(path)!r} is a folder; name a file in it")
    return found
