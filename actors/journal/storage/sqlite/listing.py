"""List the sessions in the file, most recently used first.

An index finds the sessions of a tenant or of a state, ordered by the bucket of their last use (`BUCKET` seconds).
Sessions of one bucket are then sorted. So the cost of a page depends on its length, not on the number of sessions.
Titles and metadata are not indexed, so a filter for them examines the sessions one by one until the page is full.
"""

from sqlite3 import Connection

from actors.journal.storage.directory import Page, SessionFilter, StoredSession, indexed_state, usage_bucket
from actors.journal.storage.rows import JournalLocation
from actors.journal.storage.sqlite.records import COLUMNS, decode_row


def list_sessions(
    connection: Connection,
    which: SessionFilter,
    limit: int,
    after: Page | None,
    location: JournalLocation,
) -> list[StoredSession]:
    """Return the sessions that have a log; see `Storage.sessions`."""
    wanted: dict[str, object] = {"tenant": which.tenant, "state": which.state, "limit": limit}
    if which.state is not None:
        wanted["lifecycle"] = indexed_state(which.state)
    wanted |= {"title": which.folded, **{f"entry{n}": entry for n, entry in enumerate(which.entries)}}
    if after is not None:
        wanted |= {"used": -after[0], "name": after[1], "bucket": usage_bucket(-after[0])}
    found = connection.execute(query(which, after), wanted)
    return [decode_row(values, location).stored_session for values in found]


def query(which: SessionFilter, after: Page | None) -> str:
    """Return the SQL statement that lists the sessions that match a filter."""
    index, conditions = "session_used", ["bucket >= 0"]
    if which.state is not None:
        index = "session_lifecycle"
        conditions += ["lifecycle = :lifecycle", "state = :state"]
    if which.tenant is not None:
        index = "session_tenant"
        conditions.append("tenant = :tenant")
    if after is not None:
        conditions += ["bucket <= :bucket", "(used < :used OR (used = :used AND name > :name))"]
    if which.title:
        conditions.append("instr(folded, :title)")
    conditions += [f"instr(metadata, :entry{number})" for number in range(len(which.metadata))]
    return (
        f"SELECT {COLUMNS} FROM session INDEXED BY {index} WHERE {' AND '.join(conditions)} "  # noqa: S608  inserts only constants
        "ORDER BY bucket DESC, used DESC, name LIMIT :limit"
    )
