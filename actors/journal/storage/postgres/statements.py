"""The SQL statements. Each operation except the deletion of logs and the clock is a single statement, so it is atomic
and holds no lock between two messages.

A session's checksum covers the directory's data on its log, but not the fencing number and the owner, which change
without the log.
"""

from typing import LiteralString

from actors.journal.storage.directory import SessionFilter
from actors.journal.storage.postgres.format import VERSION
from actors.journal.storage.rows import COLUMNS

# a literal, but for the number in it
_IS_OURS: LiteralString = f"(SELECT value FROM actors_meta WHERE key = 'version') = {VERSION}"  # noqa: S608  # pyright: ignore[reportAssignmentType]
"""The tables are of this program's version: who began before a newer one migrated them writes nothing there. Who
migrates locks this table first, so nobody writes by what was there before."""

SETTINGS = """
SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),
    set_config('idle_in_transaction_session_timeout', %s, false),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
"""A process that is stopped in a transaction would hold others up: the server ends it. A commit is on the disk,
whatever the server's configuration takes as its default."""

END_OTHERS = """
SELECT pg_terminate_backend(pid, %s) FROM pg_stat_activity
WHERE application_name = %s AND usename = current_user AND pid <> pg_backend_pid()
"""
"""Ends the connections of a name, and waits for it: so what they were asked is done by now, or never will be."""

IS_STANDBY = "SELECT pg_is_in_recovery()"

BEAT = f"""
INSERT INTO actors_host SELECT %s, clock_timestamp() + make_interval(secs => %s) WHERE {_IS_OURS}
ON CONFLICT (name) DO UPDATE SET until = excluded.until
"""
FORGET_HOST = "DELETE FROM actors_host WHERE name = %s"
FORGET_OLD_HOSTS = "DELETE FROM actors_host WHERE until < clock_timestamp() - interval '1 day'"

_COLUMNS = ", ".join(f"s.{column}" for column in COLUMNS.split(", "))
LOOK = f"""
SELECT {_COLUMNS}, coalesce(extract(epoch FROM h.until - clock_timestamp()), 0)::float8
FROM actors_session s LEFT JOIN actors_host h ON h.name = s.owner WHERE s.name = ANY(%s)
"""  # noqa: S608  constants
"""The rows of sessions, and how long their owners' leases last. Who claims or deletes one then says which number was
seen: if it is another by then, he looks again."""
CLAIM = f"""
UPDATE actors_session s SET fence = fence + 1, owner = %s WHERE key = %s AND fence = %s AND {_IS_OURS}
RETURNING {COLUMNS}
"""  # noqa: S608  as above
CLAIM_NEW = f"""
WITH floor AS (SELECT value FROM actors_meta WHERE key = 'floor' FOR SHARE)
INSERT INTO actors_session ({COLUMNS})
SELECT g.name, g.key, floor.value + 1, %s, 0, 0, '', '', 'idle', 0, 0, '', '', '', g.checksum
FROM floor, unnest(%b::text[], %b::bigint[], %b::bigint[]) AS g (name, key, checksum) WHERE {_IS_OURS}
ON CONFLICT (name) DO NOTHING RETURNING name, fence
"""  # noqa: S608  as above
"""Numbers begin above the floor, which is read under a lock: nobody removes a row meanwhile. Who removes rows locks the
floor first too, so neither waits for the other while it holds what that needs."""
CLAIM_ALL = f"""
UPDATE actors_session s SET fence = s.fence + 1, owner = %s
FROM (
    SELECT f.key FROM actors_session f JOIN unnest(%b::bigint[], %b::bigint[]) AS g (key, fence)
    ON f.key = g.key AND f.fence = g.fence FOR UPDATE OF f SKIP LOCKED
) AS free
WHERE s.key = free.key AND {_IS_OURS} RETURNING {_COLUMNS}
"""  # noqa: S608  as above
"""Waits for nobody: what another host is at just now is left out."""
RELEASE = f"""
UPDATE actors_session SET owner = NULL WHERE name = %s AND fence = %s AND {_IS_OURS} RETURNING last
"""  # noqa: S608  as above
RELEASE_ALL = f"UPDATE actors_session SET owner = NULL WHERE owner = %s AND {_IS_OURS}"  # noqa: S608  as above

ROWS = f"SELECT {COLUMNS} FROM actors_session WHERE name = ANY(%s)"  # noqa: S608  as above

_APPEND = """
WITH given AS (
    SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::text[], %b::text[],
        %b::text[], %b::float8[], %b::float8[], %b::text[], %b::text[], %b::text[], %b::bigint[], %b::bool[],
        %b::bigint[])
    AS g (key, fence, before, last, size, tenant, target, state, opened, used, title, folded, metadata, checksum,
        ended, seen)
), written AS (
    UPDATE actors_session s SET last = g.last, size = g.size, tenant = g.tenant, target = g.target, state = g.state,
        opened = g.opened, used = g.used, title = coalesce(g.title, s.title), folded = coalesce(g.folded, s.folded),
        metadata = coalesce(g.metadata, s.metadata), checksum = g.checksum,
        owner = CASE WHEN NOT g.ended THEN s.owner END
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
"""Writes the sessions whose number and last event are as given; what it does not return as written is not. Another host
that claims one meanwhile is waited for, and then it is looked at anew. Where a failover lost claims, two hosts may have
been given the same number: so no host writes what belongs to another, nor behind events that it has not seen, though
there are as many."""

_BLOBS = """, kept AS (
    INSERT INTO actors_blob SELECT b.hash, b.bytes
    FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[]) AS b (session, hash, bytes) JOIN written w ON w.key = b.session
    ON CONFLICT DO NOTHING
), used AS (
    INSERT INTO actors_blob_use SELECT b.hash, b.session
    FROM unnest(%b::bytea[], %b::bigint[]) AS b (hash, session) JOIN written w ON w.key = b.session
    ON CONFLICT DO NOTHING
)"""
APPEND = _APPEND.format(blobs="", ours=_IS_OURS)
APPEND_BLOBS = _APPEND.format(blobs=_BLOBS, ours=_IS_OURS)

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
"""  # noqa: S608  as above
"""Undoes an append of which nobody knew whether it was done, where it was and nobody has claimed the session since."""

RECORDS = """
SELECT r.number, r.checksum, r.bytes FROM actors_record r JOIN actors_session s ON s.key = r.session
WHERE s.name = %s AND r.number > %s ORDER BY r.number LIMIT %s
"""
BLOB_SIZES = "SELECT hash, octet_length(bytes) FROM actors_blob WHERE hash = ANY(%s)"
BLOBS = "SELECT hash, bytes FROM actors_blob WHERE hash = ANY(%s)"


def sessions(which: SessionFilter, after: object) -> LiteralString:
    """Return the statement that lists sessions. It contains only the given conditions, so that an index applies.

    Titles and metadata are not indexed.
    """
    conditions: list[LiteralString] = ["bucket >= 0"]
    if which.tenant is not None:
        conditions.append("tenant = %(tenant)s")
    if which.state is not None:
        conditions.append("lifecycle = %(lifecycle)s AND state = %(state)s")
    if after is not None:
        conditions.append(
            "bucket <= (%(used)s::float8 / 64)::bigint AND (used < %(used)s OR (used = %(used)s AND name > %(name)s))"
        )
    if which.title:
        conditions.append("strpos(folded, %(title)s) > 0")
    if which.metadata:
        conditions.append("(SELECT bool_and(strpos(metadata, e) > 0) FROM unnest(%(entries)s::text[]) AS e)")
    return (
        f"SELECT {COLUMNS} FROM actors_session WHERE {' AND '.join(conditions)} "  # noqa: S608  as above
        "ORDER BY bucket DESC, used DESC, name LIMIT %(limit)s"
    )


NOW = "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"
LOCK_CLOCK = "LOCK TABLE actors_meta IN SHARE ROW EXCLUSIVE MODE"
"""Hosts note the clock one after the other; who only reads the table, as every append does, waits for nobody."""
CLOCK = "SELECT key, value FROM actors_meta WHERE key LIKE 'clock%'"
DROP_CLOCK = f"DELETE FROM actors_meta WHERE key LIKE 'clock%' AND {_IS_OURS}"  # noqa: S608  as above
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
"""  # noqa: S608  as above
"""Locks the rows in one order, so that two hosts that delete the same sessions wait for each other and do not fail."""
UNUSED = "SELECT key, fence FROM actors_session WHERE bucket < 0 AND owner IS NULL LIMIT 1000"
"""Rows of sessions that nobody has and that have no log: of a deletion or a release that did not come to its end."""
REMOVE = f"""
WITH given AS (
    SELECT * FROM unnest(%b::bigint[], %b::bigint[]) AS g (key, fence)
), floor AS (
    UPDATE actors_meta SET value = greatest(value, (SELECT max(fence) FROM given))
    WHERE key = 'floor' AND {_IS_OURS} RETURNING value
)
DELETE FROM actors_session s USING floor, given g
WHERE s.key = g.key AND s.fence = g.fence AND s.last = 0 AND s.owner IS NULL
"""  # noqa: S608  as above
"""Locks the floor before it deletes a row. It is a statement of its own, behind the deletion of the logs: that may take
long, and whoever claims a new session waits for the floor."""
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
"""Of those that are locked: who else refers to one by then has been waited for."""
_TABLES = """
SELECT relname::text AS name, 'deleted:' || relname AS key, relfilenode::bigint AS file FROM pg_class
WHERE oid IN (to_regclass('actors_session'), to_regclass('actors_record'), to_regclass('actors_blob'),
    to_regclass('actors_blob_use'))
"""
"""The tables that lose rows to a deletion. The server gives a table another file when it writes it anew."""
NOTE_DELETION = f"""
INSERT INTO actors_meta SELECT t.key, t.file FROM ({_TABLES}) AS t
WHERE NOT EXISTS (SELECT FROM actors_meta m WHERE m.key = t.key AND m.value = t.file) ORDER BY t.key
ON CONFLICT (key) DO UPDATE SET value = excluded.value
"""  # noqa: S608  constants
"""Notes the files of tables that have deleted rows; mostly they are noted already, and nobody waits for anybody."""
DELETED_FROM = f"""
SELECT t.name FROM ({_TABLES}) AS t JOIN actors_meta m ON m.key = t.key AND m.value = t.file ORDER BY t.name
"""  # noqa: S608  as above
