"""What is removed: logs first, and then the rows of sessions that have none.

A row is removed only while the floor is locked, for which everybody waits who claims a new session; the deletion of
logs may take long. So these are two transactions. Between them a session is as one that was never written, and if the
second does not happen, another deletion of the session, or the next host that begins, makes up for it.
"""

from collections.abc import Mapping, Sequence

import psycopg

from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import checksum
from actors.journal.storage.postgres.connection import Connection
from actors.journal.storage.rows import SessionRow


def release(connection: Connection, session: str, fence: int) -> None:
    """Let others claim a session, if it has this number; remove it if it has no log."""
    if connection.execute(sql.RELEASE, (session, fence)).fetchone() == (0,):
        remove_unused(connection)


def delete_logs(connection: Connection, rows: Sequence[SessionRow]) -> bool:
    """Delete logs, all or none, and raise the sessions' numbers by one, if they are still those of these rows."""
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
    """Remove the rows with these keys and numbers, but of sessions that somebody has claimed since."""
    if fences and connection.execute(sql.REMOVE, (list(fences), list(fences.values()))).rowcount:
        connection.execute(sql.NOTE_DELETION)


def remove_unused(connection: Connection) -> None:
    """Remove rows of sessions that nobody has and that have no log."""
    remove(connection, dict[int, int](connection.execute(sql.UNUSED).fetchall()))
