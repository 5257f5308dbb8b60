"""Store logs in one SQLite file, which several processes on one machine may share.

- `storage.py`: the storage: transactions, claims, appends, reads
- `connection.py`: the connections, transactions and checkpoints
- `format.py`: the tables, their version, and the numbers in `meta`
- `records.py`: records in the order in which they were written, and the backward links of a log
- `listing.py`: lists of sessions
- `hosts.py`: the storage objects that are alive
- `locks.py`: the locks of the operating system
- `forks.py`: connections and locks that a forked child must not use
- `wal.py`: detection of a truncated or damaged write-ahead log
- `evidence.py`: a copy of a damaged write-ahead log
- `check.py`: a check of the file for damage
- `salvage.py`: recovery of logs from a damaged file into a new journal
- `pages.py`: rows of a damaged file, read directly from its pages
- `erasure.py`: the search for remains of deleted sessions
- `backup.py`: a copy of the file while other processes write
- `faults.py`: the translation of SQLite's errors
"""

from actors.journal.storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
