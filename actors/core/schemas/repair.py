"""Parse a model's almost valid JSON if it has exactly one meaning, and report the repairs.

In:  a text that should be JSON.
Out: its value and the repairs; None if the text has no meaning as JSON, or more than one.

A repair only ignores characters without meaning: a code fence, a comma before a closing bracket, quotes around the
complete text. Truncated texts, single quotes and Python literals are not repaired, because their meaning is ambiguous.
The message keeps the original text. Repairs of strings inside a value, such as `"3"` for 3, need a schema: see
`actors.core.schemas.readings`.
"""

import re
from typing import Final, Literal, TypeAlias

from actors.core.data.jsonio import MAX_ARGUMENTS, JsonObject, JsonRefused, JsonValue, dump, parse
from actors.core.data.record import StoredRecord
from actors.core.values.identity import CallId

RepairMode: TypeAlias = Literal["unambiguous", "strict"]
"""The treatment of invalid arguments and answers: repair them if they have only one meaning (`unambiguous`), or reject
them (`strict`)."""

RepairKind: TypeAlias = Literal["text", "commas", "around"]
"""The repaired error: JSON inside a string (`text`), trailing commas, or text and code fences around the JSON."""

MODES: Final = ("unambiguous", "strict")


class Repair(StoredRecord, frozen=True):
    """A repaired error in the output of a model. Exactly one interpretation of the output fits the schema.

    Args:
        kind: The error: JSON inside a string (`text`, such as `"3"` for 3), a comma before a closing bracket
            (`commas`), or a code fence, reasoning or other text around the JSON (`around`).
        path: The path of the repaired value, such as `stops[2].city`; empty for the complete value.
        call_id: The call whose arguments were repaired; None if an answer to an ask with `output=` was repaired.
    """

    kind: RepairKind
    path: str = ""
    call_id: CallId | None = None


_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL).fullmatch
_COMMAS = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*+[}\]])', re.DOTALL).sub


def read_arguments(raw: str) -> tuple[JsonObject, tuple[RepairKind, ...]] | None:
    """Return the object that malformed arguments contain, and the repairs; None if their meaning is not unique."""
    fenced = _FENCED(raw)
    read = read_json(fenced[1] if fenced else raw)
    if read is None:
        return None
    value, kinds = read
    before: tuple[RepairKind, ...] = ("around",) if fenced else ()
    if isinstance(value, str):  # the text is a JSON string that contains the object
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
        return parse(remove_trailing_commas(text).encode(), max_bytes=max_bytes), ("commas",)
    except (JsonRefused, UnicodeEncodeError):
        return None


def remove_trailing_commas(text: str) -> str:
    """Return a JSON text without the commas before closing brackets. Commas inside strings are kept."""
    return _COMMAS(r"\1", text)
