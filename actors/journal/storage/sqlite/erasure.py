"""Find remains of deleted sessions in a file and next to it.

SQLite overwrites deleted rows (`secure_delete`), but when it splits or joins pages, it leaves copies of rows in
unused parts of pages, and the write-ahead log has older versions of pages. So a deleted session is erased in three
steps: the rows are deleted; later, the file is rewritten from the remaining rows (`VACUUM`); then the log is moved
into the file and emptied, which a reader may delay.

`meta` counts the deletions, and those before the last rewrite. So a process that is killed between two steps does not
leave a file that looks clean.
"""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from sqlite3 import Connection

from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.sqlite.format import DELETIONS, REWRITTEN, read_meta, set_noted


def note_rewrite(connection: Connection) -> None:
    """Record that the file was rewritten after all deletions so far."""
    deletions = read_meta(connection, DELETIONS) or 0
    for key in (DELETIONS, REWRITTEN):
        set_noted(connection, key, deletions)


def is_rewritten(connection: Connection) -> bool:
    """Return True if the file was rewritten after the last deletion, and has no free pages."""
    (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    deletions = read_meta(connection, DELETIONS)
    return not free_pages and deletions is not None and deletions == read_meta(connection, REWRITTEN)


def remaining(
    path: Path, connection: Connection, *, is_emptied: bool, readers: Sequence[int]
) -> Iterator[RemainingData]:
    """Yield the places that may hold data of deleted sessions.

    Args:
        path: The file.
        connection: A connection to the file, while other writers are excluded.
        is_emptied: Whether the write-ahead log was just moved into the file and emptied.
        readers: Ids of the known processes that read the file.
    """
    log = path.with_name(f"{path.name}-wal")
    if not is_emptied:
        for place in (path, log):
            yield RemainingData(str(place), _delay(readers), _size(place), is_temporary=True)
    elif not is_rewritten(connection) or _size(path) != _expected_size(connection):
        reason = "unused parts of its pages may hold copies; runtime.journal.vacuum() writes it anew"
        yield RemainingData(str(path), reason, _size(path))
    for copy in sorted(path.parent.glob(f"{glob.escape(path.name)}-damaged-*")):
        yield RemainingData(
            str(copy), "a copy of the damaged file; delete it when it is not needed", _size(copy)
        )


def _delay(readers: Sequence[int]) -> str:
    who = f"process {' and '.join(map(str, readers))}" if readers else "another program"
    return f"{who} reads the file as it was before; end that, and delete again"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _expected_size(connection: Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (bytes_of_page,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages * bytes_of_page)
