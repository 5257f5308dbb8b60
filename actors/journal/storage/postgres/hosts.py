"""Read and write the rows of hosts, list the sessions of a host, and hand a session over to another host."""

from collections.abc import Sequence

from actors.journal.storage import Entry
from actors.journal.storage.hosts import ClaimedSession, Host, HostStatus, no_host_error
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.connection import Connection
from actors.journal.storage.postgres.format import check_version
from actors.journal.storage.postgres.removal import remove_unused_rows

RELEASED = 1000
"""Sessions that one statement releases: few enough that the statement ends within its time limit."""


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
    """Release the first `RELEASED` of the host's sessions whose names follow `after`.

    Return the last name, or None if the host has no such session.
    """
    found = connection.execute(sql.RELEASE_PAGE, (host, after, RELEASED, host)).fetchone()
    return None if found is None else found[0]


def end_host(connection: Connection, host: str) -> None:
    """Remove the row of a host, whose sessions were released, and the rows of sessions without a log."""
    connection.execute(sql.FORGET_HOST, (host,))
    remove_unused_rows(connection)
