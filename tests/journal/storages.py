"""All storages, for tests that each of them must pass."""

from collections.abc import Callable
from time import time
from typing import TypeAlias

import pytest

from actors.core.log.events import LogEvent, Opened, SwitchApplied
from actors.core.settings.labels import Metadata
from actors.journal.storage import Claim, Entry, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from tests.journal.postgres import Server

Clock: TypeAlias = Callable[[], float]
MakeStorage: TypeAlias = Callable[..., Storage]
"""Opens a storage in a folder. A second argument is its wall clock."""

FILES: dict[str, MakeStorage] = {
    "memory": lambda _, clock=time: MemoryStorage(clock=clock),
    "sqlite-process": lambda folder, clock=time: SqliteStorage(
        folder / "sessions.db", durability="process", clock=clock
    ),
    "sqlite-power": lambda folder, clock=time: SqliteStorage(folder / "sessions.db", clock=clock),
}
"""The storages that need no server, each opened in a folder of the test."""

STORAGES = (*FILES, "postgres")


def open_storage(name: str, request: pytest.FixtureRequest, clock: Clock = time) -> Storage:
    """Return an empty storage; skip the test if its server is not installed."""
    if name in FILES:
        return FILES[name](request.getfixturevalue("tmp_path"), clock)
    server: Server = request.getfixturevalue("postgres")
    return PostgresStorage(server.url(server.schema()), clock=clock)


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


def to(target: str) -> LogEvent:
    """Return an event that is recognisable by its target."""
    return SwitchApplied(target)
