"""Parse a `postgresql://` address. It may contain a password, so no error, log or repr contains the address."""

from psycopg import Error
from psycopg.conninfo import conninfo_to_dict

from actors.errors import ConfigError

_KEEPALIVES = {"keepalives_idle": "2", "keepalives_interval": "1", "keepalives_count": "3"}
"""A connection whose other end is gone without a word is noticed after five seconds of silence."""


def parameters(url: str, patience: float, name: str, silence: float = 5.0) -> dict[str, str]:
    """Return the parameters for libpq: those of the address, and default timeouts.

    Args:
        url: The address. libpq takes missing parts from `PGPASSWORD`, `~/.pgpass` and the like.
        patience: Seconds to wait for a connection.
        name: The name of the connection that the server shows.
        silence: Seconds after which unconfirmed data means that the other end is gone.

    Raises:
        ConfigError: The address cannot be parsed.
    """
    try:
        said = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
        ports = [int(port) for port in said.get("port", "").split(",") if port]
    except (Error, ValueError):
        raise ConfigError(_UNREADABLE) from None  # the invalid part may belong to a password
    if "@" in said.get("dbname", "") or any(not 0 < port < 65536 for port in ports):
        raise ConfigError(_UNREADABLE)
    bounds = {
        "connect_timeout": str(max(2, round(min(patience, silence)))),
        "tcp_user_timeout": str(round(1000 * silence)),
        **_KEEPALIVES,
    }
    return {**bounds, **said, "application_name": name, "client_encoding": "UTF8"}


_UNREADABLE = (
    "journal: the postgresql:// address cannot be read; its form is postgresql://USER@HOST:PORT/DATABASE, "
    "and / @ : ? # % in a password are written %2F %40 %3A %3F %23 %25"
)


def database_label(said: dict[str, str]) -> str:
    """Return the name of the database for messages: its location, without user and password."""
    host, port = said.get("host", "local"), said.get("port", "5432")
    return f"Postgres database {said.get('dbname', said.get('user', 'default'))!r} at {host}:{port}"
