"""Claim sessions for a host: look up the owners of the sessions, and raise the fencing number of each free session.

A session is free if no host owns it, or if the lease of its owner has expired by the server's clock. A claim succeeds
only if the fencing number has not changed since it was looked up. So if two hosts claim a session at once, one fails.
"""

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from actors.errors import JournalDamaged
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import decode_row, row_checksum
from actors.journal.storage.postgres.connection import Connection
from actors.journal.storage.postgres.format import check_version
from actors.journal.storage.rows import JournalLocation, SessionRow


def claimable_rows(
    connection: Connection, place: JournalLocation, host: str, sessions: Sequence[str]
) -> Iterator[SessionRow]:
    """Yield the rows of the known sessions among `sessions`, after checking that `host` may claim them.

    Raises:
        SessionLeased: A session belongs to another live host.
    """
    for *columns, seconds, address in connection.execute(sql.LOOK, (list(sessions),)).fetchall():
        row = decode_row(columns, place)
        if row.owner not in (None, host) and seconds > 0:
            raise row.leased_error(seconds, address)
        yield row


def claim_row(
    connection: Connection, place: JournalLocation, host: str, session: str, row: SessionRow | None
) -> SessionRow | None:
    """Claim a session for `host`, if its row is still `row`. None means that the session has no row yet.

    Return the new row, or None if another host has changed the row.
    """
    if row is None:
        claimed = next(iter(_claim_new(connection, host, [session])), None)
    else:
        values = connection.execute(sql.CLAIM, (host, row.key, row.fence)).fetchone()
        claimed = None if values is None else decode_row(values, place)
    if claimed is None:
        check_version(connection, place.name)
    return claimed


def claim_free(
    connection: Connection,
    place: JournalLocation,
    host: str,
    sessions: Collection[str],
    existing: Collection[str],
) -> list[tuple[SessionRow, str | None]]:
    """Claim the free sessions among `sessions`. Skip those that other hosts own, or claim at the same time.

    Return (new row, previous owner) for each claimed session. A session in `existing` is claimed only if it has a log.
    """
    unknown, free = dict.fromkeys(sorted(sessions)), list[SessionRow]()
    for *columns, seconds, _ in connection.execute(sql.LOOK, ([*unknown, *existing],)).fetchall():
        unknown.pop(columns[0], None)
        with suppress(JournalDamaged):  # `claim` reports the damage to the caller of this session
            row = decode_row(columns, place)
            is_wanted = row.last > 0 or row.name in sessions
            if is_wanted and (row.owner in (None, host) or seconds <= 0):
                free.append(row)
    new = _claim_new(connection, host, unknown)
    seen = [[row.key for row in free], [row.fence for row in free]]
    taken = connection.execute(sql.CLAIM_ALL, (host, *seen)).fetchall() if free else []
    before = {row.name: row.owner for row in free}
    claimed = new + [decode_row(values, place) for values in taken]
    return [(row, before.get(row.name)) for row in claimed]


def _claim_new(connection: Connection, host: str, sessions: Iterable[str]) -> list[SessionRow]:
    """Create rows for sessions that have none, with `host` as the owner, and return them.

    Skip sessions for which another host has created a row in the meantime.
    """
    new = {name: SessionRow(name, secrets.randbits(62), owner=host) for name in sessions}
    given = [list(new), [row.key for row in new.values()], [row_checksum(row) for row in new.values()]]
    found = connection.execute(sql.CLAIM_NEW, (host, *given)).fetchall() if new else []
    return [replace(new[name], fence=fence) for name, fence in found]
