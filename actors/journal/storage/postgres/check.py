"""Check a journal's tables for damage, in a single snapshot and without changing them."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import psycopg

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.storage import decode_records
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import decode_row
from actors.journal.storage.postgres.connection import (
    connection_parameters,
    database_label,
    translate_connect_error,
    translate_error,
)
from actors.journal.storage.postgres.format import check_tables, has_removed_fence, has_tables
from actors.journal.storage.rows import COLUMNS, Damage, JournalLocation, damage_from_error, find_losses

PATIENCE = 5.0
"""Seconds to wait for a connection."""
_ENTRIES = f"SELECT {COLUMNS} FROM actors_session WHERE name > %s ORDER BY name LIMIT 500"  # noqa: S608  inserts only constants
_BLOBS = """
SELECT hash, bytes, EXISTS (SELECT FROM actors_blob_use u WHERE u.hash = b.hash) FROM actors_blob b
WHERE hash > %s ORDER BY hash LIMIT 20
"""
_STRAY = "SELECT count(*) FROM {} t WHERE NOT EXISTS (SELECT FROM actors_session s WHERE s.key = t.session)"


class JournalTables:
    """A snapshot of a journal's tables, opened for a check. Concurrent writes are not visible.

    Args:
        url: The address of the database.

    Raises:
        ConfigError: The address is invalid.
        JournalError: The server cannot be reached, or the tables are missing or have the format of a newer version.
    """

    sessions: int
    records: int
    blobs: int

    def __init__(self, url: str) -> None:
        parameters = connection_parameters(url, PATIENCE, "actors sessions fsck")
        self.where: str = database_label(parameters)
        """The name of the database in messages, without user and password."""
        self.sessions = self.records = self.blobs = 0
        """Numbers of intact logs, records and blobs."""
        self._location = JournalLocation(self.where, "restore a backup")
        try:
            self._connection = psycopg.connect(**parameters, autocommit=True)  # type: ignore[arg-type]  # all are strings
        except psycopg.Error as error:
            raise translate_connect_error(error, self.where) from None
        try:
            self._start_snapshot()
        except psycopg.Error as error:
            self.close()
            raise translate_error(error, self.where) from None
        except BaseException:
            self.close()
            raise

    def _start_snapshot(self) -> None:
        self._connection.execute(sql.EXACT_FLOATS)
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if not has_tables(self._connection):
            raise JournalError(
                f"{self.where}: it is not a journal, because its schema has no table actors_meta; use another schema"
            )
        check_tables(self._connection, self.where)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def damage(self) -> Iterator[Damage]:
        """Check the complete journal and yield each damaged item.

        Raises:
            JournalUnavailable: The server is no longer reachable.
        """
        try:
            yield from self._check_logs()
            yield from self._check_blobs()
            if not has_removed_fence(self._connection):
                yield Damage(f"{self.where}: the row 'floor' of actors_meta is missing")
            for table in ("actors_record", "actors_blob_use"):
                ((count,),) = self._connection.execute(_STRAY.format(table)).fetchall()
                if count:
                    yield Damage(f"{self.where}: {count} rows of {table} belong to no session")
        except psycopg.Error as error:
            raise translate_error(error, self.where) from None

    def _check_logs(self) -> Iterator[Damage]:
        name = ""
        while found := self._connection.execute(_ENTRIES, (name,)).fetchall():
            for values in found:
                name = values[0]
                try:
                    log = self._verified_log(values)
                except JournalError as error:
                    yield damage_from_error(error, name)
                else:
                    yield from find_losses(name, log, self.where)

    def _verified_log(self, values: tuple[Any, ...]) -> list[LogEvent]:
        """Return the events of a session after verifying its row and its records."""
        row = decode_row(values, self._location)
        found = self._connection.execute(sql.RECORDS, (row.name, 0, None), binary=True)
        log = decode_records(row.name, row.verified_records(found, 0, self._find_blob, self._location))
        self.records += len(log)
        self.sessions += row.last > 0
        return log

    def _check_blobs(self) -> Iterator[Damage]:
        digest = b""
        while found := self._connection.execute(_BLOBS, (digest,), binary=True).fetchall():
            for digest, content, is_used in found:
                name = digest.hex()[:12]
                if sha256(content).digest() != digest:
                    yield Damage(f"{self.where}: blob {name} is corrupt")
                elif not is_used:
                    yield Damage(f"{self.where}: no session uses blob {name}")
                else:
                    self.blobs += 1

    def _find_blob(self, digest: bytes) -> bytes | None:
        found = self._connection.execute(sql.BLOBS, ([digest],), binary=True).fetchone()
        return None if found is None else found[1]
