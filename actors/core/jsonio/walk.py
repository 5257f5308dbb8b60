"""Walk: any Python value to plain lists, dicts and scalars, within a budget.

In:  any value, made by anyone's code: cyclic, endless, lying about its type, raising when looked at.
Out: a finite tree of plain JSON types. Strings are still whole (`fit` cuts them), containers are short.

As little foreign code as possible is called, and none is trusted. What cannot be said in JSON leaves a text
in brackets where it stood. Nothing in the tree depends on hash seeds or memory addresses: members of a set
are sorted by their JSON, and a set is kept whole or not at all.
"""

import re
from base64 import b64encode
from codecs import getincrementaldecoder
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Any, TypeAlias

from actors.core.jsonio.limits import SizeLimits
from actors.core.jsonio.text import INT_MAX, INT_MIN, JsonValue, dump, encodable, sanitised

_MAX_KEY = 512
_MAX_NAME = 60
_WIDE_BITS = 4096

# Types whose own text says all there is, by name, so that none of their modules is imported here.
_TEXTUAL: Mapping[tuple[str, str], str] = {
    ("datetime", "datetime"): "isoformat",
    ("datetime", "date"): "isoformat",
    ("datetime", "time"): "isoformat",
    ("datetime", "timedelta"): "__str__",
    ("datetime", "tzinfo"): "__str__",
    ("decimal", "Decimal"): "__str__",
    ("fractions", "Fraction"): "__str__",
    ("uuid", "UUID"): "__str__",
    ("pathlib", "PurePath"): "__str__",
    ("ipaddress", "_IPAddressBase"): "__str__",
    ("builtins", "complex"): "__str__",
    ("collections", "UserString"): "__str__",
}
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{4,}")
_TYPE_NAME = type.__dict__["__name__"]
_TYPE_MRO = type.__dict__["__mro__"]


class Gap(str):
    """The marker that ends a shortened container; remembers how much it stands for."""

    hidden = 0


class _Full(Exception):  # a signal, not an error
    """The budget ran out inside a set, whose members have no order to cut by."""


def gap(count: int, what: str) -> Gap:
    marker = Gap(f"[{count} more {what} cut]")
    marker.hidden = count
    return marker


def _name(kind: type) -> str:
    """Return the name of a type without running its metaclass."""
    name: str = _TYPE_NAME.__get__(kind)
    return name[:_MAX_NAME]


class ValueWalk:
    """One pass over one value: the path (for cycles), the budget in characters, the marks."""

    def __init__(self, limits: SizeLimits, marks: set[str]) -> None:
        self._limits = limits
        self._marks = marks
        self._path: set[int] = set()
        self._share = limits.max_bytes // 16  # what one string counts at most, so small ones after it stay
        self.budget = 2 * limits.max_bytes  # more than fits, so that `fit` can choose
        self.is_long = False  # whether a string was longer than its share
        self._in_set = False

    def plain(self, value: Any, depth: int) -> JsonValue:  # Any: the value is anyone's
        """Return `value` as plain data. `depth` counts the containers around it."""
        self._spend(2)
        kind = type(value)
        if value is None or kind is bool:
            return value  # type: ignore[no-any-return]  # None or a bool
        if issubclass(kind, Enum):
            return self._nested(value, kind, depth, _enumerated)
        # The unbound methods give the exact built-in value, whatever a subclass claims to be.
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if issubclass(kind, int):
            return self._int(int.__add__(value, 0))
        if issubclass(kind, float):
            return self._float(float.__pos__(value))
        return self._nested(value, kind, depth, None)

    def _spend(self, cost: int) -> None:
        self.budget -= cost
        if self._in_set and self.budget < 0:
            raise _Full

    def mark(self, code: str, text: str) -> str:
        self._marks.add(code)
        return text

    def _text(self, text: str) -> str:
        """Count a text and keep it whole: `fit` is the only place that cuts strings."""
        self._spend(min(len(text), self._share))
        self.is_long |= len(text) > self._share
        if len(text) <= self._limits.max_string and not encodable(text):
            return self.mark("surrogate", sanitised(text))
        return text

    def _int(self, number: int) -> JsonValue:
        if INT_MIN <= number <= INT_MAX:
            self._spend(len(str(number)))
            return number
        if number.bit_length() > _WIDE_BITS:  # decimal digits cost quadratic time, and Python caps them
            return self.mark("wide_int", f"[integer of {number.bit_length()} bits]")
        return self.mark("wide_int", self._text(str(number)))

    def _float(self, number: float) -> JsonValue:
        if isfinite(number):
            self._spend(len(repr(number)))
            return number
        return self.mark("not_finite", f"[not finite: {number}]")

    def _nested(self, value: object, kind: type, depth: int, read: "_Plain | None") -> JsonValue:
        """Read a value with code that may be foreign, and so may raise anything."""
        if id(value) in self._path:
            return self.mark("cycle", "[cycle]")
        self._path.add(id(value))
        try:
            return self._read(value, kind, depth, read)
        except _Full:
            raise
        except BaseException:  # nothing awaits here, so this is no cancellation of ours
            return self.mark("repr_failed", f"[{_name(kind)} that could not be read]")
        finally:
            self._path.discard(id(value))

    def _read(self, value: object, kind: type, depth: int, read: "_Plain | None") -> JsonValue:
        read = read or _plain_for(kind)
        if read is None:
            return self._text(_described(value, kind, self))
        if read not in _NOT_CONTAINERS and depth >= self._limits.max_depth:
            return self.mark("depth", f"[{_name(kind)} beyond depth {self._limits.max_depth}]")
        return read(self, value, depth)

    def sequence(self, items: Iterable[object], size: int, depth: int) -> JsonValue:
        """Return the first items, in order. `items` may be endless and `size` a lie."""
        kept: list[JsonValue] = []
        cap = self._limits.max_items
        taken = list(islice(items, cap + 1))
        for item in taken if len(taken) <= cap else taken[: cap - 1]:
            if self._exhausted():
                break
            kept.append(self.plain(item, depth + 1))
        if len(kept) < len(taken):
            self._marks.add("truncated")
            kept.append(gap(max(size, len(taken)) - len(kept), "items"))
        return kept

    def mapping(self, pairs: Iterable[tuple[object, object]], size: int, depth: int) -> JsonValue:
        """Return the first entries, in order."""
        kept: dict[str, JsonValue] = {}
        repeats: dict[str, int] = {}
        cap = self._limits.max_items
        taken = list(islice(pairs, cap + 1))
        for key, value in taken if len(taken) <= cap else taken[: cap - 1]:
            if self._exhausted():
                break
            name = unused(self._key(key, depth), kept, repeats)
            kept[name] = self.plain(value, depth + 1)
        if len(kept) < len(taken):
            self._marks.add("truncated")
            kept[unused("[cut]", kept, repeats)] = gap(max(size, len(taken)) - len(kept), "entries")
        return kept

    def members(self, items: Iterable[object], size: int, depth: int) -> JsonValue:
        """Return the members of a set sorted by their JSON; all of them or none, for they have no order."""
        if size > self._limits.max_items:
            return self.mark("truncated", f"[set of {size}, cut]")
        outermost, marks = not self._in_set, set(self._marks)
        self._in_set = True
        try:
            return sorted((self.plain(item, depth + 1) for item in items), key=dump)
        except _Full:
            if not outermost:
                raise
            self._marks.intersection_update(marks)  # which members were seen depends on the hash seed
            return self.mark("truncated", f"[set of {size}, cut]")
        finally:
            self._in_set = not outermost

    def _exhausted(self) -> bool:
        return self.budget <= 0 and not self._in_set

    def _key(self, key: object, depth: int) -> str:
        if type(key) is str:
            name = self._text(key)
        else:
            plain = self.plain(key, depth + 1)
            name = plain if isinstance(plain, str) else dump(plain).decode()
            if not isinstance(key, str):
                self._marks.add("key")
        if "\0" in name:
            name = self.mark("key", name.replace("\0", "\ufffd"))
        if len(name) > _MAX_KEY:
            name = self.mark(
                "truncated", f"{name[: _MAX_KEY - 40]}[{len(name) - _MAX_KEY + 40} characters cut]"
            )
        return name if encodable(name) else self.mark("surrogate", sanitised(name))

    def buffer(self, source: bytes | bytearray | memoryview) -> str:
        """Return UTF-8 as text, anything else as base64, in either case no more than a string may hold."""
        view = memoryview(source)
        size, cap = view.nbytes, self._limits.max_string
        data = bytes(view.cast("B")[:cap]) if view.c_contiguous else view.tobytes()[:cap]
        more = f"[{size - len(data)} bytes cut]" if size > len(data) else ""
        self._marks.update(("bytes", "truncated") if more else ("bytes",))
        try:
            return self._text(getincrementaldecoder("utf-8")().decode(data, final=not more) + more)
        except UnicodeDecodeError:
            return self._text(f"[{size} bytes, base64] {b64encode(data).decode()}{more}")


def unused(name: str, taken: Mapping[str, object], repeats: dict[str, int]) -> str:
    """Return `name`, or the first of `name#2`, `name#3` ... that is not taken."""
    candidate = name
    while candidate in taken:
        repeats[name] = repeats.get(name, 1) + 1
        candidate = f"{name}#{repeats[name]}"
    return candidate


def _described(value: object, kind: type, walk: ValueWalk) -> str:
    """Return a text for a value that has no JSON form."""
    for base in _TYPE_MRO.__get__(kind):
        if method := _TEXTUAL.get((base.__module__, base.__qualname__)):
            return str.__str__(getattr(value, method)())
    if issubclass(kind, BaseException):
        return walk.mark("object", f"{_name(kind)}: {_ADDRESS.sub('', str(value))}")
    if kind.__repr__ is object.__repr__:
        return walk.mark("object", f"[object: {_name(kind)}]")
    return walk.mark("object", f"[object: {_name(kind)}] {_ADDRESS.sub('', str.__str__(repr(value)))}")


_Plain: TypeAlias = Callable[[ValueWalk, Any, int], JsonValue]  # Any: each reader takes its own kind of value


def _container(
    read: Callable[[ValueWalk, Any, int, int], JsonValue],
    items: Callable[[Any], Iterable[Any]] = iter,
    size: Callable[[Any], int] = len,
) -> _Plain:
    """Return what reads a container: its items, in order, and how many it says they are."""
    return lambda walk, value, depth: read(walk, items(value), size(value), depth)


def _named(names: Callable[[Any], Sequence[str]]) -> _Plain:
    """Return what reads the fields of a record."""

    def read(walk: ValueWalk, value: Any, depth: int) -> JsonValue:  # Any: a record of anybody's
        held = names(value)
        return walk.mapping(((name, getattr(value, name)) for name in held), len(held), depth)

    return read


def _enumerated(walk: ValueWalk, value: Enum, depth: int) -> JsonValue:
    return walk.plain(value.value, depth)


def _model(walk: ValueWalk, value: Any, depth: int) -> JsonValue:  # Any: pydantic is not imported here
    try:
        dumped = value.model_dump(warnings=False)
    except Exception:  # a cycle, or a serializer that raises: what the fields hold is still known
        dumped = dict(vars(value))
    return walk.plain(dumped, depth)


# The unbound methods of built-in types read what is there, whatever a subclass claims.
_BUILT_IN: tuple[tuple[type | tuple[type, ...], _Plain], ...] = (
    ((bytes, bytearray, memoryview), lambda walk, value, depth: walk.buffer(value)),
    (OrderedDict, _container(ValueWalk.mapping, OrderedDict.items, dict.__len__)),
    (dict, _container(ValueWalk.mapping, dict.items, dict.__len__)),
    (list, _container(ValueWalk.sequence, list.__iter__, list.__len__)),
    (tuple, _container(ValueWalk.sequence, tuple.__iter__, tuple.__len__)),
    ((set, frozenset), _container(ValueWalk.members)),
)
_GENERIC: tuple[tuple[type, _Plain], ...] = (
    (Mapping, _container(ValueWalk.mapping, lambda value: ((key, value[key]) for key in value))),
    (MappingView, _container(ValueWalk.sequence)),
    (AbstractSet, _container(ValueWalk.members)),
    (Sequence, _container(ValueWalk.sequence)),
)
_DATACLASS = _named(lambda value: [field.name for field in fields(value)])
_STRUCT = _named(lambda value: value.__struct_fields__)
_NOT_CONTAINERS = (_enumerated, _model, _BUILT_IN[0][1])


def _plain_for(kind: type) -> _Plain | None:
    """Return what reads values of this type, or None if all one can do is describe them."""
    for base, read in _BUILT_IN:
        if issubclass(kind, base):
            return read
    if hasattr(kind, "__dataclass_fields__"):
        return _DATACLASS
    if hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump"):
        return _model
    if any((base.__module__, base.__qualname__) in _TEXTUAL for base in _TYPE_MRO.__get__(kind)):
        return None
    generic = next((read for base, read in _GENERIC if issubclass(kind, base)), None)
    return _STRUCT if generic is None and hasattr(kind, "__struct_fields__") else generic
