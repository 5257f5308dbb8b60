"""The storage that a name stands for: the path of a file, or nothing for memory."""

from pathlib import Path
from typing import TYPE_CHECKING

from actors.errors import ConfigError
from actors.storage import Level, Storage
from actors.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from actors.config.settings import JournalSettings


def storage_at(where: str | Path, level: Level = "power", lease: float = 10.0) -> Storage:
    """Return the storage of a file.

    Args:
        where: Its path.
        level: What its logs outlive.
        lease: Seconds after which a host that is not heard of is gone.

    Raises:
        ConfigError: It is no path, or the level fits no file.
    """
    if "://" in str(where):
        raise ConfigError(f"journal: {str(where).partition('://')[0]}:// is not known; name a file")
    from actors.storage.sqlite import SqliteStorage  # what it needs takes long to import

    return SqliteStorage(where, level=level, lease=lease)


def storage_for(given: str | Path | Storage | None, settings: "JournalSettings") -> Storage:
    """Return the storage that a host gives or names; else what the `[journal]` table stands for, without a path memory.

    Raises:
        ConfigError: As `storage_at`; or the table names a level and no file.
    """
    if given is not None:
        return storage_at(given) if isinstance(given, str | Path) else given
    if settings.path is not None:
        return storage_at(settings.path, settings.level or "power", settings.lease)
    if settings.level not in (None, "memory"):
        raise ConfigError(f"[journal] level = {settings.level!r} needs a path; name a file")
    return MemoryStorage()
