"""Implement `Storage` with a Postgres database. Most methods run a single statement.

**Uncertain appends.** If a connection is lost during an append, the outcome of the append is unknown. So the next
operation that writes first ends the lost connection on the server. If no other host has claimed the session since then,
the append is reverted. The append is repeated if its time limit has not passed. No read takes place between the loss
and the repetition. While an append is running, reads do not wait, and they do not see its events. So an append rejected
as `JournalUnavailable` is not in the log, and an acknowledged append is in the log exactly once.

**Losses.** After a failover, the new server may lack acknowledged events. So the cached rows are kept when a connection
is lost. The next append then either continues from the acknowledged end of the log, or is rejected.
"""

import secrets
import shlex
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic, time
from typing import TypeVar

import psycopg
from msgspec.structs import replace

from actors.core.log.events import LogEvent
from actors.core.stats.stats import StorageSizes
from actors.errors import ConfigError, JournalUnavailable
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
from actors.journal.storage.postgres import hosts as host_rows
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import Batch, Refusal, SessionEnd, decode_row, refusal, rejection
from actors.journal.storage.postgres.connection import (
    MAX_TRIES,
    Connection,
    Link,
    allow_long_statements,
    check_direct,
    check_primary,
    connection_parameters,
    database_label,
    is_lost,
    milliseconds,
    only_connect,
)
from actors.journal.storage.postgres.format import check_rights, check_version, prepare
from actors.journal.storage.postgres.hosts import (
    claim_free,
    claim_row,
    claimable_rows,
    delete_if_unchanged,
    describe_remaining_data,
    observe_clock,
    release_session,
)
from actors.journal.storage.postgres.reading import RowCache, stored_records
from actors.journal.storage.rows import JournalLocation, SessionRow, host_name

R = TypeVar("R")

LEASE = 10.0
PATIENCE = 5.0
STATEMENT_TIMEOUT = 30.0
MIN_SILENCE = 2.0
"""A server that is silent for fewer seconds than this never counts as lost, because the machine may only be busy."""


class PostgresStorage:
    """A storage in a Postgres database (14 or newer), which hosts on several machines may share.

    Args:
        url: `postgresql://USER@HOST:PORT/DATABASE`. Missing parts come from `PGPASSWORD`, `~/.pgpass` and the like, as
            for every program that uses libpq. A pooler that shares connections between transactions is not supported.
        lease: Seconds after which a host that has not renewed its lease counts as gone, by the server's clock.
        patience: Seconds to wait for a connection or a lock before raising `JournalUnavailable`.
        clock: Returns the wall-clock time in seconds since 1970.
        statement_timeout: Maximum duration in seconds of a statement that reads or deletes logs. Other statements that
            write must end within half of the lease. A server that is silent for half of the lease counts as lost.
    """

    blocking = True
    durability: Durability = "power"
    """Acknowledged events also survive a loss of power."""

    def __init__(
        self,
        url: str,
        *,
        lease: float = LEASE,
        patience: float = PATIENCE,
        statement_timeout: float = STATEMENT_TIMEOUT,
        clock: Callable[[], float] = time,
    ) -> None:
        self._now = clock
        self.lease: float | None = lease
        self._lease, self._patience, self._statement_timeout = lease, patience, statement_timeout
        self.host: str = host_name()
        """The name of this storage as a host."""
        self._status = HostStatus()
        self._renewed_at: float | None = None
        self._releasing, self._is_closing = Lock(), False  # the lock is held while all sessions are released
        self._name = f"actors {secrets.token_hex(8)}"
        silence = max(MIN_SILENCE, lease / 2)
        parameters = connection_parameters(url, patience, self._name, silence)
        self.where: str = database_label(parameters)
        """The name of the database in messages, without user and password."""
        self._location = JournalLocation(self.where, "restore a backup")
        self._write_timeout = min(statement_timeout, 0.8 * silence)
        self._lock_timeout = min(patience, 0.7 * silence)
        self._writer = Link(parameters, self.where, patience, silence, self._prepare_writing)
        reading = {**parameters, "application_name": f"{self._name} reads"}
        self._reader = Link(reading, self.where, patience, silence, self._prepare_reading)
        self._is_prepared = self._is_direct = False
        self._rows = RowCache(self._location)
        self._ahead: dict[str, Claim] = {}  # claims made in advance and not requested yet
        self._doubt: Batch | None = None  # the append whose outcome is unknown

    @property
    def sizes(self) -> StorageSizes:
        """The sizes of the storage's files: always empty, because the files belong to the server."""
        return StorageSizes()

    def open(self) -> None:
        """Create the tables if they do not exist."""
        if self._renewed_at is None and not self._is_prepared:
            self._choose_names()
        self._writer.run(only_connect)
        self._reader.run(only_connect)

    def _choose_names(self) -> None:
        """Choose new names for the host and its connections, so that they are unique even after a fork."""
        self.host, self._name = host_name(), f"actors {secrets.token_hex(8)}"
        self._writer.set_connection_name(self._name)
        self._reader.set_connection_name(f"{self._name} reads")

    def close(self) -> None:
        """Release every session of this host and close the connections.

        If the server is unreachable, the sessions stay claimed until the lease expires. If `release_all` is running in
        another thread, wait until it has released its current page.
        """
        self._is_closing = True
        with self._releasing:
            try:
                self._end_host()
            finally:
                self._rows.clear()
                self._renewed_at, self._is_prepared, self._status = None, False, HostStatus()
                self._reader.close()
                self._writer.close()
                self._is_closing = False

    def _end_host(self) -> None:
        if self._renewed_at is not None:
            with suppress(JournalUnavailable):
                self._release_claims(closing=True)
                self._writer.run(lambda connection: host_rows.end_host(connection, self.host))

    def renew_lease(self, status: HostStatus | None = None) -> None:
        """Renew this host's lease. If the status has an address, register this storage as a host first."""
        self._status = status or self._status
        if self._renewed_at is not None:
            self._writer.run(self._renew_lease)
        elif self._status.address:
            self._writer.run(self._ensure_host)

    def hosts(self, *, count_sessions: bool = True) -> Sequence[Host]:
        """Return the live hosts of the database. The server's clock decides whether a lease has expired."""
        return self._read(partial(host_rows.live_hosts, count_sessions=count_sessions))

    def owned_sessions(self, after: str = "", limit: int = 1000) -> Sequence[ClaimedSession]:
        """Return the sessions that belong to this host and have a log."""
        return self._read(lambda connection: host_rows.owned_sessions(connection, self.host, after, limit))

    def assign(self, session: str, fence: int, host: str) -> None:
        """Make another live host the owner of a session. `fence` is the number of this host's claim."""
        self._rows.drop(session)
        self._writer.run(
            lambda connection: host_rows.assign(connection, self.host, session, fence, host, self.where)
        )

    def release_all(self) -> None:
        """Release every session of this host, and mark the host as draining."""
        with self._releasing:
            if self._renewed_at is not None:
                self._status = replace(self._status, state="draining")
                # The renewal locks the host's row, so that no session is assigned to the host afterwards.
                self._writer.run(self._renew_lease)
                self._release_claims(closing=False)

    @contextmanager
    def transaction(self, claims: Sequence[str] = (), existing: Sequence[str] = ()) -> Generator[None]:
        """Claim all free sessions with at most three statements. In the block, `claim` returns these claims.

        Other operations in the block are not combined, and use separate transactions.
        """
        if len(claims) + len(existing) > 1:
            self._ahead = self._writer.run(lambda connection: self._claim_all(connection, claims, existing))
        try:
            yield
        finally:
            self._ahead.clear()

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        """Claim a session, so that only this host may write to its log."""
        ahead = self._ahead.get(session)
        if ahead is not None:
            if existing and not ahead.last:
                return NOTHING  # this claim belongs to another caller, who creates the log
            return self._ahead.pop(session)
        return self._writer.run(lambda connection: self._claim(connection, session, existing))

    def check_owner(self, session: str) -> None:
        """Raise `SessionLeased` if the session belongs to another live host."""
        self._read(lambda connection: self._find_row(connection, session))

    def release(self, session: str, fence: int) -> None:
        """Release the session, so that other hosts can claim it."""
        self._rows.drop(session)
        self._writer.run(lambda connection: release_session(connection, session, fence))

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        """Append all valid entries in one statement. Return the outcome of each entry."""
        encoded = [entry.records for entry in entries]
        return self._writer.run(lambda connection: self._append(connection, entries, encoded))

    def read(self, session: str, after: int = 0) -> list[LogEvent]:
        """Return a session's events after number `after`, each verified by its checksum."""
        stored = self._read(lambda connection: stored_records(connection, self._location, session, after))
        return [] if stored is None else decode_records(session, stored[1], after)

    def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
        """Return the first events of a session after number `after`, each verified by its checksum."""
        stored = self._read(
            lambda connection: stored_records(connection, self._location, session, after, limit)
        )
        return NO_PAGE if stored is None else decode_page(session, stored[1], after, stored[0].last)

    def delete(self, *sessions: str) -> None:
        """Delete logs, and the blobs that only they refer to, in one transaction.

        The data remains in the server's write-ahead log, and in its files until it has vacuumed the tables.
        """
        self._writer.run(lambda connection: self._delete(connection, sessions))

    def record_clock(self, now: int, elapsed: int) -> ObservedClock:
        """Record the server's time, or `now` if that is earlier. Return the updated record of the clock.

        Hosts record the last use of a session by their own clocks. If the clock of a host is slow, the session would
        seem too old by the server's clock. So the earlier of both clocks is used.
        """
        return self._writer.run(lambda connection: observe_clock(connection, now, elapsed))

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        """Return the tables that may still contain deleted rows.

        The files belong to the server, so nothing is removed.
        """
        found = self._read(lambda connection: connection.execute(sql.DELETED_FROM).fetchall())
        return [describe_remaining_data(table, self.where) for (table,) in found]

    def backup(self, path: Path, check: Callable[[], object]) -> None:
        """Raise an error that names the backup tool of the server.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(
            f"{self.where}: a Postgres journal must be backed up with the tools of the server; run pg_dump "
            f"--format=custom --file={shlex.quote(str(path))} --table='actors_*' DATABASE, or make a base backup"
        )

    def sessions(
        self, conditions: SessionFilter = EVERY, *, limit: int = 100, after: Page | None = None
    ) -> list[StoredSession]:
        """Return the sessions that have a log, most recently used first."""
        used, name = (None, None) if after is None else (-after[0], after[1])
        wanted: dict[str, object] = {"tenant": conditions.tenant, "state": conditions.state, "limit": limit}
        wanted |= {
            "used": used,
            "name": name,
            "title": conditions.lowercase_title,
            "entries": list(conditions.entries),
        }
        wanted["indexed"] = [entry.strip("\n") for entry in conditions.entries]
        statement = sql.sessions(conditions, after)
        # The best index depends on the values, so the statement is planned with them each time.
        found = self._read(lambda connection: connection.execute(statement, wanted, prepare=False).fetchall())
        return [decode_row(values, self._location).stored_session for values in found]

    def find(self, session: str) -> StoredSession | None:
        """Return the stored data about one session, or None if the session has no log."""
        found = self._read(lambda connection: connection.execute(sql.ROWS, ([session],)).fetchone())
        row = None if found is None else decode_row(found, self._location)
        return row.stored_session if row is not None and row.last else None

    # Preparing connections

    def _configure(self, connection: Connection, timeout: float) -> None:
        """Set the timeouts of a new connection. `timeout` is the maximum duration of a statement, in seconds."""
        seconds = (timeout, self._lock_timeout, self._lease / 3)
        connection.execute(sql.SETTINGS, [*map(milliseconds, seconds)])

    def _prepare_reading(self, connection: Connection) -> None:
        """Prepare a new reading connection: reject a standby server, and set the timeouts."""
        check_primary(connection, self.where)
        self._configure(connection, self._statement_timeout)

    def _prepare_writing(self, connection: Connection) -> None:
        """Prepare a new writing connection.

        End the previous connection on the server, check the tables, and revert an uncertain append.
        """
        self._check_direct(connection)
        self._configure(connection, self._write_timeout)
        for (has_ended,) in connection.execute(sql.END_OTHERS, (int(500 * self._write_timeout), self._name)):
            if not has_ended:
                raise JournalUnavailable(
                    f"{self.where}: the server has not ended a lost connection yet; try again"
                )
        with allow_long_statements(connection, self._statement_timeout):
            prepare(connection, self.where)
        check_rights(connection, self.where)
        if self._doubt is not None:
            connection.execute(sql.TAKE_BACK, self._doubt.revert_parameters)
            self._doubt = None
        self._is_prepared = True
        self._reader.renew()  # otherwise the reader may stay connected to a server that was replaced

    def _check_direct(self, connection: Connection) -> None:
        """Check that no pooler shares the connections. This runs once per storage, on a new connection."""
        if self._is_direct:
            return
        # A pooler would always provide a second connection. So if there is none for the check, there is no pooler.
        with suppress(JournalUnavailable), closing(self._reader.new_connection()) as other:
            check_direct(connection, other, self.where)
        self._is_direct = True

    def _read(self, work: Callable[[Connection], R]) -> R:
        """Call `work` with the reading connection, once the tables exist and no append is uncertain."""
        if self._doubt is not None or not self._is_prepared:
            self._writer.run(only_connect)
        return self._reader.run(work)

    # Hosts and claims

    def _renew_lease(self, connection: Connection) -> None:
        host_rows.renew_lease(connection, self.host, self._lease, self._status, self.where)
        self._renewed_at = monotonic()

    def _ensure_host(self, connection: Connection) -> None:
        """Register this storage as a host, unless it is one. Renew its lease if a third of the lease has passed."""
        if self._renewed_at is None:
            host_rows.remove_earlier_hosts(connection, self.host, self._status)
            self._renew_lease(connection)
        else:
            self._renew_old_lease(connection)

    def _renew_old_lease(self, connection: Connection) -> None:
        """Renew this host's lease if a third of it has passed. Nothing happens if this storage is not a host."""
        if self._renewed_at is not None and monotonic() - self._renewed_at > self._lease / 3:
            self._renew_lease(connection)

    def _release_claims(self, *, closing: bool) -> None:
        """Release the sessions of this host in pages, each in its own transaction.

        If `closing` is false, keep the lease renewed meanwhile, and stop when the storage is being closed.
        """
        name: str | None = ""
        while name is not None and self._is_closing == closing:
            name = self._writer.run(partial(self._release_page, closing, name))

    def _release_page(self, closing: bool, after: str, connection: Connection) -> str | None:
        if not closing:
            self._renew_old_lease(connection)
        return host_rows.release_page(connection, self.host, after)

    def _claim(self, connection: Connection, session: str, existing: bool) -> Claim:
        self._ensure_host(connection)
        for _ in range(MAX_TRIES):
            row = self._find_row(connection, session)
            if existing and (row is None or not row.last):
                return NOTHING
            before = None if row is None else row.owner
            row = claim_row(connection, self._location, self.host, session, row)
            if row is not None:
                self._rows.add(row)
                return row.claim(before)
        raise JournalUnavailable(
            f"{self.where}: other hosts keep claiming session {session!r}; try again later"
        )

    def _find_row(self, connection: Connection, session: str) -> SessionRow | None:
        """Return a session's row, or None if the session is unknown.

        Raises:
            SessionLeased: The session belongs to another live host.
        """
        return next(claimable_rows(connection, self._location, self.host, [session]), None)

    def _claim_all(
        self, connection: Connection, sessions: Sequence[str], existing: Sequence[str]
    ) -> dict[str, Claim]:
        """Claim the free sessions among `sessions`, and the free sessions among `existing` that have a log.

        Return the claims by session id.
        """
        self._ensure_host(connection)
        claims = dict[str, Claim]()
        for row, before in claim_free(connection, self._location, self.host, sessions, existing):
            self._rows.add(row)
            claims[row.name] = row.claim(before)
        return claims

    def _delete(self, connection: Connection, sessions: Sequence[str]) -> None:
        for _ in range(MAX_TRIES):
            rows = list(claimable_rows(connection, self._location, self.host, sessions))
            if delete_if_unchanged(connection, rows, self._statement_timeout, self.where):
                for session in sessions:
                    self._rows.drop(session)
                return
        raise JournalUnavailable(
            f"{self.where}: other hosts keep claiming the sessions {', '.join(sessions)[:80]}; try again later"
        )

    # Writing records

    def _append(
        self, connection: Connection, entries: Sequence[Entry], encoded: Sequence[Sequence[bytes]]
    ) -> Sequence[Appended]:
        """Write the entries that are valid for the known rows. Return the outcome of each entry.

        `encoded` contains the records of each entry.
        """
        rows = self._rows.current_rows(connection, entries)
        batch, outcomes = Batch(self._now(), self.host), list[Appended]()
        refused = dict[tuple[str, int], Refusal]()
        for entry, records in zip(entries, encoded, strict=True):
            row = rows.get(entry.session)
            rejected = refused.get(entry.writer) or refusal(entry, row, batch)
            if row is None or rejected is not None:
                outcomes.append(refused.setdefault(entry.writer, rejected or entry.missing_error()))
            else:
                outcomes.append(batch.add_events(row, entry.events, records))
        if not batch:
            return outcomes
        if left := self._write_batch(connection, batch):
            check_version(connection, self.where)
        return [
            outcome
            if entry.session not in left or not isinstance(outcome, int)
            else rejection(entry, rows[entry.session], left[entry.session])
            for entry, outcome in zip(entries, outcomes, strict=True)
        ]

    def _write_batch(self, connection: Connection, batch: Batch) -> dict[str, SessionEnd | None]:
        """Write a batch. Return the sessions that were not written, by id, with the end of their logs in the database.

        The value is None if the database does not contain the session.
        """
        try:
            statement = sql.append(labels=batch.changes_labels, blobs=batch.has_blobs)
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
                self._rows.add(after)
            else:
                self._rows.drop(before.name)
                left[before.name] = end
        return left
