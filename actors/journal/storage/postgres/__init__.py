"""Store logs in a Postgres database, which hosts on several machines may share. This needs the extra `postgres`.

The only durability is `power`: a commit is on the server's disk before it is acknowledged. With a lower durability, a
crashed server could lose events and fencing numbers that other machines already know.

- `storage.py`: the storage, with its operations
- `claims.py`: the claims of sessions by a host
- `row_cache.py`: the cached rows of claimed sessions
- `batch.py`: the parameters of the statement that writes an append
- `reading.py`: records of a log with their large values
- `removal.py`: the deletion of logs and of unused rows
- `statements.py`: the SQL statements
- `connection.py`: one connection, which is opened again if it is lost, with a limit for every wait
- `address.py`: the parts of an address, and those that may be logged
- `pooler.py`: detection of a pooler that shares connections among programs
- `clock.py`: the record of the server's clock
- `hosts.py`: the rows of hosts, and the handover of a session to another host
- `format.py`: the tables, their version, and the checks of a host before use
- `check.py`: a check of the tables for damage
- `faults.py`: the translation of Postgres's errors
"""

from actors.journal.storage.postgres.storage import PostgresStorage

__all__ = ["PostgresStorage"]
