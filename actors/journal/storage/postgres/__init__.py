"""Store logs in a Postgres database, which hosts on several machines may share. It needs the extra `postgres`.

The only durability is `power`: a commit is on the server's disk before it is acknowledged. Otherwise a server that
crashed could lose events known to other machines, and fencing numbers.

- `storage.py`: the storage: claims, appends, reads
- `batch.py`: an append as the parameters of one statement
- `reading.py`: records of a log with their large values
- `statements.py`: the statements
- `connection.py`: one connection, restored when it is lost, with a limit on every wait
- `address.py`: the parts of an address, and those that may be logged
- `pooler.py`: detection of a pooler that shares connections among programs
- `format.py`: the tables, their version, and a host's checks before use
- `check.py`: a check of the tables for damage
- `faults.py`: the translation of Postgres's errors
"""

from actors.journal.storage.postgres.storage import PostgresStorage

__all__ = ["PostgresStorage"]
