"""A file layer under SQLite that records writes and syncs, and connections that use it.

APSW includes its own SQLite and lets Python code stand between it and the files. Its file layer has no shared memory,
so a connection has exclusive use of its file: one storage writes, and nothing reads meanwhile.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import apsw

Kind: TypeAlias = Literal["write", "truncate", "sync", "delete", "sync_folder"]

_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL


@dataclass(frozen=True, slots=True)
class Step:
    """One request to the file layer: bytes at an offset, a size, or only its kind."""

    kind: Kind
    file: str
    at: int = 0
    data: bytes = b""


class NotingLayer(apsw.VFS):
    """A file layer that forwards requests to the default one and records them.

    Args:
        name: The name by which a connection selects the layer.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Step] = []
        super().__init__(name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> "NotedFile":  # Any: a str or apsw's URIFilename
        return NotedFile(name, flags, self.steps)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.steps.append(Step("delete", Path(filename).name))
        if syncdir:
            self.steps.append(Step("sync_folder", ""))


class NotedFile(apsw.VFSFile):
    """An open file. The first sync of a new journal also syncs its folder, as in SQLite's own layer."""

    def __init__(self, name: Any, flags: list[int], steps: list[Step]) -> None:  # Any: as above
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        self._name, self._steps = path.name, steps
        self._is_new = bool(flags[0] & _JOURNALS) and not path.exists()
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._steps.append(Step("write", self._name, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self._steps.append(Step("truncate", self._name, size))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._steps.append(Step("sync", self._name))
        if self._is_new:
            self._steps.append(Step("sync_folder", ""))
            self._is_new = False


class NotedConnection:
    """An APSW connection with the interface of the standard library's that a storage uses."""

    def __init__(self, path: Path, layer: str) -> None:
        self._connection = apsw.Connection(str(path), vfs=layer)
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes()

    def execute(
        self, sql: str, parameters: Any = ()
    ) -> "_Rows":  # Any: values that SQLite can hold, by name or in order
        before = self._connection.total_changes()
        rows = self._connection.execute(sql, parameters).fetchall()
        return _Rows(rows, self._connection.total_changes() - before)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> "_Rows":  # Any: as above
        before = self._connection.total_changes()
        rows = self._connection.executemany(sql, parameters).fetchall()
        return _Rows(rows, self._connection.total_changes() - before)

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class _Rows:
    """The result of a statement."""

    def __init__(self, rows: list[tuple[Any, ...]], changed: int) -> None:  # Any: as above
        self._rows, self.rowcount = rows, changed

    def fetchall(self) -> list[tuple[Any, ...]]:  # Any: as above
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:  # Any: as above
        return self._rows[0] if self._rows else None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:  # Any: as above
        return iter(self._rows)


class NotingSqlite:
    """The replacement of the module `sqlite3` in a storage with recorded files."""

    Error = (sqlite3.Error, apsw.Error)
    Connection = sqlite3.Connection

    def __init__(self, layer: NotingLayer) -> None:
        self._layer = layer

    def connect(self, path: Path, **_: object) -> NotedConnection:
        return NotedConnection(path, self._layer.name)
