"""JSON in one strict place: text in and out, and any Python value made JSON once.

`text` reads and writes JSON. `ingest` is the one door for values made by other people's code (tool results,
arguments, metadata): `walk` makes plain data of them, `fit` brings it within its size. What was cut or has no
JSON form leaves a visible text in brackets where it stood, and a mark code beside the text. After that
nothing later can fail on the value.
"""

from itertools import chain

from actors.core.jsonio.fit import fit
from actors.core.jsonio.limits import MARKS, Ingested, SizeLimits
from actors.core.jsonio.pointer import pointed
from actors.core.jsonio.text import (
    INT_MAX,
    INT_MIN,
    MAX_BYTES,
    MAX_DEPTH,
    MAYBE_BLANK,
    Json,
    JsonObject,
    JsonRefused,
    JsonValue,
    Quoted,
    dump,
    encodable,
    is_blank,
    nest,
    parse,
    parse_object,
    quote,
    sanitised,
    unquote,
)
from actors.core.jsonio.walk import ValueWalk

__all__ = [
    "MARKS",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAYBE_BLANK",
    "Ingested",
    "Json",
    "JsonObject",
    "JsonRefused",
    "JsonValue",
    "Quoted",
    "SizeLimits",
    "dump",
    "ingest",
    "is_blank",
    "nest",
    "parse",
    "parse_object",
    "pointed",
    "quote",
    "sanitised",
    "unquote",
]

DEFAULT_LIMITS = SizeLimits()
_UNREADABLE = Ingested(
    Json(b'"[a value that could not be read]"'), ("repr_failed",)
)  # made while there is room


def ingest(value: object, limits: SizeLimits = DEFAULT_LIMITS) -> Ingested:
    """Turn any Python value into JSON, once. Never raises, and never gives more than `limits.max_bytes`.

    The text parses under `parse` and does not depend on hash seeds or memory addresses. Iterators are never
    consumed. Ingesting the result again changes nothing.
    """
    marks: set[str] = set()
    try:
        least = min(limits.max_bytes, limits.max_string)
        if type(value) is str and 6 * len(value) + 2 <= least and encodable(value):  # whole, however escaped
            return Ingested(quote(value), ())
        if type(value) is dict and _is_plain(value, least, limits):
            return Ingested(dump(value), ())
        walk = ValueWalk(limits, marks)
        text = fit(walk.plain(value, 0), walk.is_long, limits, marks)
    except Exception:  # what is left: the caller's stack is nearly full, or memory is
        return _UNREADABLE
    return Ingested(text, tuple(sorted(marks)))


def _is_plain(value: dict[object, object], least: int, limits: SizeLimits) -> bool:
    """Say whether an object is plain data already and small in any case, as most arguments of a tool are."""
    if len(value) > limits.max_items or not _PLAIN.issuperset(map(type, value.values())):
        return False
    if not {str}.issuperset(map(type, value)):
        return False
    text = "".join([item for item in chain(value, value.values()) if type(item) is str])
    numbers = [item for item in value.values() if type(item) is int]
    return (
        len(text) <= _SMALL
        and 16 * (6 * len(text) + 30 * len(value)) <= least
        and limits.max_depth > 0
        and "\0" not in text
        and encodable(text)
        and all(INT_MIN <= number <= INT_MAX for number in numbers)
    )


_SMALL = 512  # characters, so that no key is too long either
_PLAIN = frozenset({str, int, bool, type(None)})
