"""A file of an older version, looked at as one of today, where it is not to be written, or is too damaged to be.

Its tables are copied to temporary ones of the connection, which have the names of today and hide its own: as far as
they can be read from one end, and then from the other.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from sqlite3 import Connection

from actors.errors import JournalDamaged
from actors.journal.storage.sqlite.faults import translated

_SESSION = """
CREATE TEMP TABLE session (
    name PRIMARY KEY, key, fence, owner, last, size, tenant, target, state, opened, used, checksum, place,
    title, folded, metadata
)
"""
_RECORD = "CREATE TEMP TABLE record (place INTEGER PRIMARY KEY, before, session, number, checksum, bytes)"
_WAYPOINT = "CREATE TEMP TABLE waypoint (session, number, place)"
_COLUMNS_1 = "name, key, fence, owner, last, size, tenant, target, state, opened, used, checksum"
_UNLABELLED = "'' AS title, '' AS folded, '' AS metadata"
_SESSIONS_1 = f"SELECT {_COLUMNS_1}, key << 32 | last, {_UNLABELLED} FROM main.session ORDER BY name"  # noqa: S608  constants
_KEYS_1 = "SELECT session FROM main.record ORDER BY session {}, number {}"
_RECORDS_1 = """
SELECT session << 32 | number, (session << 32 | number) - 1, session, number, checksum, bytes FROM main.record
WHERE session = ? ORDER BY number
"""


def _ordered(connection: Connection, path: str) -> None:
    """Version 1 kept records by session and number: both together are a place."""
    for statement in (_SESSION, _RECORD, _WAYPOINT):
        connection.execute(statement)
    _copied(connection, path, "session", _SESSIONS_1)
    keys = {key for (key,) in connection.execute("SELECT key FROM session")}
    for order in ("ASC", "DESC"):
        with suppress(JournalDamaged), translated(path):
            keys.update(key for (key,) in connection.execute(_KEYS_1.format(order, order)))
    for key in keys:
        _copied(connection, path, "record", _RECORDS_1, key)


def _without_waypoints(connection: Connection, path: str) -> None:
    """Version 2 had no waypoints, and no titles and metadata. What it kept besides is read where it is."""
    connection.execute(_WAYPOINT)
    connection.execute(f"CREATE TEMP VIEW session AS SELECT *, {_UNLABELLED} FROM main.session")  # noqa: S608  as above


def _copied(connection: Connection, path: str, table: str, query: str, *given: object) -> None:
    """Copy what a query gives into a table, from its beginning and, if that comes to an end, from the other end too."""
    for order in ("ASC", "DESC"):
        with suppress(JournalDamaged), translated(path):
            found = connection.execute(f"{query} {order}", given)
            values = ",".join("?" * len(found.description))
            connection.executemany(f"INSERT OR IGNORE INTO temp.{table} VALUES ({values})", found)  # noqa: S608
            return


OLDER: Mapping[int, Callable[[Connection, str], None]] = {1: _ordered, 2: _without_waypoints}
"""How a file of each older version is seen as one of today; in no transaction, for damage ends what one can write."""
