"""Reading JSON that a provider sent, without trusting its shape.

The helpers give an empty value where the wire has another type than the documentation says. What is kept of it goes
through `jsonio` before it becomes content.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import TypeAlias

from actors.adapters.document import SLICE, LongText
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import MAX_DEPTH

Fields: TypeAlias = Mapping[str, object]

_NOTHING: Fields = {}


def json_text(value: object) -> str:
    """Return compact JSON of a value that was read from a document. What is nested too deep is cut, visibly."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except RecursionError:
        return ingest(value).json.decode()


@dataclass(slots=True, frozen=True)
class LongJson:
    """The text of `json_text` of a large value, made in slices: all of it at once takes more than it says."""

    value: object

    def __str__(self) -> str:
        return json_text(self.value)

    def slices(self) -> Iterator[str]:
        """Yield the text in slices of a bounded size where it can be cut."""
        begun: list[str] = []
        size = 0
        for piece in _pieces(self.value):
            begun.append(piece)
            size += len(piece)
            if size >= SLICE:
                yield "".join(begun)
                begun, size = [], 0
        yield "".join(begun)


def _pieces(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the JSON text of a value of a document, a long text in slices."""
    if isinstance(value, LongText) or (isinstance(value, str) and len(value) > SLICE):
        yield '"'
        for piece in _slices(value) if isinstance(value, str) else value.slices():
            yield encode_basestring(piece)[1:-1]
        yield '"'
    elif isinstance(value, dict) and value and depth < MAX_DEPTH:
        for before, (key, held) in zip(chain("{", repeat(",")), value.items(), strict=False):
            yield f"{before}{encode_basestring(key)}:"
            yield from _pieces(held, depth + 1)
        yield "}"
    elif isinstance(value, list) and value and depth < MAX_DEPTH:
        for before, held in zip(chain("[", repeat(",")), value, strict=False):
            yield before
            yield from _pieces(held, depth + 1)
        yield "]"
    else:
        yield json_text(value)


def _slices(text: str) -> Iterator[str]:
    return (text[at : at + SLICE] for at in range(0, len(text), SLICE))


Long: TypeAlias = LongText | LongJson
"""A text that is read in slices, so that no string holds all of it."""


def argument_text(value: object) -> str | LongText:
    """Return the arguments of a call, or a piece of them, as text.

    Some servers send the object where the documentation has a string, and the other way round. An empty value of any
    type is an empty text: some relays write an empty object as `[]`.
    """
    if isinstance(value, str | LongText):
        return value
    return json_text(value) if value else ""


def fields(value: object) -> Fields:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def items(value: object) -> Sequence[object]:
    """Return `value` if it is an array, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def first(value: object) -> Fields:
    """Return the answer with index 0 of a list of them: no more than one is asked for."""
    for each in value if type(value) is list else ():
        if type(each) is dict and (not (index := each.get("index")) or index == "0"):
            return each
    return _NOTHING


def string(value: object) -> str:
    """Return `value` if it is a string, else an empty one."""
    return str(value) if isinstance(value, str | LongText) else ""


def long_string(value: object) -> str | LongText:
    """Return `value` if it is a string, a long one as it stands in its document, else an empty one."""
    return value if isinstance(value, str | LongText) else ""


def number(value: object) -> int | None:
    """Return `value` if it is a whole number that is not negative, else None. True is not a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
