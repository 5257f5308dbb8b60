"""The Postgres storage. Most methods are a single statement.

**Uncertain appends.** If a connection is lost during an append, its outcome is unknown. So the next writer first ends
the connection on the server and reverts its append, unless another host has claimed the session since. Then the
append is repeated, if its time is not over. From the detection of the loss until then, nothing is read; a running
append delays no reads, and the journal shows nothing of it. So an append rejected as `JournalUnavailable` is not in
the log, and an acknowledged one is there once.

**Losses.** A promoted replica may lag behind. So the cached rows survive a lost connection: an append continues from
the acknowledged end, or is rejected.
"""

import secrets
import shlex
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic, time
from typing import TypeAlias

import psycopg
from msgspec.structs import replace

from actors.core.log.events import LogEvent
from actors.core.stats.stats import StorageSizes
from actors.errors import ConfigError, Fenced, JournalBehind, JournalDamaged, JournalUnavailable
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
from actors.journal.storage.clock import ObservedClock
from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.directory import EVERY, Page, SessionFilter, StoredSession, lifecycle_of
from actors.journal.storage.hosts import host_name
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.address import database_label, parameters
from actors.journal.storage.postgres.batch import Batch, checksum, row_of
from actors.journal.storage.postgres.clock import observe_clock
from actors.journal.storage.postgres.connection import TRIES, Connection, Link, allowing, check_primary
from actors.journal.storage.postgres.faults import is_lost
from actors.journal.storage.postgres.format import check_rights, check_version, prepare
from actors.journal.storage.postgres.pooler import check_direct
from actors.journal.storage.postgres.reading import stored_records
from actors.journal.storage.postgres.removal import delete_logs, release, remove, remove_unused
from actors.journal.storage.rows import JournalPlace, SessionRow

LEASE = 10.0
PATIENCE = 5.0
BOUND = 30.0
SHORTEST = 2.0
"""Minimum seconds of silence that are tolerated: a busy machine may send nothing for as long."""
Refusal: TypeAlias = Fenced | JournalBehind
SessionEnd: TypeAlias = tuple[int, int, str | None]
"""A session's fencing number, the number of its last event, and its owner."""
CACHED = 16_384
"""Maximum number of cached rows of claimed sessions. Another host that changes a row raises its fencing number."""


class PostgresStorage:
    """Logs in a Postgres database (14 or newer), which hosts on several machines may share.

    Args:
        url: `postgresql://USER@HOST:PORT/DATABASE`. Missing parts come from the environment, as for every program
            that uses libpq: `PGPASSWORD`, `~/.pgpass`. A pooler that shares connections between transactions is not
            supported.
        lease: Seconds without a heartbeat after which a host is gone, by the server's clock.
        patience: Seconds to wait for a lost connection, and for a lock, before `JournalUnavailable`.
        clock: The wall clock, in seconds since 1970.
        bound: Most seconds of a statement that reads, or deletes much. Writing statements, and any silence of the
            server, are ended within half of the lease.
    """

    blocking = True
    durability: Durability = "power"

    def __init__(
        self,
        url: str,
        *,
        lease: float = LEASE,
        patience: float = PATIENCE,
        bound: float = BOUND,
        clock: Callable[[], float] = time,
    ) -> None:
        self._now = clock
        self.lease: float | None = lease
        self._lease, self._patience, self._bound = lease, patience, bound
        self._host = host_name()
        self._beaten: float | None = None
        self._name = f"actors {secrets.token_hex(8)}"
        silence = max(SHORTEST, lease / 2)
        said = parameters(url, patience, self._name, silence)
        self.where: str = database_label(said)
        """The database, as messages call it."""
        self._place = JournalPlace(self.where, "restore a backup")
        self._writing, self._locked = min(bound, 0.8 * silence), min(patience, 0.7 * silence)
        self._writer = Link(said, self.where, patience, silence, self._begin_writing)
        reading = {**said, "application_name": f"{self._name} reads"}
        self._reader = Link(reading, self.where, patience, silence, self._begin_reading)
        self._is_prepared = self._is_direct = False
        self._rows: dict[str, SessionRow] = {}
        self._ahead: dict[str, Claim] = {}  # claims made in advance and not requested yet
        self._doubt: Batch | None = None

    @property
    def sizes(self) -> StorageSizes:
        """Empty: the storage has no files of its own."""
        return StorageSizes()

    def open(self) -> None:
        """Create the tables if they do not exist."""
        if self._beaten is None and not self._is_prepared:
            self._take_names()
        self._writer.run(_nothing)
        self._reader.run(_nothing)

    def _take_names(self) -> None:
        """Choose names that are unique among processes, even after a fork."""
        self._host, self._name = host_name(), f"actors {secrets.token_hex(8)}"
        self._writer.rename(self._name)
        self._reader.rename(f"{self._name} reads")

    def close(self) -> None:
        """Release every session of this host and close the connections.

        An unreachable server notices it when the lease is over.
        """
        try:
            if self._beaten is not None:
                with suppress(JournalUnavailable):
                    self._writer.run(self._release_all)
        finally:
            self._rows.clear()
            self._beaten, self._is_prepared = None, False
            self._reader.close()
            self._writer.close()

    def renew_lease(self) -> None:
        """Renew this host's lease, if this is a host."""
        if self._beaten is not None:
            self._writer.run(self._renew_lease)

    @contextmanager
    def transaction(self, claims: Sequence[str] = ()) -> Generator[None]:
        """Claim in advance those of these sessions that have no owner, in two statements; change nothing else."""
        if len(claims) > 1:
            self._ahead = self._writer.run(lambda connection: self._claim_all(connection, claims))
        try:
            yield
        finally:
            self._ahead.clear()

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Make the caller the session's live writer."""
        if not existing and (claim := self._ahead.pop(session, None)) is not None:
            return claim
        return self._writer.run(lambda connection: self._claim(connection, session, existing))

    def release(self, session: str, fence: int) -> None:
        """Release the session for other hosts."""
        self._rows.pop(session, None)
        self._writer.run(lambda connection: release(connection, session, fence))

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all entries except fenced ones, in one statement."""
        encoded = [entry.records for entry in entries]
        return self._writer.run(lambda connection: self._append(connection, entries, encoded))

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events after number `after`, each verified by its checksum."""
        self._settle()
        stored = self._reader.run(lambda connection: stored_records(connection, self._place, session, after))
        return [] if stored is None else decode_records(session, stored[1], after)

    def page(self, session: str, after: int = 0, most: int = PAGE) -> LogPage:
        """Return the first events of a session after number `after`, each verified by its checksum."""
        self._settle()
        stored = self._reader.run(
            lambda connection: stored_records(connection, self._place, session, after, most)
        )
        return NO_PAGE if stored is None else decoded_page(session, stored[1], after, stored[0].last)

    def delete(self, *sessions: str) -> None:
        """Delete logs, and blobs without other references, in one transaction.

        They remain in the server's files until it has vacuumed the tables, and in its write-ahead log.
        """
        self._writer.run(lambda connection: self._delete(connection, sessions))

    def look_at_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the clock of the server, or the host's if that is behind; return how far it is trusted.

        The time of a session's use comes from its host's clock: a host that is behind must not make the session seem
        old.
        """
        return self._writer.run(lambda connection: observe_clock(connection, now, elapsed))

    def vacuum(self, most: int | None = None) -> Sequence[RemainingData]:
        """Return the tables that were not rewritten since rows were deleted: the files are the server's."""
        self._settle()
        found = self._reader.run(lambda connection: connection.execute(sql.DELETED_FROM).fetchall())
        return [remaining(table, self.where) for (table,) in found]

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        """Raise an error that names the server's own program."""
        raise ConfigError(
            f"{self.where}: a Postgres journal is backed up by the server's own means: pg_dump --format=custom "
            f"--file={shlex.quote(str(path))} --table='actors_*' DATABASE, or a base backup"
        )

    def sessions(
        self, which: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first."""
        used, name = (None, None) if after is None else (-after[0], after[1])
        wanted: dict[str, object] = {"tenant": which.tenant, "state": which.state, "limit": limit}
        wanted |= {"used": used, "name": name, "title": which.folded, "entries": list(which.entries)}
        wanted["lifecycle"] = None if which.state is None else lifecycle_of(which.state)
        statement = sql.sessions(which, after)
        self._settle()
        found = self._reader.run(lambda connection: connection.execute(statement, wanted).fetchall())
        return [row_of(values, self._place).stored_session for values in found]

    def find(self, session: str) -> StoredSession | None:
        """Return the directory's entry of a session."""
        self._settle()
        found = self._reader.run(lambda connection: connection.execute(sql.ROWS, ([session],)).fetchone())
        row = None if found is None else row_of(found, self._place)
        return row.stored_session if row is not None and row.last else None

    # Connections

    def _begin(self, connection: Connection, bound: float) -> None:
        connection.execute(sql.SETTINGS, [_milliseconds(s) for s in (bound, self._locked, self._lease / 3)])

    def _begin_reading(self, connection: Connection) -> None:
        check_primary(connection, self.where)
        self._begin(connection, self._bound)

    def _begin_writing(self, connection: Connection) -> None:
        """End the previous connection, check the tables, and revert uncertain appends."""
        self._check_direct(connection)
        self._begin(connection, self._writing)
        for (has_ended,) in connection.execute(sql.END_OTHERS, (int(500 * self._writing), self._name)):
            if not has_ended:
                raise JournalUnavailable(f"{self.where}: the server has not ended a lost connection yet")
        with allowing(connection, self._bound):
            prepare(connection, self.where)
        check_rights(connection, self.where)
        if self._doubt is not None:
            connection.execute(sql.TAKE_BACK, self._doubt.back)
            self._doubt = None
        self._is_prepared = True
        self._reader.renew()  # or it may continue at a server that was replaced

    def _check_direct(self, connection: Connection) -> None:
        """Check once, on a fresh connection, that no pooler shares the connections."""
        if self._is_direct:
            return
        with (
            suppress(JournalUnavailable),
            closing(self._reader.new_connection()) as other,
        ):  # a pooler always has an additional one
            check_direct(connection, other, self.where)
        self._is_direct = True

    def _settle(self) -> None:
        """Check before a read that the tables exist, and that no append is uncertain."""
        if self._doubt is not None or not self._is_prepared:
            self._writer.run(_nothing)

    # Hosts and claims

    def _renew_lease(self, connection: Connection) -> None:
        if not connection.execute(sql.BEAT, (self._host, self._lease)).rowcount:
            check_version(connection, self.where)
        self._beaten = monotonic()

    def _begin_host(self, connection: Connection) -> None:
        """Become a host, if this is none, and check that the lease lasts."""
        if self._beaten is None:
            connection.execute(sql.FORGET_OLD_HOSTS)
            remove_unused(connection)
        if self._beaten is None or monotonic() - self._beaten > self._lease / 3:
            self._renew_lease(connection)

    def _claim(self, connection: Connection, session: str, existing: bool) -> Claim:
        self._begin_host(connection)
        for _ in range(TRIES):
            row = self._find_row(connection, session)
            if existing and (row is None or not row.last):
                return NOTHING
            before = None if row is None else row.owner
            row = self._claim_row(connection, session, row)
            if row is not None:
                self._keep(row)
                return row.claim(before)
        raise JournalUnavailable(f"{self.where}: session {session!r}: other hosts keep claiming it")

    def _find_row(self, connection: Connection, session: str) -> SessionRow | None:
        """Return a session's row, unless it belongs to another live host."""
        return next(self._free(connection, [session]), None)

    def _free(self, connection: Connection, sessions: Sequence[str]) -> Iterator[SessionRow]:
        """Yield the rows of sessions.

        Raises:
            SessionLeased: A session belongs to another live host.
        """
        for *columns, seconds in connection.execute(sql.LOOK, (list(sessions),)).fetchall():
            row = row_of(columns, self._place)
            if row.owner not in (None, self._host) and seconds > 0:
                raise row.leased_error(seconds)
            yield row

    def _claim_all(self, connection: Connection, sessions: Iterable[str]) -> dict[str, Claim]:
        """Claim the free sessions; skip those that are owned or are being claimed."""
        self._begin_host(connection)
        unknown, free = dict.fromkeys(sorted(sessions)), list[SessionRow]()
        for *columns, seconds in connection.execute(sql.LOOK, (list(unknown),)).fetchall():
            del unknown[columns[0]]
            with suppress(JournalDamaged):  # reported to a caller that claims this session alone
                row = row_of(columns, self._place)
                if row.owner in (None, self._host) or seconds <= 0:
                    free.append(row)
        new = self._claimed_new(connection, unknown)
        seen = [[row.key for row in free], [row.fence for row in free]]
        taken = connection.execute(sql.CLAIM_ALL, (self._host, *seen)).fetchall()
        claimed = new + [row_of(values, self._place) for values in taken]
        for row in claimed:
            self._keep(row)
        before = {row.name: row.owner for row in free}
        return {row.name: row.claim(before.get(row.name)) for row in claimed}

    def _claim_row(self, connection: Connection, session: str, row: SessionRow | None) -> SessionRow | None:
        """Claim a session last seen with this row, or without one; return its row, or None if it has changed."""
        if row is None:
            claimed = next(iter(self._claimed_new(connection, [session])), None)
        else:
            values = connection.execute(sql.CLAIM, (self._host, row.key, row.fence)).fetchone()
            claimed = None if values is None else row_of(values, self._place)
        if claimed is None:
            check_version(connection, self.where)
        return claimed

    def _claimed_new(self, connection: Connection, sessions: Iterable[str]) -> list[SessionRow]:
        new = {name: SessionRow(name, secrets.randbits(62), owner=self._host) for name in sessions}
        given = [list(new), [row.key for row in new.values()], [checksum(row) for row in new.values()]]
        found = connection.execute(sql.CLAIM_NEW, (self._host, *given)).fetchall() if new else []
        return [replace(new[name], fence=fence) for name, fence in found]

    def _release_all(self, connection: Connection) -> None:
        with connection.transaction():
            connection.execute(sql.RELEASE_ALL, (self._host,))
            connection.execute(sql.FORGET_HOST, (self._host,))
        remove_unused(connection)

    def _delete(self, connection: Connection, sessions: Sequence[str]) -> None:
        for _ in range(TRIES):
            rows = list(self._free(connection, sessions))
            if self._are_deleted(connection, rows):
                for session in sessions:
                    self._rows.pop(session, None)
                return
        raise JournalUnavailable(
            f"{self.where}: sessions {', '.join(sessions)[:80]}: other hosts keep claiming them"
        )

    def _are_deleted(self, connection: Connection, rows: Sequence[SessionRow]) -> bool:
        """Delete sessions, all or none, if their numbers are still those of these rows."""
        used = [row for row in rows if row.last or row.owner is not None]
        with allowing(connection, self._bound):
            if used and not delete_logs(connection, used):
                check_version(connection, self.where)
                return False
        emptied = {row.key: row.fence for row in rows} | {row.key: row.fence + 1 for row in used}
        remove(connection, emptied)
        return True

    # Records

    def _append(
        self, connection: Connection, entries: Sequence[Entry], encoded: Sequence[Sequence[bytes]]
    ) -> Sequence[Appended]:
        rows = self._known_rows(connection, entries)
        batch, outcomes, refused = (
            Batch(self._now(), self._host),
            list[Appended](),
            dict[tuple[str, int], Refusal](),
        )
        for entry, records in zip(entries, encoded, strict=True):
            row = rows.get(entry.session)
            refusal = refused.get(entry.writer) or _refusal(entry, row, batch)
            if row is None or refusal is not None:
                outcomes.append(refused.setdefault(entry.writer, refusal or entry.missing()))
            else:
                outcomes.append(batch.take(row, entry.events, records))
        if not batch:
            return outcomes
        if left := self._write(connection, batch):
            check_version(connection, self.where)
        return [
            outcome
            if entry.session not in left or not isinstance(outcome, int)
            else _why_left(entry, rows[entry.session], left[entry.session])
            for entry, outcome in zip(entries, outcomes, strict=True)
        ]

    def _write(self, connection: Connection, batch: Batch) -> dict[str, SessionEnd | None]:
        """Write the accepted entries; return the storage's state of the rejected sessions."""
        try:
            statement = sql.APPEND_BLOBS if batch.has_blobs else sql.APPEND
            found = connection.execute(statement, batch.parameters, prepare=True).fetchall()
        except BaseException as error:
            if not isinstance(error, psycopg.Error) or is_lost(connection, error):
                self._doubt = batch
            raise
        ends = {key: ((fence, last, owner), is_written) for key, fence, last, owner, is_written in found}
        left = dict[str, SessionEnd | None]()
        for before, after in batch.changes:
            end, is_written = ends.get(before.key, (None, False))
            if is_written:
                self._keep(after)
            else:
                self._rows.pop(before.name, None)
                left[before.name] = end
        return left

    def _known_rows(self, connection: Connection, entries: Iterable[Entry]) -> dict[str, SessionRow]:
        """Return the rows of the sessions of these entries.

        A cached row is valid as long as its number is, unless an entry begins before its end: then its writer has
        read that the log went back.
        """
        rows = dict[str, SessionRow]()
        unknown = list[str]()
        for entry in entries:
            row = self._rows.get(entry.session)
            went_back = row is not None and entry.after is not None and entry.after < row.last
            if row is not None and row.fence == entry.fence and not went_back:
                rows[entry.session] = row
            else:
                unknown.append(entry.session)
        if unknown:
            for values in connection.execute(sql.ROWS, (unknown,)):
                row = row_of(values, self._place)
                rows[row.name] = row
        return rows

    def _keep(self, row: SessionRow) -> None:
        self._rows.pop(row.name, None)
        self._rows[row.name] = row
        if len(self._rows) > CACHED:
            del self._rows[next(iter(self._rows))]


def _refusal(entry: Entry, row: SessionRow | None, batch: Batch) -> Refusal | None:
    return entry.missing() if row is None else entry.refusal(row.fence, batch.last(row))


def _why_left(entry: Entry, row: SessionRow, end: SessionEnd | None) -> Refusal:
    """Return the error for an entry that was not written.

    `row` is the expected row of the session. `end` holds the session's stored fencing number, last event and owner, or
    is None if the session is missing.
    """
    if end is None:
        return entry.missing()
    fence, last, owner = end
    if fence != entry.fence:
        return entry.fenced_error(fence)
    if owner == row.owner and last < row.last:
        return entry.behind_error(last, row.last)
    return entry.unclaimed_error()  # the claim of this host was lost, and another host got the same number


def remaining(table: str, where: str) -> RemainingData:
    """Return the report on a table with deleted rows."""
    reason = (
        f"the server keeps deleted rows until the table is written anew, by VACUUM FULL {table}, and its write-ahead "
        "log and backups have them until you delete those"
    )
    return RemainingData(f"{where}, table {table}", reason)


def _nothing(_: Connection) -> None:
    """Do nothing but check the connection."""


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(1000 * seconds))}ms"
