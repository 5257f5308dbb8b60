"""What is left of deleted sessions in a file and beside it.

SQLite overwrites deleted rows (`secure_delete`), but where it splits or joins pages, it leaves copies of rows in parts
of pages that are not used now, and the write-ahead log has older versions of pages. So nothing of a deleted session is
left after three steps: the rows are deleted; later, the file is written anew from the remaining rows (`VACUUM`); and
then all of that is moved from the log into the file, and the log is emptied, which a reader may delay.

`meta` counts the deletions, and says how many of them came before the file was last written anew. So a process that
is killed between two steps leaves no file that is thought to be clean.
"""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from sqlite3 import Connection

from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.sqlite.format import DELETIONS, REWRITTEN, noted, set_noted


def note_rewrite(connection: Connection) -> None:
    """Note that the file was written anew after all deletions so far."""
    deletions = noted(connection, DELETIONS) or 0
    for key in (DELETIONS, REWRITTEN):
        set_noted(connection, key, deletions)


def is_rewritten(connection: Connection) -> bool:
    """Return True if the file was written anew after the last deletion, and has no free pages."""
    (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    deletions = noted(connection, DELETIONS)
    return not free_pages and deletions is not None and deletions == noted(connection, REWRITTEN)


def remaining(
    path: Path, connection: Connection, *, is_emptied: bool, readers: Sequence[int]
) -> Iterator[RemainingData]:
    """Yield the places that may hold data of deleted sessions.

    Args:
        path: The file.
        connection: To the file, while nobody else writes.
        is_emptied: Whether the write-ahead log was just moved into the file, and emptied.
        readers: Ids of the processes that read the file, as far as they are known.
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
