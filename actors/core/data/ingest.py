"""Convert any Python value to JSON once, for tool results, arguments and metadata.

In:  any value from foreign code: cyclic, endless, with misleading types, raising on access.
Out: JSON within its size limits, and codes of the conversions. No later step can fail on the result.

A walk turns the value into plain data within a budget: strings stay complete, containers are shortened. `truncate` then
cuts strings. The walk calls as little foreign code as possible and trusts none. A cut part or a value without a JSON
form leaves a text in brackets. The result depends on neither hash seeds nor memory addresses: members of a set are
sorted by their JSON, and a set is kept completely or not at all.

Another thread than the one that created a value may read only plain data: exact built-in or standard library types,
each of which is copied in one atomic step. Values with code of their own belong to the thread that created them
(`plain_only`).
"""

import re
from base64 import b64encode
from codecs import getincrementaldecoder
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from actors.core.data.jsonio import INT_MAX, INT_MIN, Json, JsonValue, dump, quote, sanitise
from actors.core.data.truncate import Gap, SizeLimits, truncate, unused_name

Mark: TypeAlias = Literal[
    "bytes",  # binary data, as text or base64
    "cycle",  # a reference to an enclosing value
    "depth",  # a container nested too deep
    "key",  # a key that was not a string, or held NUL
    "not_finite",  # NaN or an infinity
    "object",  # a value without a JSON form, replaced by its description
    "repr_failed",  # a value that raised when it was read
    "surrogate",  # text with lone surrogates
    "truncated",  # a part cut to the size limits
    "wide_int",  # an integer beyond 64 bits, as text
]

_MAX_KEY = 512
_MAX_NAME = 60
_WIDE_BITS = 4096

# Types whose `str` is a complete representation; by name, so that their modules are not imported here.
_TEXTUAL = frozenset(
    """datetime.datetime datetime.date datetime.time datetime.timedelta datetime.tzinfo decimal.Decimal builtins.complex
    fractions.Fraction uuid.UUID pathlib.PurePath ipaddress._IPAddressBase collections.UserString""".split()  # noqa: SIM905
)
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{4,}")
_TYPE_NAME = type.__dict__["__name__"]
_TYPE_MRO = type.__dict__["__mro__"]


class Ingested(Struct, frozen=True):
    """A value converted to JSON, with a code for each lossy conversion.

    `marks` holds sorted `Mark` codes. If `marks` is empty, `json` represents the value completely.
    """

    json: Json
    marks: tuple[str, ...]


DEFAULT_LIMITS = SizeLimits()
# created at import, because `ingest` returns it when memory is short
_UNREADABLE = Ingested(quote("[a value that could not be read]"), ("repr_failed",))


class ForeignValue(Exception):
    """With `plain_only`, the value contains an object with code of its own."""


def ingest(value: object, limits: SizeLimits = DEFAULT_LIMITS, *, plain_only: bool = False) -> Ingested:
    """Convert any Python value to at most `limits.max_bytes` of JSON.

    `parse` accepts the text. Iterators are never consumed. Ingesting the result again changes nothing.

    Raises:
        ForeignValue: With `plain_only`, if the value is not plain data. Otherwise no error of the value escapes.
        KeyboardInterrupt: Or another exception that a signal handler raises meanwhile.
    """
    marks: set[str] = set()
    try:
        least = min(limits.max_bytes, limits.max_string)
        if type(value) is str and 6 * len(value) + 2 <= least and sanitise(value) == value:
            return Ingested(quote(value), ())  # fits even if every character is escaped
        if type(value) is dict:
            small = _small_object(value, limits)  # pyright: ignore[reportUnknownArgumentType]  # of unknown content
            if small is not None:
                return Ingested(small, ())
        walk = ValueWalk(limits, marks, plain_only=plain_only)
        text = truncate(walk.plain(value, 0), walk.is_long, limits, marks)
    except ForeignValue:
        raise
    except Exception:  # only possible when the caller's stack or memory is nearly exhausted
        return _UNREADABLE
    return Ingested(text, tuple(sorted(marks)))


_SCALARS = frozenset({str, int, bool, type(None)})
_WIDEST = 32  # bytes of a number or a constant, with the punctuation around a key and its value


def _small_object(value: dict[str, Any], limits: SizeLimits) -> Json | None:  # Any: of unknown content
    """Return the JSON of an object of a few short ASCII scalars, as most arguments are; None for any other object.

    `ValueWalk` would change nothing of it.
    """
    if len(value) > limits.max_items:
        return None
    left = (
        min(limits.max_bytes, limits.max_string) // 16
    )  # within the share of a string, even if all is escaped
    for key, item in value.items():
        if type(key) is not str or len(key) > _MAX_KEY or "\0" in key or type(item) not in _SCALARS:
            return None
        if type(item) is int and not INT_MIN <= item <= INT_MAX:
            return None
        text = item if type(item) is str else ""
        left -= 6 * (len(key) + len(text)) + _WIDEST
        if left < 0 or not (key.isascii() and text.isascii()):
            return None
    return dump(value)


class _Full(Exception):  # a signal, not an error
    """The budget ran out inside a set, whose members have no order to cut by."""


class ValueWalk:
    """One pass over one value, with its path (to detect cycles), its budget in characters and its marks."""

    def __init__(self, limits: SizeLimits, marks: set[str], *, plain_only: bool = False) -> None:
        self._limits = limits
        self._plain_only = plain_only
        self._marks = marks
        self._path: set[int] = set()
        self._share = limits.max_bytes // 16  # the most that one string counts, so later small values stay
        self._budget = 2 * limits.max_bytes  # more than the limit, so that `truncate` can choose
        self.is_long: bool = False  # True once a string exceeded its share
        self._in_set = False

    def plain(self, value: Any, depth: int) -> JsonValue:  # Any: a foreign value
        """Return `value` as plain data. `depth` is the number of enclosing containers."""
        self._budget -= 2
        given: object = value
        kind = type(given)
        if value is None or kind is bool:
            return value  # type: ignore[no-any-return]  # None or a bool
        if not issubclass(kind, Enum):
            # The unbound methods return the exact built-in value, even if a subclass overrides them.
            if issubclass(kind, str):
                return self._text(str.__str__(value))
            if issubclass(kind, int):
                return self._int(int.__add__(value, 0))
            if issubclass(kind, float):
                return self._float(float.__pos__(value))
        return self._read_foreign(value, kind, depth)

    def _mark(self, code: Mark, text: str) -> str:
        self._marks.add(code)
        return text

    def _text(self, text: str) -> str:
        """Charge the budget for a string and keep it complete: only `truncate` cuts strings."""
        self._budget -= min(len(text), self._share)
        self.is_long |= len(text) > self._share
        return text if text.isascii() or len(text) > self._limits.max_string else self._clean(text)

    def _clean(self, text: str) -> str:
        clean = sanitise(text)
        return text if clean == text else self._mark("surrogate", clean)

    def _int(self, number: int) -> JsonValue:
        if INT_MIN <= number <= INT_MAX:
            self._budget -= len(str(number))
            return number
        if number.bit_length() > _WIDE_BITS:  # decimal digits cost quadratic time, and Python caps them
            return self._mark("wide_int", f"[integer of {number.bit_length()} bits]")
        return self._mark("wide_int", self._text(str(number)))

    def _float(self, number: float) -> JsonValue:
        if isfinite(number):
            self._budget -= len(repr(number))
            return number
        return self._mark("not_finite", f"[not finite: {number}]")

    def _read_foreign(self, value: Any, kind: type[object], depth: int) -> JsonValue:  # Any: as above
        """Read a value with possibly foreign code, which may raise anything."""
        if self._plain_only and not is_plain(kind):
            raise ForeignValue
        if id(value) in self._path:
            return self._mark("cycle", "[cycle]")
        self._path.add(id(value))
        try:
            return self._convert(value, kind, depth)
        except (_Full, ForeignValue):
            raise
        except BaseException as error:  # nothing awaits here, so this cannot be our own cancellation
            if _is_interrupt(error):
                raise
            return self._mark("repr_failed", f"[{_name(kind)} that could not be read]")
        finally:
            self._path.discard(id(value))

    def _convert(self, value: Any, kind: type[object], depth: int) -> JsonValue:  # Any: as above
        if issubclass(kind, Enum):
            return self.plain(value.value, depth)
        if issubclass(kind, (bytes, bytearray, memoryview)):
            return self._buffer(value)
        if found := _shape(kind):
            if depth >= self._limits.max_depth:
                return self._mark("depth", f"[{_name(kind)} beyond depth {self._limits.max_depth}]")
            read, items, size = found
            return read(self, items(value), size(value), depth + 1)
        if _is_model(kind):
            return self.plain(_dump_model(value), depth)
        if _is_textual(kind):  # dates and times have a form of their own
            return self._text(str.__str__(getattr(value, "isoformat", value.__str__)()))
        return self._text(self._mark("object", _describe(value, kind)))

    def _is_exhausted(self) -> bool:
        """Return True if the remaining items must be left out. A set must be complete, so it raises `_Full` instead."""
        if self._in_set and self._budget < 0:
            raise _Full
        return self._budget <= 0 and not self._in_set

    def _first(self, items: Iterable[Any], size: int, what: str) -> Iterator[Any]:  # Any: as above
        """Yield the first items, then a gap for the others. `items` may be endless and `size` wrong."""
        cap = self._limits.max_items
        taken = list(islice(items, cap + 1))
        kept = 0
        for item in taken if len(taken) <= cap else taken[: cap - 1]:
            if self._is_exhausted():
                break
            yield item
            kept += 1
        if kept < len(taken):
            self._marks.add("truncated")
            yield Gap(max(size, len(taken)) - kept, what)

    def sequence(self, items: Iterable[object], size: int, depth: int) -> JsonValue:
        first = self._first(items, size, "items")
        return [item if type(item) is Gap else self.plain(item, depth) for item in first]

    def mapping(self, pairs: Iterable[tuple[object, object]], size: int, depth: int) -> JsonValue:
        kept: dict[str, JsonValue] = {}
        repeats: dict[str, int] = {}
        for pair in self._first(pairs, size, "entries"):
            if type(pair) is Gap:
                kept[unused_name("[cut]", kept, repeats)] = pair
            else:
                key, value = pair
                name = unused_name(self._key(key, depth), kept, repeats)
                kept[name] = self.plain(value, depth)
        return kept

    def members(self, items: Iterable[object], size: int, depth: int) -> JsonValue:
        """Return the members of a set sorted by their JSON; all or none, because sets have no order to cut by."""
        if size > self._limits.max_items:
            return self._mark("truncated", f"[set of {size}, cut]")
        outermost, marks = not self._in_set, set(self._marks)
        self._in_set = True
        try:
            kept = [self.plain(item, depth) for item in items if not self._is_exhausted()]
            self._is_exhausted()
            return sorted(kept, key=dump)
        except _Full:
            if not outermost:
                raise
            self._marks.intersection_update(marks)  # the set of visited members depends on the hash seed
            return self._mark("truncated", f"[set of {size}, cut]")
        finally:
            self._in_set = not outermost

    def _key(self, key: object, depth: int) -> str:
        if type(key) is str:
            name = self._text(key)
        else:
            plain = self.plain(key, depth)
            name = plain if isinstance(plain, str) else dump(plain).decode()
            if not isinstance(key, str):
                self._marks.add("key")
        if "\0" in name:
            name = self._mark("key", name.replace("\0", "\ufffd"))
        if (over := len(name) - _MAX_KEY) > 0:
            name = self._mark("truncated", f"{name[: _MAX_KEY - 40]}[{over + 40} characters cut]")
        return name if name.isascii() else self._clean(name)

    def _buffer(self, source: bytes | bytearray | memoryview) -> str:
        """Return UTF-8 as text and other bytes as base64, within the length limit of a string."""
        view = memoryview(source)
        size, cap = view.nbytes, self._limits.max_string
        data = bytes(view.cast("B")[:cap]) if view.c_contiguous else view.tobytes()[:cap]
        more = f"[{size - len(data)} bytes cut]" if size > len(data) else ""
        self._marks.update(("bytes", "truncated") if more else ("bytes",))
        try:
            return self._text(getincrementaldecoder("utf-8")().decode(data, final=not more) + more)
        except UnicodeDecodeError:
            return self._text(f"[{size} bytes, base64] {b64encode(data).decode()}{more}")


def _is_interrupt(error: BaseException) -> bool:
    """Return True if a signal handler raised this error, which then is not a failure of the value."""
    if isinstance(error, Exception):
        return False
    from actors.interrupts import is_delivered  # few values raise, and it imports `inspect`

    return is_delivered(error)


def _name(kind: type[object]) -> str:
    """Return the name of a type without running its metaclass."""
    name: str = _TYPE_NAME.__get__(kind)
    return name[:_MAX_NAME]


_Shape: TypeAlias = tuple[  # a container's reader, its items in order, and the length it reports
    Callable[[ValueWalk, Any, int, int], JsonValue], Callable[[Any], Iterable[Any]], Callable[[Any], int]
]
# The unbound methods of built-in types read the real content, even if a subclass overrides them.
_BUILT_IN: Mapping[type, _Shape] = {
    OrderedDict: (ValueWalk.mapping, OrderedDict[Any, Any].items, dict[Any, Any].__len__),
    dict: (ValueWalk.mapping, dict[Any, Any].items, dict[Any, Any].__len__),
    list: (ValueWalk.sequence, list[Any].__iter__, list[Any].__len__),
    tuple: (ValueWalk.sequence, tuple[Any, ...].__iter__, tuple[Any, ...].__len__),
    set: (ValueWalk.members, iter, len),
    frozenset: (ValueWalk.members, iter, len),
}
_GENERIC: Mapping[type, _Shape] = {
    Mapping: (ValueWalk.mapping, lambda value: ((key, value[key]) for key in value), len),
    MappingView: (ValueWalk.sequence, iter, len),
    AbstractSet: (ValueWalk.members, iter, len),
    Sequence: (ValueWalk.sequence, iter, len),
}


def _shape(kind: type[Any]) -> _Shape | None:  # Any: a foreign class
    """Return the way to read containers of this type, or None for other types."""
    for base, shape in _BUILT_IN.items():
        if issubclass(kind, base):
            return shape
    if hasattr(kind, "__dataclass_fields__"):
        return _record([field.name for field in fields(kind)])
    if _is_model(kind) or _is_textual(kind):
        return None
    if found := next((shape for base, shape in _GENERIC.items() if issubclass(kind, base)), None):
        return found
    names: Sequence[str] | None = getattr(kind, "__struct_fields__", None)
    return None if names is None else _record(names)


def _record(names: Sequence[str]) -> _Shape:
    return (
        ValueWalk.mapping,
        lambda value: ((name, getattr(value, name)) for name in names),
        lambda _: len(names),
    )


def _is_model(kind: type[object]) -> bool:
    return hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump")


def _dump_model(model: Any) -> object:  # Any: pydantic is not imported here
    try:
        return model.model_dump(warnings=False)
    except Exception:  # a cycle, or a serializer that raises; the fields can still be read
        held: dict[str, object] = model.__dict__
        return held.copy()


def is_plain(kind: type[object]) -> bool:
    """Return True if values of exactly this type have no code of their own."""
    return kind in _PLAIN or f"{kind.__module__}.{kind.__qualname__}" in _TEXTUAL


_PLAIN = frozenset({*_BUILT_IN, bytes, bytearray, memoryview})


def _is_textual(kind: type[object]) -> bool:
    return any(f"{base.__module__}.{base.__qualname__}" in _TEXTUAL for base in _TYPE_MRO.__get__(kind))


def _describe(value: object, kind: type[object]) -> str:
    if issubclass(kind, BaseException):
        return f"{_name(kind)}: {_ADDRESS.sub('', str(value))}"
    if kind.__repr__ is object.__repr__:
        return f"[object: {_name(kind)}]"
    return f"[object: {_name(kind)}] {_ADDRESS.sub('', str.__str__(repr(value)))}"
