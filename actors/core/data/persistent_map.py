"""Define a persistent mapping whose newest version is updated in place, for ledgers and lanes.

All versions share one dict, which belongs to the newest version. An older version stores the values that its successor
overwrote, and reads all other values through the successor. So the newest version costs as much as a dict, older
versions stay correct, and nothing is copied. Updating an older version copies the dict once and creates a fork.
Updating an empty map also creates a new map, so all users can share `NOTHING`. Keys are never removed.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar, overload

from msgspec import UNSET, UnsetType

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_EMPTY_UNDO: Mapping[Any, Any] = MappingProxyType({})  # Any: shared by maps of every type


class PersistentMap(Generic[K, V]):
    """An immutable mapping. `update` returns the next version and leaves this version unchanged."""

    __slots__ = ("_live", "_newer", "_undo")

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._live: dict[K, V] | None = dict(items) if items else {}
        self._newer: PersistentMap[K, V] | None = None
        self._undo: Mapping[K, V | UnsetType] = _EMPTY_UNDO  # UNSET marks a key that only newer versions have

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: D) -> V | D: ...

    def get(self, key: K, default: D | None = None) -> V | D | None:
        table = self
        while table._live is None:
            if key in table._undo:
                return default if (kept := table._undo[key]) is UNSET else kept
            assert table._newer is not None
            table = table._newer
        return table._live.get(key, default)

    def __contains__(self, key: K) -> bool:
        return key in self._live if self._live is not None else self.get(key, UNSET) is not UNSET

    def __len__(self) -> int:
        return len(self._as_dict())

    def __iter__(self) -> Iterator[K]:
        return iter(self._as_dict())

    def items(self) -> list[tuple[K, V]]:
        """Return all (key, value) pairs, in the order in which the keys were added."""
        return list(self._as_dict().items())

    def update(self, changes: Mapping[K, V]) -> "PersistentMap[K, V]":
        """Return a version with `changes` applied. Values of existing keys are replaced."""
        if not changes:
            return self
        # an older version creates a fork; an empty map may be shared, so it is not changed
        if not self._live:
            return PersistentMap({**self._as_dict(), **changes})
        live = self._live
        newer = self.__new__(type(self))
        newer._live, newer._newer, newer._undo = live, None, _EMPTY_UNDO
        if live.keys().isdisjoint(changes):  # most updates only add keys
            self._undo = dict.fromkeys(changes, UNSET)
        else:
            self._undo = {key: live.get(key, UNSET) for key in changes}
        self._newer, self._live = newer, None
        live.update(changes)
        return newer

    def _as_dict(self) -> dict[K, V]:
        """Return this version as a dict: the shared dict for the newest version, a copy for older ones."""
        if self._live is not None:
            return self._live
        undone: list[Mapping[K, V | UnsetType]] = []
        table: PersistentMap[K, V] = self
        while table._live is None:
            undone.append(table._undo)
            assert table._newer is not None
            table = table._newer
        copy: dict[K, V | UnsetType] = dict(table._live)
        for changes in reversed(undone):
            copy.update(changes)
        return {key: value for key, value in copy.items() if value is not UNSET}

    def __reduce__(self) -> tuple[type["PersistentMap[K, V]"], tuple[dict[K, V]]]:
        return PersistentMap, (self._as_dict(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentMap):
            return NotImplemented
        return self._as_dict() == other._as_dict()

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # equality is by value, and hashing would be slow

    def __repr__(self) -> str:
        return f"PersistentMap({self._as_dict()!r})"


NOTHING: PersistentMap[Any, Any] = PersistentMap()  # Any: an empty map fits all types of keys and values
