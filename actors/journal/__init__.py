"""The journal: its administration, the sessions in it, and the storages that keep it.

    async with Runtime(journal=SqliteStorage("sessions.db")) as runtime:
        stored = await runtime.journal.list(state="idle")

`Runtime.journal` is a `JournalAdmin`. `Storage` is the interface that a storage implements; the other classes are the
values that its methods take and return. Names are imported when they are first used: each storage needs a driver that
the others do not.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.core.stats.stats import StorageSizes
    from actors.journal.storage import Appended, Claim, Durability, Entry, LogPage, Storage
    from actors.journal.storage.clock import ObservedClock, UnobservedTime
    from actors.journal.storage.deletion import Deletion, RemainingData
    from actors.journal.storage.directory import Page, SessionFilter, StoredSession
    from actors.journal.storage.memory import MemoryStorage
    from actors.journal.storage.postgres.storage import PostgresStorage
    from actors.journal.storage.sqlite.storage import SqliteStorage
    from actors.runtime.journal_admin import JournalAdmin

__all__ = [
    "Appended",
    "Claim",
    "Deletion",
    "Durability",
    "Entry",
    "JournalAdmin",
    "LogPage",
    "MemoryStorage",
    "ObservedClock",
    "Page",
    "PostgresStorage",
    "RemainingData",
    "SessionFilter",
    "SqliteStorage",
    "Storage",
    "StorageSizes",
    "StoredSession",
    "UnobservedTime",
]

_HOMES = {
    "core.stats.stats": ("StorageSizes",),
    "journal.storage": ("Appended", "Claim", "Durability", "Entry", "LogPage", "Storage"),
    "journal.storage.clock": ("ObservedClock", "UnobservedTime"),
    "journal.storage.deletion": ("Deletion", "RemainingData"),
    "journal.storage.directory": ("Page", "SessionFilter", "StoredSession"),
    "journal.storage.memory": ("MemoryStorage",),
    "journal.storage.postgres.storage": ("PostgresStorage",),
    "journal.storage.sqlite.storage": ("SqliteStorage",),
    "runtime.journal_admin": ("JournalAdmin",),
}
"""The public names, by the module that defines them."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"actors.{_MODULE_OF[name]}"), name)
