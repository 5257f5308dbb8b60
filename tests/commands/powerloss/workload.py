"""What a storage is asked to keep, in steps, and what its logs are after each."""

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
class Told:
    """The logs when something was told to be done, after so many steps of the file layer."""

    steps: int
    logs: Logs


@dataclass(frozen=True, slots=True)
class Recording:
    """A run: what the file layer was asked, and what was told when."""

    steps: list[Step]
    told: list[Told]


def recorded(folder: Path, durability: Durability, seed: int, steps: int) -> Recording:
    """Let a storage keep logs, over a file layer that notes everything."""
    layer = NotingLayer(f"noting-{durability}-{seed}-{folder.name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "sqlite3", NotingSqlite(layer))
        patch.setattr(connection, "CHECKPOINT", 60)
        patch.setattr(connection.Connections, "_lengthen", partialmethod(_lengthen, layer.steps))
        storage = SqliteStorage(folder / FILE, durability=durability)
        told = [Told(0, {})]
        for logs in _kept(storage, Random(seed), steps):
            told.append(Told(len(layer.steps), dict(logs)))
    layer.unregister()
    return Recording(layer.steps, told)


_LENGTHEN = connection.Connections._lengthen


def _lengthen(connections: connection.Connections, steps: list[Step]) -> None:
    """Make a write-ahead log longer, and note it: that is not done through the file layer."""
    wal = connections.path.with_name(f"{connections.path.name}-wal")
    size = wal.stat().st_size
    _LENGTHEN(connections)
    if zeros := bytes(wal.stat().st_size - size):
        steps.append(Step("write", wal.name, size, zeros))


def _kept(storage: SqliteStorage, random: Random, steps: int) -> Iterator[Logs]:
    """Ask for one thing after the other; yield the logs after each."""
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
