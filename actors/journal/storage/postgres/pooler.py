"""Whether a pooler stands in between that shares the server's connections among programs.

With PgBouncer in transaction mode, what one program prepares is run by another, and settings of one are in force for
others. A connection of ours must be one of the server's for as long as it lasts. Two that are used in turn show it:
where a pooler shares them, both have the same one of the server's, or one of them has several.
"""

from typing import Any

from psycopg import Connection

from actors.errors import ConfigError

LOOKS = 8


def check_direct(one: Connection[Any], other: Connection[Any], where: str) -> None:
    """See that each of two connections is one of the server's own. Nothing is set or prepared on them.

    Raises:
        ConfigError: They share them.
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
