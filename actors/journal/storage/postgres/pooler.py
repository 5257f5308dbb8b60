"""Detect a pooler that shares the server's connections among programs.

With PgBouncer in transaction mode, statements prepared by one program run in another, and settings of one affect
others. A connection of the storage must correspond to one server connection for its entire life. Two connections used
alternately show a pooler: both use the same server connection, or one uses several.
"""

from typing import Any

from psycopg import Connection

from actors.errors import ConfigError

LOOKS = 8


def check_direct(one: Connection[Any], other: Connection[Any], where: str) -> None:
    """Check that each of two connections is a server connection of its own. Nothing is set or prepared on them.

    Raises:
        ConfigError: The connections are shared.
    """
    looks = [(_process(one), _process(other)) for _ in range(LOOKS)]
    ones, others = map(set, zip(*looks, strict=True))
    if len(ones) > 1 or len(others) > 1 or ones & others:
        raise ConfigError(
            f"{where}: a pooler shares connections between transactions; use its session mode "
            "(PgBouncer: pool_mode = session), or name the server itself"
        )


def _process(connection: Connection[Any]) -> int:
    ((process,),) = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchall()
    return int(process)
