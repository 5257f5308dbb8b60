"""An object of a wire transcript while it is being read, and which of its keys nobody read.

Whoever reads an object takes its keys one by one. What was not taken when the reading is over is not carried, and is
named. So no second list of keys is kept beside the readers, and a key that is new tomorrow is named tomorrow. A value
of another type than its reader wants is not taken either.
"""

from collections.abc import Iterator

from actors.adapters.wire import Fields, fields


class WireObject:
    """One object, read key by key.

    Args:
        value: What stands on the wire. Anything but an object is one without keys.
    """

    __slots__ = ("_inner", "_taken", "fields")

    def __init__(self, value: object) -> None:
        self.fields: Fields = value if type(value) is dict else fields(plain(value))
        self._taken: set[str] = set()
        self._inner: dict[str, list[WireObject]] = {}

    def __bool__(self) -> bool:
        return bool(self.fields)

    def take(self, *keys: str) -> object:
        """Take the value of the first of these keys that holds one, whatever it is; None if none does."""
        for key in keys:
            if (value := self.fields.get(key)) is not None:
                self._taken.add(key)
                return value
        return None

    def text(self, *keys: str) -> str:
        """Take the first of these keys that holds a text; an empty one if none does."""
        for key in keys:
            if isinstance(value := self.fields.get(key), str):
                self._taken.add(key)
                return value
        return ""

    def says(self, key: str, *values: object) -> bool:
        """Take a key if it says one of these values, and say whether it does."""
        found = any(self.fields.get(key) is value or self.fields.get(key) == value for value in values)
        if found and key in self.fields:
            self._taken.add(key)
        return found

    def inner(self, *keys: str) -> "WireObject":
        """Return the object under the first of these keys that holds one, to be read key by key."""
        for key in keys:
            if key in self._inner:
                return self._inner[key][0]
            if (value := self.fields.get(key)) is not None and isinstance(value := plain(value), dict):
                return self._opened(key, [value])[0]
        return _NOTHING

    def each(self, *keys: str) -> Iterator[object]:
        """Give what a list holds, its objects to be read key by key. An object alone is a list of one."""
        for key in keys:
            value = self.fields.get(key)
            if value is None or type(value) is str:
                continue
            if isinstance(value := plain(value), dict):
                value = [value]
            if isinstance(value, list | tuple):
                came = [plain(item) for item in value]
                opened = iter(self._opened(key, came) if key not in self._inner else self._inner[key])
                yield from (
                    next(opened) if isinstance(item, dict) else (next(opened), item)[1] for item in came
                )
                return

    def whole(self) -> Fields:
        """Take all of it."""
        self._taken.update(self.fields)
        return self.fields

    def unread(self) -> Iterator[str]:
        """Give the path of each key that was not taken and says something. Places in lists are left out."""
        for key, value in self.fields.items():
            if key in self._taken or _says_nothing(value):
                continue
            if key not in self._inner:
                yield f".{key}"
                continue
            mark = "[]" if isinstance(value, list | tuple) else ""
            for item in self._inner[key]:
                yield from (f".{key}{mark}{path}" for path in item.unread())

    def _opened(self, key: str, values: list[object]) -> "list[WireObject]":
        opened = self._inner[key] = [WireObject(value) for value in values]
        return opened


def _says_nothing(value: object) -> bool:
    return value is None or value is False or (isinstance(value, str | list | tuple | dict) and not value)


def plain(value: object) -> object:
    """Return a value as plain data: people keep what a vendor's client returned among their own dicts."""
    if type(value) in _PLAIN:
        return value
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return value
    try:
        dumped: object = dump()
    except Exception:  # foreign code; what cannot be read stays as it is and is kept as text
        return value
    return dumped


_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})
_NOTHING = WireObject(None)  # one for all: without keys, nothing in it changes
