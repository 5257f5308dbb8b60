"""Cache the rows of the sessions that a storage has claimed, so that an append need not read them first.

A cached row is valid as long as its fencing number is current, because another host must raise the number before it
changes the row.
"""

from collections.abc import Iterable

from actors.journal.storage import Entry
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.batch import decode_row
from actors.journal.storage.postgres.connection import Connection
from actors.journal.storage.rows import JournalLocation, SessionRow

CACHED = 16_384
"""Maximum number of cached rows."""


class RowCache:
    """A cache of the rows of claimed sessions, by session id. When the cache is full, it drops the oldest row."""

    def __init__(self, place: JournalLocation) -> None:
        self._place = place
        self._rows: dict[str, SessionRow] = {}

    def get(self, session: str) -> SessionRow | None:
        """Return the cached row of a session, or None."""
        return self._rows.get(session)

    def add(self, row: SessionRow) -> None:
        """Cache a row, and drop the oldest row if the cache is full."""
        self._rows.pop(row.name, None)
        self._rows[row.name] = row
        if len(self._rows) > CACHED:
            del self._rows[next(iter(self._rows))]

    def drop(self, session: str) -> None:
        """Drop the row of a session, if it is cached."""
        self._rows.pop(session, None)

    def clear(self) -> None:
        """Drop all rows."""
        self._rows.clear()

    def current_rows(self, connection: Connection, entries: Iterable[Entry]) -> dict[str, SessionRow]:
        """Return the row of each entry's session, from the cache or the database.

        A cached row is used only if it has the entry's fencing number. If the entry begins before the end of the log in
        the cached row, its writer knows of a loss of events. Then the row is read again.
        """
        rows = dict[str, SessionRow]()
        unknown = list[str]()
        for entry in entries:
            row = self._rows.get(entry.session)
            went_back = row is not None and entry.after is not None and entry.after < row.last
            if row is not None and row.fence == entry.fence and not went_back:
                rows[entry.session] = row
            else:
                unknown.append(entry.session)
        if unknown:
            for values in connection.execute(sql.ROWS, (unknown,)):
                row = decode_row(values, self._place)
                rows[row.name] = row
        return rows
