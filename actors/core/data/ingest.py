"""Convert any Python value to JSON once, for tool results, arguments and metadata.

In:  any value from foreign code. It may be cyclic or endless, have misleading types, or raise on access.
Out: JSON within its size limits, and codes of the lossy conversions. No later step can fail on the result.

First, `PlainConversion` turns the value into plain data within a budget: strings stay complete, containers are
shortened. Then `truncate` cuts strings. `PlainConversion` calls as little foreign code as possible and trusts none of
it. Removed content and values without a JSON form are replaced by text in brackets. The result depends on neither
hash seeds nor memory addresses: the members of a set are sorted by their JSON, and a set is converted completely or not
at all.

A thread other than the one that created a value may read only plain data: exact built-in or standard library types,
each of which is copied in one atomic step. Values that run their own code may be read only in the thread that created
them (`plain_only`).
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
from msgspec.json import encode

from actors.core.data.jsonio import INT_MAX, INT_MIN, Json, JsonValue, dump, quote, quote_unchanged, sanitise
from actors.core.data.truncate import Gap, SizeLimits, truncate, unused_name

Mark: TypeAlias = Literal[
    "bytes",  # binary data, converted to text or base64
    "cycle",  # a reference to an enclosing value, replaced by text
    "depth",  # a container that was nested too deeply
    "key",  # a key that was not a string, or contained NUL
    "not_finite",  # NaN or an infinity, replaced by text
    "object",  # a value without a JSON form, replaced by its description
    "repr_failed",  # a value that raised an error when it was read
    "surrogate",  # text with lone surrogates, which were replaced
    "truncated",  # content removed to meet the size limits
    "wide_int",  # an integer beyond 64 bits, converted to text
]

_MAX_KEY = 512
_MAX_NAME = 60
_WIDE_BITS = 4096

# Types whose `str` is a complete representation. They are listed by name, so that their modules are not imported here.
_TEXTUAL = frozenset(
    """datetime.datetime datetime.date datetime.time datetime.timedelta datetime.tzinfo decimal.Decimal builtins.complex
    fractions.Fraction uuid.UUID pathlib.PurePath ipaddress._IPAddressBase collections.UserString""".split()  # noqa: SIM905
)
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{4,}")
_TYPE_NAME = type.__dict__["__name__"]
_TYPE_MRO = type.__dict__["__mro__"]


class Ingested(Struct, frozen=True):
    """A value converted to JSON, with codes for the lossy conversions.

    `marks` contains sorted `Mark` codes. If `marks` is empty, `json` represents the value completely.
    """

    json: Json
    marks: tuple[str, ...]


DEFAULT_LIMITS = SizeLimits()
# created at import, because `ingest` returns it when memory is nearly exhausted
_UNREADABLE = Ingested(quote("[a value that could not be read]"), ("repr_failed",))


class ForeignValue(Exception):
    """Raised if only plain data is allowed and the value contains an object that would run code when it is read."""


def ingest(value: object, limits: SizeLimits = DEFAULT_LIMITS, *, plain_only: bool = False) -> Ingested:
    """Convert any Python value to at most `limits.max_bytes` of JSON.

    `parse` always accepts the result. Iterators are never consumed. Ingesting the parsed result again changes nothing.
    If the value's own code raises an error, a description of the value takes its place in the result.

    Raises:
        ForeignValue: `plain_only` is True and the value is not plain data.
        KeyboardInterrupt: A signal handler raised this or another exception during the conversion.
    """
    marks: set[str] = set()
    try:
        least = min(limits.max_bytes, limits.max_string)
        # within the limits even if every character is escaped
        if type(value) is str and 6 * len(value) + 2 <= least and (literal := quote_unchanged(value)):
            return Ingested(literal, ())
        if type(value) is dict:
            small = _small_object(value, limits)  # pyright: ignore[reportUnknownArgumentType]  # a dict of any content
            if small is not None:
                return Ingested(small, ())
        conversion = PlainConversion(limits, marks, plain_only=plain_only)
        text = truncate(conversion.to_plain(value, 0), conversion.is_long, limits, marks)
    except ForeignValue:
        raise
    except Exception:  # only possible when the caller's stack or memory is nearly exhausted
        return _UNREADABLE
    return Ingested(text, tuple(sorted(marks)))


_SCALARS = frozenset({str, int, bool, type(None)})
_WIDEST = 32  # maximum bytes of a number or a constant, with the punctuation around a key and its value


def _small_object(
    value: dict[str, Any], limits: SizeLimits
) -> Json | None:  # Any: the values are not validated yet
    """Return the JSON of an object with a few short ASCII scalars; None for any other object.

    Most arguments have this form, and `PlainConversion` would not change them, so this shortcut saves time.
    """
    if len(value) > limits.max_items:
        return None
    # within this limit, no string exceeds its share of the budget, even if every character is escaped
    left = min(limits.max_bytes, limits.max_string) // 16
    for key, item in value.items():
        if type(key) is not str or len(key) > _MAX_KEY or "\0" in key or type(item) not in _SCALARS:
            return None
        if type(item) is int and not INT_MIN <= item <= INT_MAX:
            return None
        text = item if type(item) is str else ""
        left -= 6 * (len(key) + len(text)) + _WIDEST
        if left < 0 or not (key.isascii() and text.isascii()):
            return None
    return Json(encode(value))


class _BudgetExhausted(Exception):  # control flow, not an error
    """Raised if the size budget is used up inside a set, which cannot be shortened because it has no order."""


class PlainConversion:
    """The conversion of one value to plain data.

    It keeps the path to the current value (to detect cycles), the remaining budget in characters, and the codes of
    lossy conversions.
    """

    def __init__(self, limits: SizeLimits, marks: set[str], *, plain_only: bool = False) -> None:
        self._limits = limits
        self._plain_only = plain_only
        self._marks = marks
        self._path: set[int] = set()
        # one string uses at most this part of the budget, so that small values after a long string are kept
        self._share = limits.max_bytes // 16
        # characters; more than the size limit, so that `truncate` can choose the strings to cut
        self._budget = 2 * limits.max_bytes
        self.is_long: bool = False  # True once a string has exceeded its share
        self._in_set = False

    def to_plain(self, value: Any, depth: int) -> JsonValue:  # Any: its type is unknown until run time
        """Return `value` as plain data. `depth` is the number of enclosing containers."""
        self._budget -= 2
        given: object = value
        kind = type(given)
        if value is None or kind is bool:
            return value  # type: ignore[no-any-return]  # None or a bool
        if not issubclass(kind, Enum):
            # The unbound methods return the exact built-in value, even if a subclass overrides them.
            if issubclass(kind, str):
                return self._charge_string(str.__str__(value))
            if issubclass(kind, int):
                return self._plain_int(int.__add__(value, 0))
            if issubclass(kind, float):
                return self._plain_float(float.__pos__(value))
        return self._read_foreign(value, kind, depth)

    def _record_mark(self, code: Mark, text: str) -> str:
        """Record the code of a lossy conversion, and return `text`, which replaces the value."""
        self._marks.add(code)
        return text

    def _charge_string(self, text: str) -> str:
        """Subtract a string's size from the budget, and return the complete string. Only `truncate` cuts strings."""
        self._budget -= min(len(text), self._share)
        self.is_long |= len(text) > self._share
        return text if text.isascii() or len(text) > self._limits.max_string else self._sanitise_string(text)

    def _sanitise_string(self, text: str) -> str:
        clean = sanitise(text)
        return text if clean == text else self._record_mark("surrogate", clean)

    def _plain_int(self, number: int) -> JsonValue:
        if INT_MIN <= number <= INT_MAX:
            self._budget -= len(str(number))
            return number
        # conversion to decimal digits takes quadratic time, so Python limits it
        if number.bit_length() > _WIDE_BITS:
            return self._record_mark("wide_int", f"[integer of {number.bit_length()} bits]")
        return self._record_mark("wide_int", self._charge_string(str(number)))

    def _plain_float(self, number: float) -> JsonValue:
        if isfinite(number):
            self._budget -= len(repr(number))
            return number
        return self._record_mark("not_finite", f"[not finite: {number}]")

    def _read_foreign(self, value: Any, kind: type[object], depth: int) -> JsonValue:  # Any: see `to_plain`
        """Convert a value that may run foreign code. That code may raise any exception."""
        if self._plain_only and not is_plain(kind):
            raise ForeignValue
        if id(value) in self._path:
            return self._record_mark("cycle", "[cycle]")
        self._path.add(id(value))
        try:
            return self._convert_foreign(value, kind, depth)
        except (_BudgetExhausted, ForeignValue):
            raise
        except BaseException as error:  # nothing awaits here, so this cannot be our own cancellation
            if _is_interrupt(error):
                raise
            return self._record_mark("repr_failed", f"[{_type_name(kind)} that could not be read]")
        finally:
            self._path.discard(id(value))

    def _convert_foreign(
        self, value: Any, kind: type[object], depth: int
    ) -> JsonValue:  # Any: its type is unknown until run time
        if issubclass(kind, Enum):
            return self.to_plain(value.value, depth)
        if issubclass(kind, (bytes, bytearray, memoryview)):
            return self._plain_buffer(value)
        if found := _container_reader(kind):
            if depth >= self._limits.max_depth:
                return self._record_mark(
                    "depth", f"[{_type_name(kind)} beyond depth {self._limits.max_depth}]"
                )
            read, items, size = found
            return read(self, items(value), size(value), depth + 1)
        if _is_pydantic_model(kind):
            return self.to_plain(_dump_model(value), depth)
        if _has_complete_str(kind):  # `isoformat` is the standard text of dates and times
            return self._charge_string(str.__str__(getattr(value, "isoformat", value.__str__)()))
        return self._charge_string(self._record_mark("object", _describe_object(value, kind)))

    def _is_exhausted(self) -> bool:
        """Return True if the remaining items must be omitted. Inside a set, raise `_BudgetExhausted` instead.

        A set must be complete, because its members have no order.
        """
        if self._in_set and self._budget < 0:
            raise _BudgetExhausted
        return self._budget <= 0 and not self._in_set

    def _first_items(
        self, items: Iterable[Any], size: int, noun: str
    ) -> Iterator[Any]:  # Any: their types are known only at run time
        """Yield the first items and, if others were omitted, a `Gap` with their number.

        `items` may be endless, and `size` may be wrong.
        """
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
            yield Gap(max(size, len(taken)) - kept, noun)

    def plain_sequence(self, items: Iterable[object], size: int, depth: int) -> JsonValue:
        """Return the items of a list or a similar container as plain data."""
        first = self._first_items(items, size, "items")
        return [item if type(item) is Gap else self.to_plain(item, depth) for item in first]

    def plain_mapping(self, pairs: Iterable[tuple[object, object]], size: int, depth: int) -> JsonValue:
        """Return the entries of a mapping as plain data, with distinct strings as keys."""
        kept: dict[str, JsonValue] = {}
        repeats: dict[str, int] = {}
        for pair in self._first_items(pairs, size, "entries"):
            if type(pair) is Gap:
                kept[unused_name("[cut]", kept, repeats)] = pair
            else:
                key, value = pair
                name = unused_name(self._plain_key(key, depth), kept, repeats)
                kept[name] = self.to_plain(value, depth)
        return kept

    def plain_set(self, items: Iterable[object], size: int, depth: int) -> JsonValue:
        """Return all members of a set sorted by their JSON, or a short text if the set is too large.

        A set cannot be shortened, because its members have no order.
        """
        if size > self._limits.max_items:
            return self._record_mark("truncated", f"[set of {size}, cut]")
        outermost, marks = not self._in_set, set(self._marks)
        self._in_set = True
        try:
            kept = [self.to_plain(item, depth) for item in items if not self._is_exhausted()]
            self._is_exhausted()
            return sorted(kept, key=dump)
        except _BudgetExhausted:
            if not outermost:
                raise
            # the visited members depend on the hash seed, so their marks are dropped
            self._marks.intersection_update(marks)
            return self._record_mark("truncated", f"[set of {size}, cut]")
        finally:
            self._in_set = not outermost

    def _plain_key(self, key: object, depth: int) -> str:
        if type(key) is str:
            name = self._charge_string(key)
        else:
            plain = self.to_plain(key, depth)
            name = plain if isinstance(plain, str) else dump(plain).decode()
            if not isinstance(key, str):
                self._marks.add("key")
        if "\0" in name:
            name = self._record_mark("key", name.replace("\0", "\ufffd"))
        if (over := len(name) - _MAX_KEY) > 0:
            name = self._record_mark("truncated", f"{name[: _MAX_KEY - 40]}[{over + 40} characters cut]")
        return name if name.isascii() else self._sanitise_string(name)

    def _plain_buffer(self, source: bytes | bytearray | memoryview) -> str:
        """Return binary data as text if it is UTF-8, else as base64. Data beyond the length limit of strings is cut."""
        view = memoryview(source)
        size, cap = view.nbytes, self._limits.max_string
        data = bytes(view.cast("B")[:cap]) if view.c_contiguous else view.tobytes()[:cap]
        more = f"[{size - len(data)} bytes cut]" if size > len(data) else ""
        self._marks.update(("bytes", "truncated") if more else ("bytes",))
        try:
            return self._charge_string(getincrementaldecoder("utf-8")().decode(data, final=not more) + more)
        except UnicodeDecodeError:
            return self._charge_string(f"[{size} bytes, base64] {b64encode(data).decode()}{more}")


def _is_interrupt(error: BaseException) -> bool:
    """Return True if a signal handler raised this error. Otherwise, the value that was being read raised it."""
    if isinstance(error, Exception):
        return False
    # imported here, because few values raise and the module is slow to load
    from actors.interrupts import is_from_signal

    return is_from_signal(error)


def _type_name(kind: type[object]) -> str:
    """Return the name of a type without running code of its metaclass."""
    name: str = _TYPE_NAME.__get__(kind)
    return name[:_MAX_NAME]


_ContainerReader: TypeAlias = (
    tuple[  # functions that convert a container, return its items in order, and return its length
        Callable[[PlainConversion, Any, int, int], JsonValue],
        Callable[[Any], Iterable[Any]],
        Callable[[Any], int],
    ]
)
# The unbound methods of built-in types return the real content, even if a subclass overrides them.
_BUILT_IN: Mapping[type, _ContainerReader] = {
    OrderedDict: (PlainConversion.plain_mapping, OrderedDict[Any, Any].items, dict[Any, Any].__len__),
    dict: (PlainConversion.plain_mapping, dict[Any, Any].items, dict[Any, Any].__len__),
    list: (PlainConversion.plain_sequence, list[Any].__iter__, list[Any].__len__),
    tuple: (PlainConversion.plain_sequence, tuple[Any, ...].__iter__, tuple[Any, ...].__len__),
    set: (PlainConversion.plain_set, iter, len),
    frozenset: (PlainConversion.plain_set, iter, len),
}
_GENERIC: Mapping[type, _ContainerReader] = {
    Mapping: (PlainConversion.plain_mapping, lambda value: ((key, value[key]) for key in value), len),
    MappingView: (PlainConversion.plain_sequence, iter, len),
    AbstractSet: (PlainConversion.plain_set, iter, len),
    Sequence: (PlainConversion.plain_sequence, iter, len),
}


def _container_reader(kind: type[Any]) -> _ContainerReader | None:  # Any: see `PlainConversion.to_plain`
    """Return the functions that read containers of this type, or None if the type is not a container."""
    for base, shape in _BUILT_IN.items():
        if issubclass(kind, base):
            return shape
    if hasattr(kind, "__dataclass_fields__"):
        return _fields_reader([field.name for field in fields(kind)])
    if _is_pydantic_model(kind) or _has_complete_str(kind):
        return None
    if found := next((shape for base, shape in _GENERIC.items() if issubclass(kind, base)), None):
        return found
    names: Sequence[str] | None = getattr(kind, "__struct_fields__", None)
    return None if names is None else _fields_reader(names)


def _fields_reader(names: Sequence[str]) -> _ContainerReader:
    return (
        PlainConversion.plain_mapping,
        lambda value: ((name, getattr(value, name)) for name in names),
        lambda _: len(names),
    )


def _is_pydantic_model(kind: type[object]) -> bool:
    return hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump")


def _dump_model(model: Any) -> object:  # Any: pydantic is not imported here
    try:
        return model.model_dump(warnings=False)
    except Exception:  # the model has a cycle or a failing serializer, but its fields can still be read
        held: dict[str, object] = model.__dict__
        return held.copy()


def is_plain(kind: type[object]) -> bool:
    """Return True if values of exactly this type run no foreign code when they are read."""
    return kind in _PLAIN or f"{kind.__module__}.{kind.__qualname__}" in _TEXTUAL


_PLAIN = frozenset({*_BUILT_IN, bytes, bytearray, memoryview})


def _has_complete_str(kind: type[object]) -> bool:
    return any(f"{base.__module__}.{base.__qualname__}" in _TEXTUAL for base in _TYPE_MRO.__get__(kind))


def _describe_object(value: object, kind: type[object]) -> str:
    if issubclass(kind, BaseException):
        return f"{_type_name(kind)}: {_ADDRESS.sub('', str(value))}"
    if kind.__repr__ is object.__repr__:
        return f"[object: {_type_name(kind)}]"
    return f"[object: {_type_name(kind)}] {_ADDRESS.sub('', str.__str__(repr(value)))}"
