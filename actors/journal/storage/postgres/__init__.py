"""Store logs in a Postgres database, which hosts on several machines may share. This needs the extra `postgres`.

The only durability is `power`: a commit is on the server's disk before it is acknowledged. With a lower durability, a
crashed server could lose events and fencing numbers that other machines already know.

- `storage.py`: the storage, with its operations
- `hosts.py`: claims of sessions, rows of hosts, handover, and the removal of sessions
- `batch.py`: the parameters of the statement that writes an append
- `reading.py`: records of a log with their large values, and the cached rows of claimed sessions
- `statements.py`: the SQL statements
- `connection.py`: one connection and its address; it is opened again if it is lost, with a limit for every wait
- `format.py`: the tables, their version, and the checks of a host before use
- `check.py`: a check of the tables for damage
"""

from actors.journal.storage.postgres.storage import PostgresStorage

__all__ = ["PostgresStorage"]
