"""Remove logs, and then the rows of sessions without a log.

A row is removed only while the floor is locked, which blocks claims of new sessions, and the deletion of logs may
take long. So these are two transactions. Between them a session looks as if it was never written. If the second
fails, another deletion of the session, or the next host that starts, completes it.
"""

from collections.abc import Mapping, Sequence

import psycopg

from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import checksum
from actors.journal.storage.postgres.connection import Connection
from actors.journal.storage.rows import SessionRow


def release(connection: Connection, session: str, fence: int) -> None:
    """Release a session with this number for other hosts; remove it if it has no log."""
    if connection.execute(sql.RELEASE, (session, fence)).fetchone() == (0,):
        remove_unused(connection)


def delete_logs(connection: Connection, rows: Sequence[SessionRow]) -> bool:
    """Delete logs, all or none, and increment the sessions' numbers, if they are still those of these rows."""
    keys, fences = [row.key for row in rows], [row.fence for row in rows]
    empty = [checksum(SessionRow(row.name, row.key)) for row in rows]
    with connection.transaction():
        found = connection.execute(sql.DELETE_SESSIONS, (keys, fences, empty)).rowcount
        if found != len(rows):
            raise psycopg.Rollback
        hashes = [digest for (digest,) in connection.execute(sql.LOCK_BLOBS, (keys,))]
        connection.execute(sql.DELETE_RECORDS, (keys,))
        connection.execute(sql.DELETE_USES, (keys,))
        connection.execute(sql.DELETE_BLOBS, (hashes,))
        connection.execute(sql.NOTE_DELETION)
    return found == len(rows)


def remove(connection: Connection, fences: Mapping[int, int]) -> None:
    """Remove the rows with these keys and numbers, except sessions that were claimed since."""
    if fences and connection.execute(sql.REMOVE, (list(fences), list(fences.values()))).rowcount:
        connection.execute(sql.NOTE_DELETION)


def remove_unused(connection: Connection) -> None:
    """Remove rows of sessions without owner and log."""
    remove(connection, dict[int, int](connection.execute(sql.UNUSED).fetchall()))
