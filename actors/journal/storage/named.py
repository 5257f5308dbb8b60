"""Create a storage from its name: the path of a file, the address of a database, or nothing for memory."""

from os import PathLike
from typing import TYPE_CHECKING

from actors.errors import ConfigError
from actors.journal.storage import Durability, Storage

if TYPE_CHECKING:
    from actors.config.settings import JournalSettings
    from actors.journal.storage.postgres.check import JournalTables

_SCHEMES = ("postgresql", "postgres")


def storage_at(where: str | PathLike[str], durability: Durability = "power", lease: float = 10.0) -> Storage:
    """Return the storage of a file or a database.

    Args:
        where: A path, or an address: `postgresql://...`.
        durability: The failure that acknowledged events survive.
        lease: Seconds without a heartbeat after which a host is considered gone.

    Raises:
        ConfigError: The name is neither, the storage does not offer the durability, or an extra is not installed.
    """
    scheme, colon, _ = str(where).partition("://")
    if scheme in _SCHEMES and colon:
        return _postgres(str(where), durability, lease)
    if colon:
        raise ConfigError(f"journal: {scheme}:// is not known; name a file, or a postgresql:// address")
    if where == ":memory:":
        raise ConfigError("journal: ':memory:' is no file; without a journal, logs are in memory")
    from actors.journal.storage.sqlite import SqliteStorage  # slow to import

    return SqliteStorage(where, durability=durability, lease=lease)


def _postgres(url: str, durability: Durability, lease: float) -> Storage:
    if durability != "power":
        raise ConfigError(f"journal: Postgres has no durability {durability!r}, only 'power'; leave it out")
    try:
        from actors.journal.storage.postgres import PostgresStorage  # as above
    except ImportError as error:
        raise _missing_driver(error) from error
    return PostgresStorage(url, lease=lease)


def tables_at(url: str) -> "JournalTables":
    """Return the tables of a Postgres journal, for a check.

    Raises:
        ConfigError: It is not an address, or an extra is not installed.
        JournalError: The tables cannot be read.
    """
    if url.partition("://")[0] not in _SCHEMES:
        raise ConfigError("journal: name a file, or a postgresql:// address")
    try:
        from actors.journal.storage.postgres.check import JournalTables  # as above
    except ImportError as error:
        raise _missing_driver(error) from error
    return JournalTables(url)


def _missing_driver(error: ImportError) -> ConfigError:
    return ConfigError(f"journal: postgresql:// needs psycopg: pip install 'llm-actors[postgres]' ({error})")


def storage_for(given: str | PathLike[str] | Storage | None, settings: "JournalSettings") -> Storage:
    """Return the storage given by a host or by name; else that of the `[journal]` table; else memory.

    Raises:
        ConfigError: As `storage_at`; or the table has a durability or a retention without a path or a url.
    """
    if given is not None:
        return storage_at(given) if isinstance(given, str | PathLike) else given
    if (where := settings.path or settings.url) is not None:
        return storage_at(where, settings.durability or "power", settings.lease)
    if settings.retention is not None:
        raise ConfigError("[journal] retention needs a path or a url: logs in memory end with the process")
    if settings.durability not in (None, "memory"):
        raise ConfigError(f"[journal] durability = {settings.durability!r} needs a path or a url")
    from actors.journal.storage.memory import MemoryStorage  # as above

    return MemoryStorage()
