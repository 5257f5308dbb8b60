"""The journal: its actor, the log of a session, readers and storages.

    runtime = Runtime(journal=SqliteStorage("sessions.db"))

The public names are imported when they are first used: each storage needs a driver that the others do not.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.journal.storage import Storage
    from actors.journal.storage.deletion import Deletion, RemainingData
    from actors.journal.storage.directory import Page, SessionFilter, StoredSession
    from actors.journal.storage.memory import MemoryStorage
    from actors.journal.storage.postgres.storage import PostgresStorage
    from actors.journal.storage.sqlite.storage import SqliteStorage

__all__ = [
    "Deletion",
    "MemoryStorage",
    "Page",
    "PostgresStorage",
    "RemainingData",
    "SessionFilter",
    "SqliteStorage",
    "Storage",
    "StoredSession",
]

_HOMES = {
    "Deletion": "deletion",
    "MemoryStorage": "memory",
    "Page": "directory",
    "PostgresStorage": "postgres.storage",
    "RemainingData": "deletion",
    "SessionFilter": "directory",
    "SqliteStorage": "sqlite.storage",
    "StoredSession": "directory",
}


def __getattr__(name: str) -> object:
    if name == "Storage":
        return import_module("actors.journal.storage").Storage
    if name in _HOMES:
        return getattr(import_module(f"actors.journal.storage.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
