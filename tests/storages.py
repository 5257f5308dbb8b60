"""Every storage there is, for tests that all of them must pass."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from actors.core.events import Event, Opened, SwitchApplied
from actors.storage import Claim, Entry, Storage
from actors.storage.memory import MemoryStorage
from actors.storage.sqlite import SqliteStorage

MakeStorage: TypeAlias = Callable[[Path], Storage]

STORAGES: dict[str, MakeStorage] = {
    "memory": lambda _: MemoryStorage(),
    "sqlite-process": lambda folder: SqliteStorage(folder / "sessions.db", level="process"),
    "sqlite-power": lambda folder: SqliteStorage(folder / "sessions.db"),
}
"""How each is made, in a folder of the test's own."""


def begin(storage: Storage, session: str, *, tenant: str = "", target: str = "a") -> Claim:
    """Claim a session and write its first event."""
    claim = storage.claim(session)
    assert storage.append([Entry(session, claim.fence, (Opened(session, target, tenant=tenant),))]) == [1]
    return claim


def to(target: str) -> Event:
    """Return an event that can be told from others."""
    return SwitchApplied(target)
