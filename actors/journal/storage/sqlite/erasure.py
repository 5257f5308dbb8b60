"""Find remains of deleted sessions in a journal file and in the files next to it.

SQLite overwrites deleted rows (`secure_delete`). But when it splits or joins pages, copies of rows remain in unused
parts of pages, and the write-ahead log contains older versions of pages. So a deleted session is erased in three steps:

1. The rows are deleted.
2. Later, the file is rewritten from the remaining rows (`VACUUM`).
3. The write-ahead log is moved into the file and emptied. A reader may delay this step.

`meta` contains the number of all deletions and the number at the last rewrite. If they differ, the file needs a
rewrite, even if a process was killed between two steps.
"""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from sqlite3 import Connection

from actors.journal.storage.deletion import RemainingData
from actors.journal.storage.sqlite.format import DELETIONS, REWRITTEN, read_meta, write_meta


def record_rewrite(connection: Connection) -> None:
    """Record that the file has been rewritten since the last deletion."""
    deletions = read_meta(connection, DELETIONS) or 0
    for key in (DELETIONS, REWRITTEN):
        write_meta(connection, key, deletions)


def is_rewritten(connection: Connection) -> bool:
    """Return True if the file was rewritten after the last deletion and has no free pages."""
    (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    deletions = read_meta(connection, DELETIONS)
    return not free_pages and deletions is not None and deletions == read_meta(connection, REWRITTEN)


def find_remaining_data(
    path: Path, connection: Connection, *, is_emptied: bool, reader_pids: Sequence[int]
) -> Iterator[RemainingData]:
    """Yield the files that may contain data of deleted sessions.

    Args:
        path: The journal file.
        connection: A connection to the file, while other writers are excluded.
        is_emptied: Whether the write-ahead log is empty now.
        reader_pids: Ids of the processes that are known to read the file.
    """
    log = path.with_name(f"{path.name}-wal")
    if not is_emptied:
        for place in (path, log):
            yield RemainingData(str(place), _explain_delay(reader_pids), _file_size(place), is_temporary=True)
    elif not is_rewritten(connection) or _file_size(path) != _expected_size(connection):
        reason = "unused parts of its pages may contain deleted data; rewrite the file with runtime.journal.vacuum()"
        yield RemainingData(str(path), reason, _file_size(path))
    for copy in sorted(path.parent.glob(f"{glob.escape(path.name)}-damaged-*")):
        yield RemainingData(
            str(copy),
            "this is a copy of the damaged file; delete it when it is no longer needed",
            _file_size(copy),
        )


def _explain_delay(reader_pids: Sequence[int]) -> str:
    """Return the reason why the write-ahead log could not be emptied."""
    who = f"process {' and '.join(map(str, reader_pids))}" if reader_pids else "another program"
    return f"{who} still reads the earlier state of the file; end that process, and delete again"


def _file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _expected_size(connection: Connection) -> int:
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (bytes_of_page,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages * bytes_of_page)
