"""Administer a runtime's journal, and store its logs in memory, in an SQLite file or in PostgreSQL.

    async with Runtime(journal=SqliteStorage("sessions.db")) as runtime:
        stored = await runtime.journal.list(state="idle")

`Runtime.journal` is a `JournalAdmin`. `Storage` is the interface that each storage implements; the other classes are
arguments and results of its methods. Each name is imported when it is first used, so a program imports only the
database driver that it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.core.stats.stats import StorageSizes
    from actors.journal.storage import Appended, Claim, Durability, Entry, LogPage, Storage
    from actors.journal.storage.clock import ObservedClock, UnobservedTime
    from actors.journal.storage.directory import (
        ClaimedSession,
        Deletion,
        Host,
        HostStatus,
        Movement,
        Page,
        RemainingData,
        SessionFilter,
        StoredSession,
    )
    from actors.journal.storage.memory import MemoryStorage
    from actors.journal.storage.postgres.storage import PostgresStorage
    from actors.journal.storage.sqlite.storage import SqliteStorage
    from actors.runtime.journal_admin import JournalAdmin

__all__ = [
    "Appended",
    "Claim",
    "ClaimedSession",
    "Deletion",
    "Durability",
    "Entry",
    "Host",
    "HostStatus",
    "JournalAdmin",
    "LogPage",
    "MemoryStorage",
    "Movement",
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
    "journal.storage.directory": (
        "Deletion",
        "RemainingData",
        "Page",
        "SessionFilter",
        "StoredSession",
        "ClaimedSession",
        "Host",
        "HostStatus",
        "Movement",
    ),
    "journal.storage.memory": ("MemoryStorage",),
    "journal.storage.postgres.storage": ("PostgresStorage",),
    "journal.storage.sqlite.storage": ("SqliteStorage",),
    "runtime.journal_admin": ("JournalAdmin",),
}
"""Each module of `actors` with the public names that it defines."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"actors.{_MODULE_OF[name]}"), name)
