"""Claim sessions for a host, hand them over to another host, and remove them; keep the rows of hosts.

A claim looks up the owners of the sessions, and raises the fencing number of each free session. A session is free if no
host owns it, or if the lease of its owner has expired by the server's clock. A claim succeeds only if the fencing
number has not changed since it was looked up. So if two hosts claim a session at once, one fails.

A session is deleted in two transactions. The first deletes its log, which may take long. The second removes its row and
raises the floor, the highest fencing number of all removed sessions. The second transaction must be short, because it
locks the floor, which blocks claims of new sessions. Between both transactions, the session has no log. If the second
transaction fails, another deletion of the session, or the next host that starts, completes the removal.
"""

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import psycopg
from msgspec.structs import replace

from actors.errors import JournalDamaged
from actors.journal.storage import Entry
from actors.journal.storage.clock import ObservedClock, decode_clock, encode_clock, observe
from actors.journal.storage.directory import ClaimedSession, Host, HostStatus, RemainingData, no_host_error
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import decode_row, row_checksum
from actors.journal.storage.postgres.connection import Connection, allow_long_statements
from actors.journal.storage.postgres.format import check_version
from actors.journal.storage.rows import JournalLocation, SessionRow

RELEASE_LIMIT = 1000
"""Maximum number of sessions that one statement releases: few enough that the statement ends within its time limit."""


def claimable_rows(
    connection: Connection, location: JournalLocation, host: str, sessions: Sequence[str]
) -> Iterator[SessionRow]:
    """Yield the rows of the known sessions among `sessions`, after checking that `host` may claim them.

    Raises:
        SessionLeased: A session belongs to another live host.
    """
    for *columns, seconds, address in connection.execute(sql.LOOK, (list(sessions),)).fetchall():
        row = decode_row(columns, location)
        if row.owner not in (None, host) and seconds > 0:
            raise row.leased_error(seconds, address)
        yield row


def claim_row(
    connection: Connection, location: JournalLocation, host: str, session: str, row: SessionRow | None
) -> SessionRow | None:
    """Claim a session for `host`, if its row in the database still equals `row`.

    `row` is None if the session has no row yet. Return the new row, or None if another host has changed the row.
    """
    if row is None:
        claimed = next(iter(_claim_new(connection, host, [session])), None)
    else:
        values = connection.execute(sql.CLAIM, (host, row.key, row.fence)).fetchone()
        claimed = None if values is None else decode_row(values, location)
    if claimed is None:
        check_version(connection, location.name)
    return claimed


def claim_free(
    connection: Connection,
    location: JournalLocation,
    host: str,
    sessions: Collection[str],
    existing: Collection[str],
) -> list[tuple[SessionRow, str | None]]:
    """Claim the free sessions among `sessions`, and the free sessions among `existing` that have a log.

    Sessions that another host owns, or claims at the same time, are skipped. Return (new row, previous owner) for each
    claimed session.
    """
    unknown, free = dict.fromkeys(sorted(sessions)), list[SessionRow]()
    for *columns, seconds, _ in connection.execute(sql.LOOK, ([*unknown, *existing],)).fetchall():
        unknown.pop(columns[0], None)
        with suppress(JournalDamaged):  # `claim` reports the damage to its caller
            row = decode_row(columns, location)
            is_wanted = row.last > 0 or row.name in sessions
            if is_wanted and (row.owner in (None, host) or seconds <= 0):
                free.append(row)
    new = _claim_new(connection, host, unknown)
    seen = [[row.key for row in free], [row.fence for row in free]]
    taken = connection.execute(sql.CLAIM_ALL, (host, *seen)).fetchall() if free else []
    before = {row.name: row.owner for row in free}
    claimed = new + [decode_row(values, location) for values in taken]
    return [(row, before.get(row.name)) for row in claimed]


def _claim_new(connection: Connection, host: str, sessions: Iterable[str]) -> list[SessionRow]:
    """Create rows for sessions that have none, with `host` as the owner, and return them.

    Skip sessions for which another host has created a row in the meantime.
    """
    new = {name: SessionRow(name, secrets.randbits(62), owner=host) for name in sessions}
    given = [list(new), [row.key for row in new.values()], [row_checksum(row) for row in new.values()]]
    found = connection.execute(sql.CLAIM_NEW, (host, *given)).fetchall() if new else []
    return [replace(new[name], fence=fence) for name, fence in found]


def remove_earlier_hosts(connection: Connection, name: str, status: HostStatus) -> None:
    """Remove the rows of hosts that are long gone, and of an earlier host with the same address as a new host.

    Args:
        connection: The writing connection.
        name: The name of the new host.
        status: The status of the new host.
    """
    connection.execute(sql.FORGET_OLD_HOSTS)
    if status.address:
        connection.execute(sql.REPLACE_HOST, (status.address, name))
    remove_unused_rows(connection)


def renew_lease(connection: Connection, name: str, lease: float, status: HostStatus, where: str) -> None:
    """Write the row of a host, and extend the host's lease to its full duration from now.

    Args:
        connection: The writing connection.
        name: The name of the host.
        lease: The duration of the lease, in seconds.
        status: The host's address, state and lag.
        where: The name of the database, for the error.

    Raises:
        JournalError: A newer version has migrated the tables.
    """
    row = (name, lease, status.address, status.state, status.lag)
    if not connection.execute(sql.BEAT, row).rowcount:
        check_version(connection, where)


def live_hosts(connection: Connection, *, count_sessions: bool) -> Sequence[Host]:
    """Return the live hosts, ordered by name."""
    statement = sql.COUNTED_HOSTS if count_sessions else sql.HOSTS
    return [Host(*values) for values in connection.execute(statement).fetchall()]


def owned_sessions(connection: Connection, host: str, after: str, limit: int) -> Sequence[ClaimedSession]:
    """Return the sessions that belong to a host and have a log. See `Storage.owned_sessions`."""
    found = connection.execute(sql.OWNED, (host, after, limit)).fetchall()
    return [ClaimedSession(*values) for values in found]


def assign(connection: Connection, owner: str, session: str, fence: int, host: str, where: str) -> None:
    """Make another host the owner of a session.

    Args:
        connection: The writing connection.
        owner: The name of the host that has claimed the session.
        session: The session's id.
        fence: The fencing number of the owner's claim.
        host: The name of the other host.
        where: The name of the database, for the error.

    Raises:
        Fenced: `fence` is outdated because the session was claimed again, or the session has no log.
        HostUnavailable: The other host is gone or draining.
        JournalError: A newer version has migrated the tables.
    """
    if connection.execute(sql.ASSIGN, (host, session, fence, owner)).fetchone() is not None:
        return
    check_version(connection, where)
    row = connection.execute(sql.FENCE, (session,)).fetchone()
    known = None if row is None else int(row[0])
    if known != fence:
        raise Entry(session, fence, ()).unassigned_error(known)
    raise no_host_error(session, host)


def release_page(connection: Connection, host: str, after: str) -> str | None:
    """Release the first `RELEASE_LIMIT` of the host's sessions whose names follow `after`.

    Return the last name, or None if the host has no such session.
    """
    found = connection.execute(sql.RELEASE_PAGE, (host, after, RELEASE_LIMIT, host)).fetchone()
    return None if found is None else found[0]


def end_host(connection: Connection, host: str) -> None:
    """Remove the row of a host, whose sessions were released, and the rows of sessions without a log."""
    connection.execute(sql.FORGET_HOST, (host,))
    remove_unused_rows(connection)


def release_session(connection: Connection, session: str, fence: int) -> None:
    """Release a session so that other hosts can claim it. If the session has no log, remove it.

    Nothing changes if `fence` is not the current fencing number of the session.
    """
    if connection.execute(sql.RELEASE, (session, fence)).fetchone() == (0,):
        remove_unused_rows(connection)


def delete_if_unchanged(
    connection: Connection, rows: Sequence[SessionRow], statement_timeout: float, where: str
) -> bool:
    """Delete sessions. If the fencing number of one of them has changed, delete nothing and return False.

    Args:
        connection: The writing connection.
        rows: The rows of the sessions, with the expected fencing numbers.
        statement_timeout: Maximum duration in seconds of a statement that deletes logs.
        where: The name of the database.
    """
    used = [row for row in rows if row.last or row.owner is not None]
    with allow_long_statements(connection, statement_timeout):
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


def observe_clock(connection: Connection, now: int, elapsed: int) -> ObservedClock:
    """Record the earlier of the server's time and `now`, and return the updated record of the clock.

    Args:
        connection: The writing connection.
        now: The time of this machine, in seconds since 1970.
        elapsed: Seconds since this process last called the function, by a monotonic clock; 0 in its first call.
    """
    with connection.transaction():
        connection.execute(sql.LOCK_CLOCK)
        before = decode_clock(dict[str, int](connection.execute(sql.CLOCK).fetchall()))
        clock = observe(before, min(server_time(connection), now), elapsed)
        connection.execute(sql.DROP_CLOCK)
        for note in encode_clock(clock).items():
            connection.execute(sql.NOTE_CLOCK, note)
    return clock


def server_time(connection: Connection) -> int:
    """Return the server's time, in seconds since 1970."""
    found = connection.execute(sql.NOW).fetchone()
    assert found is not None
    return int(found[0])
