"""Detect a pooler that shares the server's connections among programs.

With PgBouncer in transaction mode, statements that one program prepares run in another program, and the settings of one
program affect others. A connection of the storage must correspond to one server connection for its entire life. The
check uses two connections alternately. A pooler is present if both connections use the same server connection, or if
one connection uses several server connections.
"""

from typing import Any

from psycopg import Connection

from actors.errors import ConfigError

LOOKS = 8


def check_direct(first: Connection[Any], second: Connection[Any], where: str) -> None:
    """Check that two connections use separate server connections, and always the same ones.

    Raises:
        ConfigError: A pooler shares the server connections.
    """
    looks = [(_server_process(first), _server_process(second)) for _ in range(LOOKS)]
    ones, others = map(set, zip(*looks, strict=True))
    if len(ones) > 1 or len(others) > 1 or ones & others:
        raise ConfigError(
            f"{where}: a pooler shares connections between transactions; use its session mode "
            "(PgBouncer: pool_mode = session), or connect to the server directly"
        )


def _server_process(connection: Connection[Any]) -> int:
    ((process,),) = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchall()
    return int(process)
