"""Parse a `postgresql://` address, and detect a pooler at that address.

The address may contain a password, so no error, log or repr contains it.

With PgBouncer in transaction mode, statements that one program prepares run in another program, and the settings of one
program affect others. A connection of the storage must correspond to one server connection for its entire life. The
check uses two connections alternately. A pooler is present if both connections use the same server connection, or if
one connection uses several server connections.
"""

from typing import Any

from psycopg import Connection, Error
from psycopg.conninfo import conninfo_to_dict

from actors.errors import ConfigError

_KEEPALIVES = {"keepalives_idle": "2", "keepalives_interval": "1", "keepalives_count": "3"}
"""TCP keepalive settings: a dead connection is detected after five seconds of silence."""
LOOKS = 8


def connection_parameters(url: str, patience: float, name: str, silence: float = 5.0) -> dict[str, str]:
    """Return the parameters for libpq: the parts of the address, and timeouts unless the address sets them.

    Args:
        url: The address. For missing parts, libpq uses its defaults, such as `PGPASSWORD` and `~/.pgpass`.
        patience: Seconds to wait for a connection.
        name: The connection's name, which the server shows.
        silence: Seconds after which a server that does not confirm sent data counts as lost.

    Raises:
        ConfigError: The address cannot be parsed.
    """
    try:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
        ports = [int(port) for port in parts.get("port", "").split(",") if port]
    except (Error, ValueError):
        raise ConfigError(_UNREADABLE) from None  # the invalid part may belong to a password
    if "@" in parts.get("dbname", "") or any(not 0 < port < 65536 for port in ports):
        raise ConfigError(_UNREADABLE)
    bounds = {
        "connect_timeout": str(max(2, round(min(patience, silence)))),
        "tcp_user_timeout": str(round(1000 * silence)),
        **_KEEPALIVES,
    }
    return {**bounds, **parts, "application_name": name, "client_encoding": "UTF8"}


_UNREADABLE = (
    "The postgresql:// address of the journal is invalid; its form is postgresql://USER@HOST:PORT/DATABASE, "
    "and in a password, write / @ : ? # % as %2F %40 %3A %3F %23 %25"
)


def database_label(parameters: dict[str, str]) -> str:
    """Return the label of the database for messages: its name, host and port, but neither user nor password."""
    host, port = parameters.get("host", "local"), parameters.get("port", "5432")
    return (
        f"Postgres database {parameters.get('dbname', parameters.get('user', 'default'))!r} at {host}:{port}"
    )


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
