"""Reading JSON that a provider sent, without trusting its shape.

The helpers give an empty value where the wire has another type than the documentation says. What is kept of it goes
through `jsonio` before it becomes content.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from actors.adapters.document import LongText
from actors.core.ingest import ingest

Fields: TypeAlias = Mapping[str, object]

_NOTHING: Fields = {}
_PIECEWISE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def json_text(value: object) -> str:
    """Return compact JSON of a value that was read from a document. What is nested too deep is cut, visibly."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except RecursionError:
        return ingest(value).json.decode()


def json_pieces(value: object) -> Iterator[str]:
    """Give the text of `json_text` in pieces: a large value takes no more than its text."""
    try:
        yield from _PIECEWISE.iterencode(value)
    except RecursionError:
        yield json_text(value)


def argument_text(value: object) -> str:
    """Return the arguments of a call, or a piece of them, as text.

    Some servers send the object where the documentation has a string, and the other way round. An empty value of any
    type is an empty text: some relays write an empty object as `[]`.
    """
    if isinstance(value, str | LongText):
        return str(value)
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
