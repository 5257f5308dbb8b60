"""The workload of a storage, in steps, with its logs after each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from actors.core.log.events import AskStarted, Closed, LogEvent, Opened
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.journal.storage import Durability, Entry
from actors.journal.storage.sqlite import SqliteStorage, connection
from tests.commands.powerloss.layer import NotingLayer, NotingSqlite, Step

Logs: TypeAlias = Mapping[str, tuple[LogEvent, ...]]
FILE = "sessions.db"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The logs after an acknowledged change, and the number of file layer steps so far."""

    steps: int
    logs: Logs


@dataclass(frozen=True, slots=True)
class Recording:
    """A run: the requests to the file layer, and the acknowledgements between them."""

    steps: list[Step]
    told: list[Acknowledged]


def record(folder: Path, durability: Durability, seed: int, steps: int) -> Recording:
    """Run the workload of a storage over a file layer that records every request."""
    layer = NotingLayer(f"noting-{durability}-{seed}-{folder.name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "sqlite3", NotingSqlite(layer))
        patch.setattr(connection, "CHECKPOINT", 60)
        patch.setattr(connection.Connections, "_extend_wal", partialmethod(_extend_wal, layer.steps))
        storage = SqliteStorage(folder / FILE, durability=durability)
        told = [Acknowledged(0, {})]
        for logs in _make_changes(storage, Random(seed), steps):
            told.append(Acknowledged(len(layer.steps), dict(logs)))
        recorded = list(layer.steps)
        storage.close()
    layer.unregister()
    return Recording(recorded, told)


_LENGTHEN = connection.Connections._extend_wal


def _extend_wal(connections: connection.Connections, steps: list[Step]) -> None:
    """Preallocate the write-ahead log and record the step, because it bypasses the file layer."""
    wal = connections.path.with_name(f"{connections.path.name}-wal")
    size = wal.stat().st_size
    _LENGTHEN(connections)
    if zeros := bytes(wal.stat().st_size - size):
        steps.append(Step("write", wal.name, size, zeros))


def _make_changes(storage: SqliteStorage, random: Random, steps: int) -> Iterator[Logs]:
    """Make changes one after the other; yield the logs after each."""
    logs, fences = dict[str, tuple[LogEvent, ...]](), dict[str, int]()
    names = [f"s{number}" for number in range(6)]
    for _ in range(steps):
        name, chance = random.choice(names), random.random()
        if name not in fences or chance < 0.1:
            with storage.transaction():
                for each in random.sample(names, random.randrange(1, 4)) if chance < 0.05 else [name]:
                    fences[each] = storage.claim(each).fence
        elif chance < 0.15:
            storage.delete(name)
            logs.pop(name, None)
            del fences[name]
        elif chance < 0.18:
            storage.close()
            fences.clear()
        else:
            entries = [_entry(each, logs, fences, random) for each in {name, random.choice([*fences])}]
            storage.append(entries)
            for entry in entries:
                logs[entry.session] = (*logs.get(entry.session, ()), *entry.events)
                if isinstance(entry.events[-1], Closed):
                    del fences[entry.session]
        yield logs


def _entry(name: str, logs: Logs, fences: Mapping[str, int], random: Random) -> Entry:
    events: list[LogEvent] = [] if name in logs else [Opened(name, "a")]
    for _ in range(random.randrange(1, 4)):
        words = random.choice((1, 30, 300, 900))
        said = f"{len(logs.get(name, ()))} {random.random()} ".ljust(24) * words
        events.append(AskStarted(1, pack(Message("user", (Text(said),)))))
    if random.random() < 0.05:
        events.append(Closed())
    return Entry(name, fences[name], tuple(events))
