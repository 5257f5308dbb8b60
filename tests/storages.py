"""Every storage there is, for tests that all of them must pass."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from actors.core.log.events import Event, Opened, SwitchApplied
from actors.core.settings.labels import Metadata
from actors.journal.storage import Claim, Entry, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from tests.postgres import Server

MakeStorage: TypeAlias = Callable[[Path], Storage]

FILES: dict[str, MakeStorage] = {
    "memory": lambda _: MemoryStorage(),
    "sqlite-process": lambda folder: SqliteStorage(folder / "sessions.db", level="process"),
    "sqlite-power": lambda folder: SqliteStorage(folder / "sessions.db"),
}
"""How each that needs no server is made, in a folder of the test's own."""

STORAGES = (*FILES, "postgres")


def made(name: str, request: pytest.FixtureRequest) -> Storage:
    """Return a storage that is empty; the test is skipped where its server is not installed."""
    if name in FILES:
        return FILES[name](request.getfixturevalue("tmp_path"))
    server: Server = request.getfixturevalue("postgres")
    return PostgresStorage(server.url(server.schema()))


def begin(
    storage: Storage,
    session: str,
    *,
    tenant: str = "",
    target: str = "a",
    title: str = "",
    metadata: Metadata = (),
) -> Claim:
    """Claim a session and write its first event."""
    claim = storage.claim(session)
    opened = Opened(session, target, tenant=tenant, title=title, metadata=metadata)
    assert storage.append([Entry(session, claim.fence, (opened,))]) == [1]
    return claim


def to(target: str) -> Event:
    """Return an event that can be told from others."""
    return SwitchApplied(target)
