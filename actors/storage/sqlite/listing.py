"""The directory in the file: which sessions there are, those used last first."""

from sqlite3 import Connection

from actors.storage.directory import Page, StoredSession
from actors.storage.rows import JournalPlace
from actors.storage.sqlite.records import COLUMNS, row_of


def listed(
    connection: Connection, tenant: str | None, limit: int, after: Page | None, where: JournalPlace
) -> list[StoredSession]:
    """Return the sessions that have a log, as `Storage.sessions` does."""
    used, name = (0.0, "") if after is None else (-after[0], after[1])
    found = connection.execute(
        f"SELECT {COLUMNS} FROM session WHERE last > 0 AND (?1 IS NULL OR tenant = ?1) AND "  # noqa: S608  constants
        "(?2 OR used < ?3 OR (used = ?3 AND name > ?4)) ORDER BY used DESC, name LIMIT ?5",
        (tenant, after is None, used, name, limit),
    )
    return [row_of(values, where).stored for values in found]
