"""Store logs in one SQLite file, which several processes of a machine may share.

- `storage.py`: the storage: transactions, claims, appends, reads
- `format.py`: the tables, their version, and the numbers in `meta`
- `records.py`: records in the order of writing, and the backward links of a log
- `locks.py`: the locks of the operating system
- `forks.py`: resources that a forked child inherits and gives up
- `wal.py`: detection of a cut or damaged write-ahead log
- `evidence.py`: a copy of a damaged write-ahead log
- `salvage.py`: the logs of a damaged file, saved to a new journal
- `pages.py`: the rows of a damaged file, read from its pages
- `faults.py`: the translation of SQLite's errors
"""

from actors.journal.storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
