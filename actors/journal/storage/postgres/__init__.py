"""Logs in a Postgres database, which hosts on several machines may share. It needs the extra `postgres`.

There is one level, `power`: a commit is on the server's disk before it is told. A server that crashed could otherwise
go back on what other machines were told, and on fencing numbers.

| module | what it does |
| --- | --- |
| `storage.py` | the storage: claims, appends, reads |
| `batch.py` | what one append writes, as the parameters of one statement |
| `reading.py` | records of a log with their large values |
| `statements.py` | the statements |
| `connection.py` | one connection, made again when it is lost, with an end to every wait |
| `address.py` | what an address says, and what may be told of it |
| `pooler.py` | whether a pooler shares our connections among programs |
| `format.py` | the tables, their version, and what a host checks before it uses them |
| `check.py` | what is whole in the tables, and what is not |
| `faults.py` | what Postgres's errors mean to a caller |
"""

from actors.journal.storage.postgres.storage import PostgresStorage

__all__ = ["PostgresStorage"]
