"""Delete logs, and then remove the rows of sessions without a log, in two transactions.

The floor is the highest fencing number of all removed sessions. While a row is removed, the floor is locked, which
blocks claims of new sessions. The deletion of logs may take long, so a separate transaction deletes them first. Between
both transactions, a session has no log. If the second transaction fails, another deletion of the session, or the next
host that starts, completes the removal.
"""

from collections.abc import Mapping, Sequence

import psycopg

from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import row_checksum
from actors.journal.storage.postgres.connection import Connection, allow_long_statements
from actors.journal.storage.postgres.format import check_version
from actors.journal.storage.rows import SessionRow


def release_session(connection: Connection, session: str, fence: int) -> None:
    """Release a session so that other hosts can claim it. If the session has no log, remove it.

    Nothing changes if `fence` is not the current fencing number of the session.
    """
    if connection.execute(sql.RELEASE, (session, fence)).fetchone() == (0,):
        remove_unused_rows(connection)


def delete_if_unchanged(connection: Connection, rows: Sequence[SessionRow], bound: float, where: str) -> bool:
    """Delete the sessions of these rows. If a fencing number has changed since, delete nothing and return False.

    Args:
        connection: The connection that writes.
        rows: The rows of the sessions, as they were looked up.
        bound: Maximum seconds of a statement that deletes logs.
        where: The name of the database.
    """
    used = [row for row in rows if row.last or row.owner is not None]
    with allow_long_statements(connection, bound):
        if used and not _delete_logs(connection, used):
            check_version(connection, where)
            return False
    emptied = {row.key: row.fence for row in rows} | {row.key: row.fence + 1 for row in used}
    _remove_rows(connection, emptied)
    return True


def _delete_logs(connection: Connection, rows: Sequence[SessionRow]) -> bool:
    """Delete the logs of these rows and increment the sessions' fencing numbers.

    If a fencing number has changed since the rows were read, delete nothing and return False.
    """
    keys, fences = [row.key for row in rows], [row.fence for row in rows]
    empty = [row_checksum(SessionRow(row.name, row.key)) for row in rows]
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


def _remove_rows(connection: Connection, fences: Mapping[int, int]) -> None:
    """Remove the rows of sessions that have neither an owner nor a log.

    `fences` maps the key of each row to its fencing number. A row with a higher number now is kept, because its session
    was claimed again.
    """
    if fences and connection.execute(sql.REMOVE, (list(fences), list(fences.values()))).rowcount:
        connection.execute(sql.NOTE_DELETION)


def remove_unused_rows(connection: Connection) -> None:
    """Remove the rows of all sessions that have neither an owner nor a log."""
    _remove_rows(connection, dict[int, int](connection.execute(sql.UNUSED).fetchall()))


def describe_remaining_data(table: str, where: str) -> RemainingData:
    """Describe a table that still contains deleted rows. `where` is the name of the database."""
    reason = (
        f"the server keeps deleted rows until VACUUM FULL {table} rewrites the table; its write-ahead log and backups "
        "contain deleted rows until you delete these files"
    )
    return RemainingData(f"{where}, table {table}", reason)
