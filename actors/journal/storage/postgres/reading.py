"""Read records of a log together with their large values, in a single snapshot."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from actors.journal.storage import PAGE_BYTES
from actors.journal.storage.blobs import referenced_blobs
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import decode_row
from actors.journal.storage.postgres.connection import Connection
from actors.journal.storage.rows import JournalLocation, SessionRow


def stored_records(
    connection: Connection, place: JournalLocation, session: str, after: int, most: int | None = None
) -> tuple[SessionRow, Iterator[bytes]] | None:
    """Return a session's row and its records after number `after`. Return None for an unknown session.

    `most` is the maximum number of records. The result may contain fewer, but at least one, because a page is also
    limited in bytes. None means all records.
    """
    with connection.transaction(), connection.pipeline():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        of_row = connection.execute(sql.ROWS, ([session],))
        of_records = connection.execute(sql.RECORDS, (session, after, most), binary=True)
        values, there = of_row.fetchone(), of_records.fetchall()
        found = there if most is None else _first_page(connection, there)
        blobs = _referenced_values(connection, found)
    if values is None:
        return None
    row = decode_row(values, place)
    until = row.last if most is None else min(row.last, after + most)
    if len(found) < len(there):
        until = found[-1][0]
    return row, row.verified_records(found, after, blobs.get, place, until)


def _referenced_values(connection: Connection, stored_rows: Iterable[Sequence[Any]]) -> dict[bytes, bytes]:
    """Return the large values to which the records in `stored_rows` refer, by hash."""
    hashes = {digest for _, _, stored in stored_rows for digest in referenced_blobs(stored)}
    if not hashes:
        return {}
    return dict[bytes, bytes](connection.execute(sql.BLOBS, (list(hashes),), binary=True).fetchall())


def _first_page(connection: Connection, stored_rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the first rows, as many as fit into a page together with their large values, but at least one."""
    referred = [referenced_blobs(stored) for _, _, stored in stored_rows]
    sizes = dict[bytes, int]()
    if hashes := {digest for digests in referred for digest in digests}:
        sizes.update(connection.execute(sql.BLOB_SIZES, (list(hashes),), binary=True).fetchall())
    size = 0
    for number, (record, digests) in enumerate(zip(stored_rows, referred, strict=True), 1):
        size += len(record[2]) + sum(sizes.get(digest, 0) for digest in digests)
        if size >= PAGE_BYTES:
            return stored_rows[:number]
    return stored_rows
