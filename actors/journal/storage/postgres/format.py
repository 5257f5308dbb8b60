"""Create the tables, and check the tables, their version and the rights of a host before use.

The tables are in the first schema of the connection's search path. Their names begin with `actors_`, so other programs
may use the same schema. The indexed columns of `actors_session` change when a turn begins, pauses or ends, and
otherwise at most once a minute while a log grows. With other events, Postgres rewrites the row but no index (a
heap-only tuple), and keeps large values of the row, such as long metadata, where they are. So an append sets the title
and the metadata, from which the indexed column `entries` is computed, only if they change.
"""

from typing import Any

from psycopg import Connection
from psycopg.errors import UndefinedColumn

from actors.errors import ConfigError, JournalDamaged, JournalError, JournalUnavailable

VERSION = 1
OLDEST_SERVER = 14

SCHEMA = """
CREATE TABLE actors_meta (key text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE actors_host (
    name text PRIMARY KEY, until timestamptz NOT NULL, address text NOT NULL, state text NOT NULL,
    lag double precision NOT NULL
);
CREATE TABLE actors_session (
    name text COLLATE "C" NOT NULL UNIQUE, key bigint PRIMARY KEY, fence bigint NOT NULL, owner text,
    last bigint NOT NULL, size bigint NOT NULL, tenant text NOT NULL, target text NOT NULL, state text NOT NULL,
    opened double precision NOT NULL, used double precision NOT NULL, checksum bigint NOT NULL,
    title text NOT NULL, folded text NOT NULL, metadata text NOT NULL,
    bucket bigint GENERATED ALWAYS AS (CASE WHEN last > 0 THEN (used / 64)::bigint ELSE -1 END) STORED,
    entries text[] GENERATED ALWAYS AS (
        CASE WHEN metadata = '' THEN NULL WHEN octet_length(metadata) > 2500 THEN ARRAY['*']
        ELSE string_to_array(substr(metadata, 3, greatest(length(metadata) - 4, 0)), E'\\n,\\n') END
    ) STORED
) WITH (fillfactor = 50);
CREATE INDEX ON actors_session (bucket);
CREATE INDEX ON actors_session (tenant, bucket, state);
CREATE INDEX ON actors_session (state, bucket);
CREATE INDEX ON actors_session (owner, name) WHERE owner IS NOT NULL;
CREATE INDEX ON actors_session USING gin (entries) WHERE entries IS NOT NULL;
CREATE TABLE actors_record (
    session bigint, number bigint, checksum bigint NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (session, number)
);
CREATE TABLE actors_blob (hash bytea PRIMARY KEY, bytes bytea NOT NULL);
CREATE TABLE actors_blob_use (
    hash bytea REFERENCES actors_blob, session bigint, PRIMARY KEY (session, hash)
);
CREATE INDEX ON actors_blob_use (hash);
"""
"""The statements that create the tables.

- `bucket` is a column instead of an expression in the index, because Postgres would update such an index with every
  change of `used`.
- `entries` contains the entries of the metadata, or only `*` if one of them may exceed the maximum of an index, about
  2,700 bytes. It is a column because Postgres did not use the statistics of an expression with arrays.
- `state` is indexed so that few running sessions are found among 1,000,000, which took 360 ms without the index. In
  return, the server's write-ahead log of a turn grows by a tenth.
- The index of owners contains names, which order the pages of a host's sessions.
- Because of the foreign key of `actors_blob_use`, a transaction that adds a reference to a blob and a transaction that
  deletes the blob wait for each other.
"""

_LOCK = 0x6163_7472
"""The number of the advisory lock that a host holds while it creates the tables."""


def prepare(connection: Connection[Any], where: str) -> None:
    """Create the tables if they do not exist, in one transaction, and check them.

    Raises:
        ConfigError: The server is too old, or the database does not store Unicode.
        JournalDamaged: The floor, the highest fencing number of all removed sessions, is missing.
        JournalError: Another program or a newer version of this program created the tables.
    """
    _check_server(connection, where)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        if not has_tables(connection):
            connection.execute(SCHEMA)
            connection.execute("INSERT INTO actors_meta VALUES ('version', %s), ('floor', 0)", (VERSION,))
        check_tables(connection, where)
        _check_removed_fence(connection, where)


def check_tables(connection: Connection[Any], where: str) -> None:
    """Check that this version can use the existing tables.

    Raises:
        JournalError: Another program or a newer version of this program created the tables.
    """
    version = _stored_version(connection)
    if version is None:
        raise JournalError(f"{where}: actors_meta is another program's table; use another schema")
    if version > VERSION:
        raise JournalError(_newer_format_message(version, where))


def check_version(connection: Connection[Any], where: str) -> None:
    """Check that no newer version of this program has migrated the tables in the meantime.

    The check includes the floor, the highest fencing number of all removed sessions.

    Raises:
        JournalDamaged: The floor is missing.
        JournalUnavailable: A newer version has migrated the tables. The newer program can open the sessions that are
            open here.
    """
    version = _stored_version(connection)
    if version is not None and version > VERSION:
        raise JournalUnavailable(_newer_format_message(version, where))
    _check_removed_fence(connection, where)


def _check_removed_fence(connection: Connection[Any], where: str) -> None:
    if not has_removed_fence(connection):
        raise JournalDamaged(f"{where}: the row 'floor' of actors_meta is missing; restore a backup")


def has_removed_fence(connection: Connection[Any]) -> bool:
    """Return True if the floor is stored. The fencing numbers of new sessions begin above this number."""
    return bool(connection.execute("SELECT FROM actors_meta WHERE key = 'floor'").fetchall())


def _newer_format_message(version: int, where: str) -> str:
    return (
        f"{where}: its format {version} is newer than format {VERSION} of this program; use the newer program"
    )


def check_rights(connection: Connection[Any], where: str) -> None:
    """Check that the database user has the rights that a host needs.

    Raises:
        ConfigError: A right is missing. The message contains the statement that grants the right.
        JournalUnavailable: The server is read-only, or read-only for this user.
    """
    is_read_only, user, missing, limited = _only_row(
        connection.execute(_RIGHTS, (list(_NEEDED), list(_NEEDED.values())))
    )
    if is_read_only:
        raise JournalUnavailable(
            f"{where}: it is read-only; connect to the primary server, or check default_transaction_read_only"
        )
    if missing:
        grant = f"GRANT SELECT, INSERT, UPDATE, DELETE ON {', '.join(_NEEDED)} TO {user}"
        raise ConfigError(f"{where}: this user may not use {', '.join(missing)}; the owner must run: {grant}")
    if limited:
        raise ConfigError(
            f"{where}: row security hides rows of {', '.join(limited)} from this user; run ALTER ROLE {user} "
            "BYPASSRLS, or disable row security for these tables"
        )


_NEEDED = {
    "actors_meta": "SELECT, INSERT, UPDATE, DELETE",
    "actors_host": "SELECT, INSERT, UPDATE, DELETE",
    "actors_session": "SELECT, INSERT, UPDATE, DELETE",
    "actors_record": "SELECT, INSERT, DELETE",
    "actors_blob": "SELECT, INSERT, UPDATE, DELETE",
    "actors_blob_use": "SELECT, INSERT, DELETE",
}
"""The rights that a host needs on each table."""
_RIGHTS = """
SELECT current_setting('transaction_read_only')::bool, quote_ident(current_user),
    array_agg(t.name) FILTER (WHERE t.missing), array_agg(t.name) FILTER (WHERE row_security_active(t.name))
FROM (
    SELECT n.name, bool_or(NOT has_table_privilege(n.name, trim(p))) AS missing
    FROM unnest(%s::text[], %s::text[]) AS n (name, needed), unnest(string_to_array(n.needed, ',')) AS p
    GROUP BY n.name
) AS t
"""


def _only_row(cursor: Any) -> Any:  # Any: takes a cursor, and returns the only row of its result
    (row,) = cursor.fetchall()
    return row


def _check_server(connection: Connection[Any], where: str) -> None:
    server = connection.info.server_version // 10_000
    if server < OLDEST_SERVER:
        raise ConfigError(
            f"{where}: PostgreSQL {server} is too old; version {OLDEST_SERVER} or newer is required"
        )
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise ConfigError(
            f"{where}: the database encoding is {encoding}; create a database with ENCODING 'UTF8'"
        )


def has_tables(connection: Connection[Any]) -> bool:
    """Return True if the schema has a table `actors_meta`, even if another program created the table."""
    found = connection.execute("SELECT to_regclass('actors_meta') IS NOT NULL").fetchone()
    return found is not None and bool(found[0])


def _stored_version(connection: Connection[Any]) -> int | None:
    try:
        row = connection.execute("SELECT value FROM actors_meta WHERE key = 'version'").fetchone()
    except UndefinedColumn:
        return None
    return None if row is None else int(row[0])
