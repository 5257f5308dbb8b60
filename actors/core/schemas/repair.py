"""Parse almost-JSON texts of a model that have exactly one reading, and report the repairs.

In:  a text that should be JSON.
Out: its value and the repairs; None if the text has no reading, or more than one.

A repair only ignores parts that have no meaning in any reading: a code fence, a comma before a closing bracket, quotes
around the complete text. Truncated texts, single quotes and Python literals are not repaired, because their meaning is
ambiguous. The message keeps the original text. Repairs of strings inside a value, such as `"3"` for 3, need a schema:
see `actors.core.schemas.readings`.
"""

import re
from typing import Final, Literal, TypeAlias

from actors.core.data.jsonio import MAX_ARGUMENTS, JsonObject, JsonRefused, JsonValue, dump, parse
from actors.core.data.record import StoredRecord
from actors.core.values.identity import CallId

RepairMode: TypeAlias = Literal["unambiguous", "strict"]
"""Repair arguments and answers that have one reading (`unambiguous`), or reject them (`strict`)."""

RepairKind: TypeAlias = Literal["text", "commas", "around"]
"""The repaired error: JSON inside a string, trailing commas, or text and code fences around the JSON."""

MODES: Final = ("unambiguous", "strict")


class Repair(StoredRecord, frozen=True):
    """A repaired error in the output of a model, of which exactly one reading fits the schema.

    Args:
        kind: The error: `text` (`"3"` for 3, `"[1]"` for a list), `commas` (before a closing bracket), `around` (text,
            a code fence or reasoning around the JSON).
        path: The path of the repaired value, such as `stops[2].city`; empty for the complete value.
        call_id: The call whose arguments were repaired; None for an answer of `output=`.
    """

    kind: RepairKind
    path: str = ""
    call_id: CallId | None = None


_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL).fullmatch
_COMMAS = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL).sub


def read_arguments(raw: str) -> tuple[JsonObject, tuple[RepairKind, ...]] | None:
    """Return the object of malformed arguments and its repairs; None if they have no unique reading."""
    fenced = _FENCED(raw)
    read = read_json(fenced[1] if fenced else raw)
    if read is None:
        return None
    value, kinds = read
    before: tuple[RepairKind, ...] = ("around",) if fenced else ()
    if isinstance(value, str):  # the complete object inside a JSON string
        before = ("around", "text") if fenced else ("text",)
        inner = read_json(value)
        value = None if inner is None else inner[0]
    if not isinstance(value, dict):
        return None
    return JsonObject(dump(value)), (*before, *kinds)


def read_json(text: str, max_bytes: int = MAX_ARGUMENTS) -> tuple[JsonValue, tuple[RepairKind, ...]] | None:
    """Parse a JSON text that may have trailing commas. Return its value and the repairs; None if it is not JSON."""
    try:
        return parse(text.encode(), max_bytes=max_bytes), ()
    except ValueError:  # JsonRefused, and UnicodeEncodeError for lone surrogates
        pass
    try:
        return parse(without_commas(text).encode(), max_bytes=max_bytes), ("commas",)
    except (JsonRefused, UnicodeEncodeError):
        return None


def without_commas(text: str) -> str:
    """Remove the commas before closing brackets from a JSON text, except inside strings."""
    return _COMMAS(lambda found: "" if found[0] == "," else found[0], text)
