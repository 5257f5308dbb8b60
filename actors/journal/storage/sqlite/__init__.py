"""Logs in one SQLite file, which several processes of a machine may share.

| module | what it does |
| --- | --- |
| `storage.py` | the storage: transactions, claims, appends, reads |
| `format.py` | the tables, their version, and the numbers in `meta` |
| `records.py` | records in the order of writing, and the way back through a log |
| `locks.py` | the locks of the operating system |
| `forks.py` | what a forked child inherits, and gives up |
| `wal.py` | whether the write-ahead log was cut, or damaged |
| `evidence.py` | a copy of a damaged write-ahead log |
| `salvage.py` | the logs of a damaged file, saved to a new journal |
| `pages.py` | the rows of a damaged file, read from its pages |
| `faults.py` | what SQLite's errors mean to a caller |
"""

from actors.journal.storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage"]
