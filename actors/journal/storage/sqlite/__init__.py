"""Store logs in one SQLite file, which several processes on one machine may share.

- `storage.py`: the storage: transactions, claims, appends, reads
- `connection.py`: the connections, transactions and checkpoints
- `format.py`: the tables, their version, and the numbers in `meta`
- `records.py`: records in the order in which they were written, the backward links of a log, and lists of sessions
- `locks.py`: the locks of the operating system, the storage objects that are alive, and the rules for forked children
- `wal.py`: detection of a truncated or damaged write-ahead log, and its copy
- `check.py`: a check of the file for damage
- `salvage.py`: recovery of logs from a damaged file into a new journal, read directly from its pages
- `vacuum.py`: copies of the file, and the removal of all remains of deleted sessions
- `faults.py`: the translation of SQLite's errors
"""

from actors.journal.storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
