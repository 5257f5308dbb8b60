"""An object of a wire transcript while it is being read, and which of its keys nobody read.

A reader takes the keys one by one. What was not taken when the reading is over is not carried, and is named. So no
second list of keys is kept beside the readers, and a key that is new tomorrow is named tomorrow. A value of another
type than its reader wants is not taken either.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from actors.adapters.wire import Fields, fields
from actors.core.data.jsonio import sanitised


class WireObject:
    """One object, read key by key. Anything else that stands on the wire is one without keys."""

    __slots__ = ("_opened", "_taken", "fields")

    def __init__(self, value: object) -> None:
        self.fields: Fields = fields(plain(value))
        self._taken: set[str] = set()
        self._opened: dict[str, list[Any]] = {}  # Any: a WireObject for each object below a key, other values

    def __bool__(self) -> bool:
        return bool(self.fields)

    def take(self, *keys: str, kind: type = object) -> object:
        """Take the value of the first of these keys that holds one of a kind; None if none does."""
        for key in keys:
            value = self.fields.get(key)
            if value is not None and isinstance(value, kind):
                self._taken.add(key)
                return value
        return None

    def text(self, *keys: str) -> str:
        """Take the first of these keys that holds a text, which is sanitised; an empty one if none does."""
        value = self.take(*keys, kind=str)
        return sanitised(value) if isinstance(value, str) else ""

    def native_id(self, *keys: str) -> str:
        """Take what a call and its results pair by: the first of these keys that holds anything. A blank id is none."""
        value = self.take(*keys)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)[:64]
        return sanitised(value) if isinstance(value, str) and value.strip() else ""

    def says(self, key: str, *values: object) -> bool:
        """Take a key if it says one of these values, and say whether it does."""
        found = self.fields.get(key) in values
        if found and key in self.fields:
            self._taken.add(key)
        return found

    def inner(self, *keys: str) -> "WireObject":
        """Return the object under the first of these keys that holds one, to be read key by key."""
        for key in keys:
            if isinstance(value := plain(self.fields.get(key)), dict):
                opened: WireObject = self._open(key, [value])[0]
                return opened
        return _NOTHING

    def each(self, *keys: str) -> Sequence[object]:
        """Return what a list holds, its objects to be read key by key. An object alone is a list of one."""
        for key in keys:
            value = plain(self.fields.get(key))
            if isinstance(value, dict | list | tuple):
                return self._open(key, [value] if isinstance(value, dict) else value)
        return ()

    def whole(self) -> Fields:
        """Take all of it."""
        self._taken.update(self.fields)
        return self.fields

    def unread(self) -> Iterator[str]:
        """Give the path of each key that was not taken and says something. Places in lists are left out."""
        for key, value in self.fields.items():
            if key in self._taken or value is None or value is False:
                continue
            if isinstance(value, str | list | tuple | dict) and not value:
                continue
            if key not in self._opened:
                yield f".{key}"
                continue
            mark = "[]" if isinstance(value, list | tuple) else ""
            for item in self._opened[key]:
                if isinstance(item, WireObject):
                    yield from (f".{key}{mark}{path}" for path in item.unread())

    def _open(self, key: str, values: Sequence[object]) -> list[Any]:  # Any: as `_opened` has them
        if key not in self._opened:
            items = map(plain, values)
            self._opened[key] = [WireObject(item) if isinstance(item, dict) else item for item in items]
        return self._opened[key]


def plain(value: object) -> object:
    """Return a value as plain data: people keep what a vendor's client returned among their own dicts."""
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return value
    try:
        dumped: object = dump()
    except Exception:  # foreign code; what cannot be read stays as it is and is kept as text
        return value
    return dumped


_NOTHING = WireObject(None)  # one for all: without keys, nothing in it changes
