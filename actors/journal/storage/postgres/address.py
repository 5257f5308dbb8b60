"""What a `postgresql://` address says. It may hold a password, so no error, log or repr holds the address."""

from psycopg import Error
from psycopg.conninfo import conninfo_to_dict

from actors.errors import ConfigError

_KEEPALIVES = {"keepalives_idle": "2", "keepalives_interval": "1", "keepalives_count": "3"}
"""A connection whose other end is gone without a word is noticed after five seconds of silence."""


def parameters(url: str, patience: float, name: str, silence: float = 5.0) -> dict[str, str]:
    """Return what libpq is told: what the address says, and bounds where it says none.

    Args:
        url: The address. What it leaves out libpq takes from `PGPASSWORD`, `~/.pgpass` and the like.
        patience: Seconds to wait for a connection.
        name: What the server shows of the connection.
        silence: Seconds after which what was sent and not confirmed says that the other end is gone.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        said = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
        ports = [int(port) for port in said.get("port", "").split(",") if port]
    except (Error, ValueError):
        raise ConfigError(_UNREADABLE) from None  # what is wrong with it may be part of a password
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


def named(said: dict[str, str]) -> str:
    """Return what messages call the database: where it is, and no user or password."""
    host, port = said.get("host", "local"), said.get("port", "5432")
    return f"Postgres database {said.get('dbname', said.get('user', 'default'))!r} at {host}:{port}"
