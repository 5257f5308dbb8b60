"""Implement `Storage` with an SQLite file. Every method performs one transaction or one read."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from sqlite3 import Connection
from stat import S_ISDIR
from time import time

from msgspec.structs import replace

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
    decode_page,
    decode_records,
)
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
    no_host_error,
)
from actors.journal.storage.rows import LARGE, JournalLocation, extract_blobs
from actors.journal.storage.sqlite.connection import Connections
from actors.journal.storage.sqlite.format import (
    created_session_count,
    expected_session_count,
    highest_removed_fence,
    read_clock,
    record_removal,
    set_created_session_count,
    store_clock,
)
from actors.journal.storage.sqlite.locks import Hosts, check_platform
from actors.journal.storage.sqlite.records import (
    ALL_COLUMNS,
    COLUMNS,
    IndexColumns,
    RecordRow,
    SqliteRow,
    decode_row,
    delete_records,
    last_place,
    list_sessions,
    read_records,
    waypoints,
)

LEASE = 10.0
PATIENCE = 5.0
MAX_CACHED = 4096
"""Maximum number of cached rows. The cache is emptied when another process has written to the file."""
_ROW = f"SELECT {COLUMNS} FROM session WHERE name = ?"  # noqa: S608  inserts only constants
_OWNED = f"SELECT {COLUMNS} FROM session WHERE owner = ?"  # noqa: S608  inserts only constants
_OWNED_AFTER = (
    "SELECT name, fence FROM session WHERE owner = ? AND last > 0 AND name > ? ORDER BY name LIMIT ?"
)
_WRITE = f"INSERT OR REPLACE INTO session ({ALL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_UPDATE_AFTER_APPEND = """
UPDATE session SET last = ?5, size = ?6, target = ?8, state = ?9, opened = ?10, used = ?11,
title = ?12, folded = ?13, metadata = ?14, checksum = ?15, place = ?16
WHERE name = ?1 AND key = ?2 AND fence = ?3 AND last = ?19
"""
"""Updates a row after an append. It does not set indexed columns, because SQLite would rewrite each index even if the
value is unchanged."""
_INDEX = "UPDATE session SET tenant = ?, bucket = ?, lifecycle = ?, owner = ? WHERE name = ?"


class SqliteStorage:
    """A storage in one file on a local disk, which several processes on this machine may share.

    Args:
        path: The file, which is created if it is missing. Its folder must exist. SQLite and this storage create more
            files next to it, with names that begin with the file's name.
        durability: With `process`, acknowledged events survive `kill -9`. With `power`, they survive power failures as
            well, at the cost of a sync per commit.
        lease: Seconds after which a host that has not renewed its lease counts as gone. A killed process is noticed
            earlier.
        patience: Seconds to wait for another writing process before raising `JournalUnavailable`.
        clock: Returns the wall-clock time in seconds since 1970.

    Raises:
        ConfigError: The path does not name a file, the durability is `memory`, or the platform has no file locks.
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
                f"{path}: a journal in a file cannot have durability 'memory'; use 'process' or 'power', or a "
                "MemoryStorage"
            )
        self._now = clock
        self.path: Path = _resolve_path(path)
        check_platform(self.path)
        self.durability: Durability = durability
        self.lease: float | None = lease
        self._connections = Connections(self.path, durability, patience)
        self._hosts = Hosts(self.path, lease)
        self._rows: dict[str, SqliteRow] = {}
        self._is_searched = False

    @property
    def host(self) -> str:
        """The name under which this storage owns sessions; empty until it becomes a host."""
        return self._hosts.name

    @property
    def sizes(self) -> StorageSizes:
        """The sizes of the file and its write-ahead log after the last transaction of this storage."""
        return self._connections.sizes

    def open(self) -> None:
        """Create the file if it does not exist."""
        with self._connections.transaction():
            pass

    def close(self) -> None:
        """Release every session of this host and close the file."""
        try:
            if self._hosts.is_host:
                with self._connections.transaction() as connection:
                    self._end_host(connection)
        finally:
            self._rows.clear()
            self._is_searched = False
            self._hosts.end()
            self._connections.close()

    def renew_lease(self, status: HostStatus | None = None) -> None:
        """Renew this host's lease. If the status has an address, make this storage a host first."""
        hosts = self._hosts
        hosts.status = status or hosts.status
        if hosts.is_host or hosts.status.address:
            with self._connections.transaction() as connection:
                hosts.become_host(connection)
                hosts.renew_lease(connection)

    def hosts(self, *, count_sessions: bool = True) -> Sequence[Host]:
        """Return the live hosts of the file."""
        with self._connections.read_snapshot() as connection:
            return self._hosts.live(connection, count_sessions=count_sessions)

    def owned_sessions(self, after: str = "", limit: int = 1000) -> Sequence[ClaimedSession]:
        """Return the sessions that belong to this host and have a log."""
        with self._connections.read_snapshot() as connection:
            found = connection.execute(_OWNED_AFTER, (self._hosts.name, after, limit))
            return [ClaimedSession(name, fence) for name, fence in found]

    def assign(self, session: str, fence: int, host: str) -> None:
        """Make another live host the owner of a session."""
        with self._connections.transaction() as connection:
            row = self._cached_row(connection, session)
            if row is None or not row.last or row.fence != fence:
                known = None if row is None or not row.last else row.fence
                raise Entry(session, fence, ()).unassigned_error(known)
            if not self._hosts.is_serving(connection, host):
                raise no_host_error(session, host)
            self._set_owner(connection, row, fence + 1, host)

    def release_all(self) -> None:
        """Release every session of this host, and mark the host as draining."""
        if self._hosts.is_host:
            with self._connections.transaction() as connection:
                self._hosts.status = replace(self._hosts.status, state="draining")
                self._hosts.renew_lease(connection)
                self._release_all_claims(connection)

    def transaction(
        self, claims: Sequence[str] = (), existing: Sequence[str] = ()
    ) -> AbstractContextManager[object]:
        """Return a context manager that combines the storage's method calls within it into one transaction."""
        return self._connections.transaction()

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer."""
        with self._connections.transaction() as connection:
            row = self._cached_row(connection, session)
            if existing and (row is None or not row.last):
                return NOTHING
            row = row or self._create_row(connection, session)
            self._check_not_leased(connection, row)
            self._hosts.become_host(connection)
            before = row.owner
            self._set_owner(connection, row, row.fence + 1, self._hosts.name)
            return row.claim(before)

    def check_owner(self, session: str) -> None:
        """Raise `SessionLeased` if the session belongs to another live host."""
        with self._connections.read_snapshot() as connection:
            if (row := self._find_row(connection, session)) is not None:
                self._check_not_leased(connection, row)

    def release(self, session: str, fence: int) -> None:
        """Release the session so that other hosts can claim it."""
        with self._connections.transaction() as connection:
            row = self._cached_row(connection, session)
            if row is not None and row.fence == fence and row.owner is not None:
                self._release_claim(connection, row)

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries that need not be rejected, in one transaction."""
        encoded = [entry.records for entry in entries]
        now, outcomes, written = self._now(), list[Appended](), list[RecordRow]()
        rows, before = dict[str, SqliteRow](), list[tuple[int, IndexColumns]]()
        refused = dict[tuple[str, int], Fenced | JournalBehind]()
        try:
            with self._connections.transaction() as connection:
                place = last_place(connection)
                for entry, its_records in zip(entries, encoded, strict=True):
                    row = rows.get(entry.session) or self._cached_row(connection, entry.session)
                    if (refusal := refused.get(entry.writer) or _refusal(entry, row)) is not None:
                        outcomes.append(refused.setdefault(entry.writer, refusal))
                        continue
                    assert row is not None
                    if entry.session not in rows:
                        rows[entry.session] = row
                        before.append((row.last, row.index_columns))
                    row.apply_events(entry.events, now)
                    for record in its_records:
                        place += 1
                        stored = (
                            record if len(record) < LARGE else self._extract_blobs(connection, row, record)
                        )
                        written.append(row.append(stored, place))
                        row.size += len(record)
                    outcomes.append(row.last)
                self._write_records(connection, written, list(zip(rows.values(), before, strict=True)))
        except BaseException:
            self._rows.clear()
            raise
        return outcomes

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events after number `after`, each verified by its checksum."""
        with self._connections.read_snapshot() as connection:
            row = self._find_row(connection, session)
            if row is None:
                return []
            return decode_records(
                session, read_records(connection, row, after, JournalLocation(str(self.path))), after
            )

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        """Return the first events of a session after number `after`, each verified by its checksum."""
        with self._connections.read_snapshot() as connection:
            row = self._find_row(connection, session)
            if row is None:
                return NO_PAGE
            found = read_records(connection, row, after, JournalLocation(str(self.path)), limit)
            return decode_page(session, found, after, row.last)

    def delete(self, *sessions: str) -> None:
        """Delete logs and the blobs that only these logs refer to, and empty the write-ahead log.

        While another process is reading, the write-ahead log cannot be emptied. The next write then tries again.
        """
        with self._connections.transaction() as connection:
            for session in sessions:
                row = self._cached_row(connection, session)
                if row is not None:
                    self._check_not_leased(connection, row)
                    self._delete_session(connection, row)

    def record_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the wall-clock time, and return the updated record of the clock."""
        with self._connections.transaction() as connection:
            clock = observe(read_clock(connection), now, elapsed)
            store_clock(connection, clock)
            return clock

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        """Rewrite the file if sessions were deleted since the last rewrite, and empty the write-ahead log."""
        found = self._connections.remove_deleted(max_bytes)
        self.renew_lease()  # the rewrite may have taken longer than the lease
        return found

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        """Copy the journal to a new file. Other processes may write in the meantime."""
        self._connections.copy_journal(path, check)

    def sessions(
        self, conditions: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first."""
        with self._connections.read_snapshot() as connection:
            return list_sessions(connection, conditions, limit, after, JournalLocation(str(self.path)))

    def find(self, session: str) -> StoredSession | None:
        """Return the stored data about one session, or None if the session has no log."""
        with self._connections.read_snapshot() as connection:
            row = self._find_row(connection, session)
            return row.stored_session if row is not None and row.last else None

    # Reading and writing rows

    def _cached_row(self, connection: Connection, session: str) -> SqliteRow | None:
        """Return a session's row from the cache or the file, or None for an unknown session.

        The caller may change the row within the current transaction.
        """
        if self._connections.changed or len(self._rows) > MAX_CACHED:
            self._connections.changed = False
            self._rows.clear()
        if (row := self._rows.get(session)) is None and (
            row := self._find_row(connection, session)
        ) is not None:
            self._rows[session] = row
        return row

    def _find_row(self, connection: Connection, session: str) -> SqliteRow | None:
        """Return a session's row from the file, or None for an unknown session."""
        values = connection.execute(_ROW, (session,)).fetchone()
        if values is None:
            self._check_no_row_is_missing(connection)
            return None
        return decode_row(values, JournalLocation(str(self.path)))

    def _check_no_row_is_missing(self, connection: Connection) -> None:
        """Check that no session's row is missing. Called before a session is reported as unknown.

        The check runs only once each time the file is opened.

        Raises:
            JournalDamaged: A row is missing or corrupt.
        """
        if self._is_searched:
            return
        names = [
            decode_row(values, JournalLocation(str(self.path))).name
            for values in connection.execute(f"SELECT {COLUMNS} FROM session")  # noqa: S608
        ]
        if (
            len(names) != expected_session_count(connection, str(self.path))
            or sorted(set(names), key=str.encode) != names
        ):
            raise JournalDamaged(
                f"{self.path}: entries of sessions are missing; restore a copy, or see `actors sessions fsck`"
            )
        self._is_searched = True

    def _create_row(self, connection: Connection, session: str) -> SqliteRow:
        """Return a new row for a session that has no row. The row is not saved yet."""
        key = created_session_count(connection, str(self.path)) + 1
        set_created_session_count(connection, key)
        row = self._rows[session] = SqliteRow(session, key, highest_removed_fence(connection, str(self.path)))
        return row

    def _set_owner(self, connection: Connection, row: SqliteRow, fence: int, owner: str | None) -> None:
        """Save a session's row with a new fencing number and a new owner."""
        self._rows.pop(row.name, None)
        row.fence, row.owner = fence, owner
        connection.execute(_WRITE, row.values)

    def _check_not_leased(self, connection: Connection, row: SqliteRow) -> None:
        """Raise `SessionLeased` if the session belongs to another live host."""
        if row.owner is None or row.owner == self._hosts.name:
            return
        if (owner := self._hosts.find(connection, row.owner)) is not None:
            raise row.leased_error(owner.remaining_lease or 0.0, owner.address)

    def _end_host(self, connection: Connection) -> None:
        """Release every session that this host has claimed, and remove the host's row."""
        self._release_all_claims(connection)
        self._hosts.forget(connection, self._hosts.name)

    def _release_all_claims(self, connection: Connection) -> None:
        """Release every session that this host has claimed."""
        for values in connection.execute(_OWNED, (self._hosts.name,)).fetchall():
            row = decode_row(values, JournalLocation(str(self.path)))
            self._release_claim(connection, row)

    def _release_claim(self, connection: Connection, row: SqliteRow) -> None:
        """Release a session so that other hosts can claim it. If the session has no log, remove it."""
        if row.last:
            self._set_owner(connection, row, row.fence, None)
        else:
            self._remove_row(connection, row)

    def _delete_session(self, connection: Connection, row: SqliteRow) -> None:
        """Delete a session's records, its row, and the blobs that only this session uses."""
        uses = connection.execute("SELECT hash FROM blob_use WHERE session = ?", (row.key,)).fetchall()
        for (digest,) in uses:
            connection.execute("UPDATE blob_count SET uses = uses - 1 WHERE hash = ?", (digest,))
            if connection.execute("DELETE FROM blob_count WHERE hash = ? AND uses <= 0", (digest,)).rowcount:
                connection.execute("DELETE FROM blob WHERE hash = ?", (digest,))
        connection.execute("DELETE FROM blob_use WHERE session = ?", (row.key,))
        delete_records(connection, row)
        self._remove_row(connection, row)

    def _remove_row(self, connection: Connection, row: SqliteRow) -> None:
        """Remove the row of a session that has no records. Record its fencing number in `meta`."""
        self._rows.pop(row.name, None)
        connection.execute("DELETE FROM session WHERE name = ?", (row.name,))
        record_removal(connection, str(self.path), row.fence)
        self._connections.deleted = True

    # Writing records

    def _write_records(
        self,
        connection: Connection,
        written: Sequence[RecordRow],
        rows: Sequence[tuple[SqliteRow, tuple[int, IndexColumns]]],
    ) -> None:
        """Write records and update the rows of their sessions.

        Args:
            connection: The writing connection.
            written: The rows of the records.
            rows: The row of each session, with the session's last event number and indexed columns before the append.
        """
        connection.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)", written)
        connection.executemany("INSERT OR REPLACE INTO waypoint VALUES (?, ?, ?)", waypoints(written))
        changed = connection.executemany(
            _UPDATE_AFTER_APPEND, [(*row.values, last) for row, (last, _) in rows]
        ).rowcount
        moved = [(*row.index_columns, row.name) for row, (_, indexed) in rows if row.index_columns != indexed]
        connection.executemany(_INDEX, moved)
        if rows and changed != len(rows):
            raise JournalDamaged(
                f"{self.path}: an append did not find the entries of all its sessions, so the file is damaged; "
                "restore a copy, or see `actors sessions fsck`"
            )
        self._connections.pages += len(rows) + len(written) // 8

    def _extract_blobs(self, connection: Connection, row: SqliteRow, record: bytes) -> bytes:
        """Store a record's blobs, and return the record with references in place of the blobs."""
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


def _refusal(entry: Entry, row: SqliteRow | None) -> Fenced | JournalBehind | None:
    return entry.missing_error() if row is None else entry.refusal(row.fence, row.last)


def _resolve_path(path: str | PathLike[str]) -> Path:
    """Return the absolute path of the journal, so that later changes of the working directory have no effect.

    Raises:
        ConfigError: The path is invalid, or names a folder.
    """
    try:
        # Lock files are named after this path, so links must be resolved.
        found = Path(os.path.realpath(path))
    except FileNotFoundError:
        raise ConfigError(
            f"The journal {str(path)!r} is a relative path, but the current folder no longer exists; pass an "
            "absolute path"
        ) from None
    except ValueError:
        raise ConfigError(
            f"The journal {str(path)[:80]!a} is not a valid file name; choose another name"
        ) from None
    try:
        is_folder = S_ISDIR(os.stat(found).st_mode)
    except OSError:  # the error is raised again, and reported, when the file is opened
        return found
    if is_folder:
        raise ConfigError(f"The journal {str(path)!r} is a folder; pass the path of a file in it")
    return found
