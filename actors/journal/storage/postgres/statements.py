"""Define the SQL statements.

Each operation is a single statement, so it is atomic and holds no lock between two messages. The exceptions are the
deletion of logs and the record of the clock.

The checksum of a session's row covers every field except the fencing number and the owner, which change independently
of the log.
"""

from typing import LiteralString

from actors.journal.storage.directory import SessionFilter
from actors.journal.storage.postgres.format import VERSION
from actors.journal.storage.rows import COLUMNS

# A literal except for the version number, which is a constant.
_IS_OURS: LiteralString = f"(SELECT value FROM actors_meta WHERE key = 'version') = {VERSION}"  # noqa: S608  # pyright: ignore[reportAssignmentType]
"""The condition that the tables have this program's version. So a program that started before a newer version migrated
the tables writes nothing. A migration locks `actors_meta` first, so no statement relies on an old version."""

SETTINGS = """
SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),
    set_config('idle_in_transaction_session_timeout', %s, false), set_config('extra_float_digits', '1', false),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
"""Sets the timeouts of a connection, makes commits durable even if the server's default is `off`, and applies
`EXACT_FLOATS`. The server ends the connection of a process that was suspended within a transaction, since its locks
would block other hosts."""

EXACT_FLOATS = "SET extra_float_digits = 1"
"""Makes the server return floats exactly, even if its default rounds them. Otherwise, the checksums of rows, which
include times, do not match."""

END_OTHERS = """
SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity
WHERE application_name = %s AND usename = current_user AND pid <> pg_backend_pid()
"""
"""Ends all other connections with a given name, and waits for their end. Each of their statements has then either been
committed, or will never be committed."""

IS_STANDBY = "SELECT pg_is_in_recovery()"

BEAT = f"""
INSERT INTO actors_host (name, until, address, state, lag)
SELECT %s, clock_timestamp() + make_interval(secs => %s), %s, %s, %s WHERE {_IS_OURS}
ON CONFLICT (name) DO UPDATE SET until = excluded.until, address = excluded.address, state = excluded.state,
    lag = excluded.lag
"""
FORGET_HOST = "DELETE FROM actors_host WHERE name = %s"
REPLACE_HOST = "DELETE FROM actors_host WHERE address = %s AND name <> %s"
"""Removes the row of an earlier host at the same address. The earlier host is gone, even if its lease has not expired.
"""
_HOSTS = """
SELECT h.name, h.address, h.state, {count}, h.lag, extract(epoch FROM h.until - clock_timestamp())::float8
FROM actors_host h WHERE h.until > clock_timestamp() ORDER BY h.name
"""
HOSTS = _HOSTS.format(count="0")
COUNTED_HOSTS = _HOSTS.format(count="(SELECT count(*) FROM actors_session s WHERE s.owner = h.name)")
FORGET_OLD_HOSTS = "DELETE FROM actors_host WHERE until < clock_timestamp() - interval '1 day'"

_COLUMNS = ", ".join(f"s.{column}" for column in COLUMNS.split(", "))
LOOK = f"""
SELECT {_COLUMNS}, coalesce(extract(epoch FROM h.until - clock_timestamp()), 0)::float8, coalesce(h.address, '')
FROM actors_session s LEFT JOIN actors_host h ON h.name = s.owner WHERE s.name = ANY(%s)
"""  # noqa: S608  inserts only constants
"""Returns the rows of sessions, each with the remaining seconds of its owner's lease. A later claim or deletion states
the fencing number of this row. If the number has changed by then, the row is looked up again."""
CLAIM = f"""
UPDATE actors_session s SET fence = fence + 1, owner = %s WHERE key = %s AND fence = %s AND {_IS_OURS}
RETURNING {COLUMNS}
"""  # noqa: S608  inserts only constants
CLAIM_NEW = f"""
WITH floor AS (SELECT value FROM actors_meta WHERE key = 'floor' FOR SHARE)
INSERT INTO actors_session ({COLUMNS})
SELECT g.name, g.key, floor.value + 1, %s, 0, 0, '', '', 'idle', 0, 0, '', '', '', g.checksum
FROM floor, unnest(%b::text[], %b::bigint[], %b::bigint[]) AS g (name, key, checksum) WHERE {_IS_OURS}
ON CONFLICT (name) DO NOTHING RETURNING name, fence
"""  # noqa: S608  inserts only constants
"""Claims new sessions with fencing numbers above the floor. The floor is locked, so no row is removed in the meantime.
A removal of rows locks the floor first too, so both statements cannot deadlock."""
CLAIM_ALL = f"""
UPDATE actors_session s SET fence = s.fence + 1, owner = %s
FROM (
    SELECT f.key FROM actors_session f JOIN unnest(%b::bigint[], %b::bigint[]) AS g (key, fence)
    ON f.key = g.key AND f.fence = g.fence FOR UPDATE OF f SKIP LOCKED
) AS free
WHERE s.key = free.key AND {_IS_OURS} RETURNING {_COLUMNS}
"""  # noqa: S608  inserts only constants
"""Claims free sessions without waiting: rows that another host has locked are skipped."""
RELEASE = f"""
UPDATE actors_session SET owner = NULL WHERE name = %s AND fence = %s AND {_IS_OURS} RETURNING last
"""  # noqa: S608  inserts only constants
OWNED = """
SELECT name, fence FROM actors_session WHERE owner = %s AND last > 0 AND name > %s ORDER BY name LIMIT %s
"""
ASSIGN = f"""
WITH other AS (
    SELECT name FROM actors_host WHERE name = %s AND state = 'serving' AND until > clock_timestamp() FOR SHARE
)
UPDATE actors_session s SET fence = fence + 1, owner = other.name FROM other
WHERE s.name = %s AND s.fence = %s AND s.last > 0 AND (s.owner IS NULL OR s.owner = %s) AND {_IS_OURS}
RETURNING s.fence
"""  # noqa: S608  inserts only constants
"""Makes another live host the owner of a session. Locks the row of that host, so that its state changes either before
or after this statement."""
FENCE = "SELECT fence FROM actors_session WHERE name = %s AND last > 0"
RELEASE_PAGE = f"""
WITH page AS (
    SELECT key, name FROM actors_session WHERE owner = %s AND name > %s ORDER BY name LIMIT %s
), released AS (
    UPDATE actors_session SET owner = NULL
    WHERE key = ANY(ARRAY(SELECT key FROM page)) AND owner IS NOT DISTINCT FROM %s AND {_IS_OURS} RETURNING name
)
SELECT max(name) FROM page
"""  # noqa: S608  inserts only constants
"""Releases some sessions of a host, in the order of their names. Returns the last name, even if other hosts have
claimed these sessions in the meantime. In one statement, the release of 233,000 sessions exceeded the limit of 4 s. `IS
NOT DISTINCT FROM` prevents a lookup of the rows by owner: Postgres chose this lookup while its statistics did not
contain the host, and one page took minutes."""

ROWS = f"SELECT {COLUMNS} FROM actors_session WHERE name = ANY(%s)"  # noqa: S608  inserts only constants

_APPEND = """
WITH given AS (
    SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::text[],
        %b::text[], %b::float8[], %b::float8[], %b::text[], %b::text[], %b::text[], %b::bigint[], %b::bool[],
        %b::bigint[])
    AS g (key, fence, before, last, size, tenant, target, state, opened, used, title, folded, metadata, checksum,
        ended, seen)
), written AS (
    UPDATE actors_session s SET last = g.last, size = g.size, tenant = g.tenant, target = g.target, state = g.state,
        opened = g.opened, used = g.used, checksum = g.checksum, owner = CASE WHEN NOT g.ended THEN s.owner END{labels}
    FROM given g WHERE s.key = g.key AND s.fence = g.fence AND s.last = g.before AND s.checksum = g.seen
        AND (s.owner IS NULL OR s.owner = %t::text) AND {ours}
    RETURNING s.key
), added AS (
    INSERT INTO actors_record SELECT r.*
    FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bytea[]) AS r (session, number, checksum, bytes)
    JOIN written w ON w.key = r.session
){blobs}
SELECT s.key, s.fence, s.last, s.owner, w.key IS NOT NULL
FROM given g JOIN actors_session s ON s.key = g.key LEFT JOIN written w ON w.key = s.key
"""
"""Appends to the sessions whose fencing number and last event are as expected, and returns for each session whether it
was written. If another host is claiming a session, the statement waits and then checks the row again. After a failover
that lost claims, two hosts may have the same fencing number. So the statement also checks the owner, and the row's
checksum, which shows that the log contains no unknown events."""

_LABELS = """, title = coalesce(g.title, s.title), folded = coalesce(g.folded, s.folded),
        metadata = coalesce(g.metadata, s.metadata)"""

_BLOBS = """, kept AS (
    INSERT INTO actors_blob SELECT b.hash, b.bytes
    FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[]) AS b (session, hash, bytes) JOIN written w ON w.key = b.session
    ON CONFLICT DO NOTHING
), used AS (
    INSERT INTO actors_blob_use SELECT b.hash, b.session
    FROM unnest(%b::bytea[], %b::bigint[]) AS b (hash, session) JOIN written w ON w.key = b.session
    ON CONFLICT DO NOTHING
)"""

TAKE_BACK = f"""
WITH back AS (
    UPDATE actors_session s SET last = g.last, size = g.size, tenant = g.tenant, target = g.target, state = g.state,
        opened = g.opened, used = g.used, title = coalesce(g.title, s.title), folded = coalesce(g.folded, s.folded),
        metadata = coalesce(g.metadata, s.metadata), checksum = g.checksum, owner = g.owner
    FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::text[],
        %b::text[], %b::float8[], %b::float8[], %b::text[], %b::text[], %b::text[], %b::bigint[], %b::text[])
    AS g (key, fence, after, last, size, tenant, target, state, opened, used, title, folded, metadata, checksum, owner)
    WHERE s.key = g.key AND s.fence = g.fence AND s.last = g.after AND {_IS_OURS}
    RETURNING s.key, s.last
)
DELETE FROM actors_record r USING back b WHERE r.session = b.key AND r.number > b.last
"""  # noqa: S608  inserts only constants
"""Reverts an append with an unknown outcome, for each session that was written and has not been claimed since."""

RECORDS = """
SELECT r.number, r.checksum, r.bytes FROM actors_record r JOIN actors_session s ON s.key = r.session
WHERE s.name = %s AND r.number > %s ORDER BY r.number LIMIT %s
"""
PAGE = f"""
SELECT {_COLUMNS}, p.numbers, p.checksums, p.records
FROM actors_session s CROSS JOIN LATERAL (
    SELECT array_agg(r.number ORDER BY r.number) AS numbers, array_agg(r.checksum ORDER BY r.number) AS checksums,
        array_agg(r.bytes ORDER BY r.number) AS records
    FROM (
        SELECT number, checksum, bytes FROM actors_record WHERE session = s.key AND number > %s ORDER BY number LIMIT %s
    ) AS r
) AS p WHERE s.name = %s
"""  # noqa: S608  inserts only constants
"""Returns a session's row and a page of its records, in one round trip. A transaction with several statements takes
five round trips."""
BLOB_SIZES = "SELECT hash, octet_length(bytes) FROM actors_blob WHERE hash = ANY(%s)"
BLOBS = "SELECT hash, bytes FROM actors_blob WHERE hash = ANY(%s)"


def append(*, labels: bool, blobs: bool) -> LiteralString:
    """Return the statement that appends to sessions.

    Args:
        labels: Whether the append changes the title or the metadata of a session. If the statement sets the metadata,
            even to the same value, Postgres computes `entries` again. If `entries` is large, Postgres then also stores
            it again, and changes every index.
        blobs: Whether the records have large values.
    """
    return _APPEND.format(labels=_LABELS if labels else "", blobs=_BLOBS if blobs else "", ours=_IS_OURS)


def sessions(session_filter: SessionFilter, after: object) -> LiteralString:
    """Return the statement that lists sessions.

    The statement contains only the conditions that the filter sets, so that Postgres can use an index. Titles are not
    indexed. Long metadata has only the entry `*` in the index, so the statement searches the text of such metadata for
    the entries of the filter.
    """
    conditions: list[LiteralString] = ["bucket >= 0"]
    if session_filter.tenant is not None:
        conditions.append("tenant = %(tenant)s")
    if session_filter.state is not None:
        conditions.append("state = %(state)s")
    if after is not None:
        conditions.append(
            "bucket <= (%(used)s::float8 / 64)::bigint AND (used < %(used)s OR (used = %(used)s AND name > %(name)s))"
        )
    if session_filter.title:
        conditions.append("strpos(folded, %(title)s) > 0")
    if session_filter.metadata:
        conditions.append(
            "(entries @> %(indexed)s::text[] OR (entries @> ARRAY['*'] "
            "AND (SELECT bool_and(strpos(metadata, e) > 0) FROM unnest(%(entries)s::text[]) AS e)))"
        )
    return (
        f"SELECT {COLUMNS} FROM actors_session WHERE {' AND '.join(conditions)} "  # noqa: S608  inserts only constants
        "ORDER BY bucket DESC, used DESC, name LIMIT %(limit)s"
    )


NOW = "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"
LOCK_CLOCK = "LOCK TABLE actors_meta IN SHARE ROW EXCLUSIVE MODE"
"""Locks the table so that hosts record the clock one after the other. Appends only read the table and do not wait."""
CLOCK = "SELECT key, value FROM actors_meta WHERE key LIKE 'clock%'"
DROP_CLOCK = f"DELETE FROM actors_meta WHERE key LIKE 'clock%' AND {_IS_OURS}"  # noqa: S608  inserts only constants
NOTE_CLOCK = f"""
INSERT INTO actors_meta SELECT %s, %s WHERE {_IS_OURS} ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""

DELETE_SESSIONS = f"""
WITH given AS (
    SELECT s.key, g.checksum FROM actors_session s
    JOIN unnest(%b::bigint[], %b::bigint[], %b::bigint[]) AS g (key, fence, checksum)
    ON s.key = g.key AND s.fence = g.fence ORDER BY s.key FOR UPDATE OF s
)
UPDATE actors_session s SET fence = fence + 1, owner = NULL, last = 0, size = 0, tenant = '', target = '',
    state = 'idle', opened = 0, used = 0, title = '', folded = '', metadata = '', checksum = g.checksum
FROM given g WHERE s.key = g.key AND {_IS_OURS}
"""  # noqa: S608  inserts only constants
"""Locks the rows in a fixed order, so that two hosts that delete the same sessions wait instead of deadlocking."""
UNUSED = "SELECT key, fence FROM actors_session WHERE bucket < 0 AND owner IS NULL LIMIT 1000"
"""Returns sessions without an owner and a log, which an incomplete deletion or release may leave."""
REMOVE = f"""
WITH given AS (
    SELECT * FROM unnest(%b::bigint[], %b::bigint[]) AS g (key, fence)
), floor AS (
    UPDATE actors_meta SET value = greatest(value, (SELECT max(fence) FROM given))
    WHERE key = 'floor' AND {_IS_OURS} RETURNING value
)
DELETE FROM actors_session s USING floor, given g
WHERE s.key = g.key AND s.fence = g.fence AND s.last = 0 AND s.owner IS NULL
"""  # noqa: S608  inserts only constants
"""Locks the floor and deletes rows. Claims of new sessions wait while the floor is locked. So the logs, whose deletion
may take long, are deleted before this statement."""
LOCK_BLOBS = """
SELECT hash FROM actors_blob WHERE hash IN (SELECT hash FROM actors_blob_use WHERE session = ANY(%s))
ORDER BY hash FOR UPDATE
"""
DELETE_RECORDS = "DELETE FROM actors_record WHERE session = ANY(%s)"
DELETE_USES = "DELETE FROM actors_blob_use WHERE session = ANY(%s)"
DELETE_BLOBS = """
DELETE FROM actors_blob b WHERE hash = ANY(%s)
    AND NOT EXISTS (SELECT FROM actors_blob_use u WHERE u.hash = b.hash)
"""
"""Deletes the locked blobs that no session uses. Each transaction that added a reference to such a blob has ended,
because locking the blob waited for that transaction."""
_TABLES = """
SELECT relname::text AS name, 'deleted:' || relname AS key, relfilenode::bigint AS file FROM pg_class
WHERE oid IN (to_regclass('actors_session'), to_regclass('actors_record'), to_regclass('actors_blob'),
    to_regclass('actors_blob_use'))
"""
"""The tables from which a deletion removes rows, each with its file. When the server rewrites a table, the table gets
another file."""
NOTE_DELETION = f"""
INSERT INTO actors_meta SELECT t.key, t.file FROM ({_TABLES}) AS t
WHERE NOT EXISTS (SELECT FROM actors_meta m WHERE m.key = t.key AND m.value = t.file) ORDER BY t.key
ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""  # noqa: S608  inserts only constants
"""Notes the files of tables with deleted rows. Usually they are already noted, so nothing is locked."""
DELETED_FROM = f"""
SELECT t.name FROM ({_TABLES}) AS t JOIN actors_meta m ON m.key = t.key AND m.value = t.file ORDER BY t.name
"""  # noqa: S608  inserts only constants
