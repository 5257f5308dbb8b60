"""Create a storage from the path of a file or the `postgresql://` address of a database."""

from os import PathLike
from typing import TYPE_CHECKING

from actors.errors import ConfigError
from actors.journal.storage import Durability, Storage

if TYPE_CHECKING:
    from actors.config.settings import JournalSettings
    from actors.journal.storage.postgres.check import JournalTables

_SCHEMES = ("postgresql", "postgres")


def create_storage(
    where: str | PathLike[str], durability: Durability = "power", lease: float = 10.0
) -> Storage:
    """Return a storage for a file or a database.

    Args:
        where: A path, or an address `postgresql://...`.
        durability: The worst kind of failure that acknowledged events survive.
        lease: Seconds after which a host that has not renewed its lease counts as gone.

    Raises:
        ConfigError: `where` is neither a path nor a `postgresql://` address, the storage does not support the
            durability, or a required extra is not installed.
    """
    scheme, colon, _ = str(where).partition("://")
    if scheme in _SCHEMES and colon:
        return _create_postgres_storage(str(where), durability, lease)
    if colon:
        raise ConfigError(
            f"The journal's address begins with {scheme}://, which is not supported; use the path of a file or a "
            "postgresql:// address"
        )
    if where == ":memory:":
        raise ConfigError("The journal ':memory:' is not a file; omit the journal to keep logs in memory")
    from actors.journal.storage.sqlite import SqliteStorage  # slow to import

    return SqliteStorage(where, durability=durability, lease=lease)


def _create_postgres_storage(url: str, durability: Durability, lease: float) -> Storage:
    if durability != "power":
        raise ConfigError(
            f"A Postgres journal has durability 'power' and does not support {durability!r}; omit the durability"
        )
    try:
        from actors.journal.storage.postgres import PostgresStorage  # needs the extra `postgres`
    except ImportError as error:
        raise _missing_driver(error) from error
    return PostgresStorage(url, lease=lease)


def open_tables(url: str) -> "JournalTables":
    """Open the tables of a Postgres journal for a check.

    Raises:
        ConfigError: `url` is not a `postgresql://` address, or the extra `postgres` is not installed.
        JournalError: The tables cannot be read.
    """
    if url.partition("://")[0] not in _SCHEMES:
        raise ConfigError("The journal must be the path of a file or a postgresql:// address")
    try:
        from actors.journal.storage.postgres.check import JournalTables  # needs the extra `postgres`
    except ImportError as error:
        raise _missing_driver(error) from error
    return JournalTables(url)


def _missing_driver(error: ImportError) -> ConfigError:
    return ConfigError(f"A Postgres journal needs psycopg: pip install 'llm-actors[postgres]' ({error})")


def choose_storage(journal: str | PathLike[str] | Storage | None, settings: "JournalSettings") -> Storage:
    """Return the storage for the journal of a runtime.

    Without a storage in `journal` or the settings, logs are kept in memory.

    Args:
        journal: The storage, or its path or address. None means the storage given in the settings.
        settings: The `[journal]` table of the configuration.

    Raises:
        ConfigError: `create_storage` failed, or the table has a durability or a retention without a path or a url.
    """
    if journal is not None:
        return create_storage(journal) if isinstance(journal, str | PathLike) else journal
    if (where := settings.path or settings.url) is not None:
        return create_storage(where, settings.durability or "power", settings.lease)
    if settings.retention is not None:
        raise ConfigError(
            "[journal] retention needs a path or a url, because logs in memory end with the process"
        )
    if settings.durability not in (None, "memory"):
        raise ConfigError(f"[journal] durability = {settings.durability!r} needs a path or a url")
    from actors.journal.storage.memory import MemoryStorage  # slow to import

    return MemoryStorage()
