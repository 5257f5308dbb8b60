"""Values that a model wrote with a slip: read where exactly one reading is possible, and how that is reported.

In:  a text that should be JSON.
Out: its value, and what had to be ignored or read otherwise; None if the text has no reading, or more than one.

Nothing is guessed: what is ignored (a code fence, a comma before a closing bracket, quotes around the whole) has no
meaning in any reading of the text. A cut text, single quotes and words of Python are not touched, since more than one
value could have been meant. The message keeps the text as it was. Texts inside of a value that stand for numbers and
lists need a schema: see `actors.core.schemas.readings`.
"""

import re
from typing import Final, Literal, TypeAlias

from actors.core.data.jsonio import MAX_ARGUMENTS, JsonObject, JsonRefused, JsonValue, dump, parse
from actors.core.data.record import StoredRecord
from actors.core.values.identity import CallId

RepairMode: TypeAlias = Literal["unambiguous", "strict"]
"""What is done about arguments and answers with a slip: read them if one reading is possible, or refuse them."""

RepairKind: TypeAlias = Literal["text", "commas", "around"]
"""The slip: JSON written inside of a text, trailing commas, or something around the JSON (words, a code fence)."""

MODES: Final = ("unambiguous", "strict")


class Repair(StoredRecord, frozen=True):
    """A slip of a model that was repaired, because exactly one reading of what it wrote fits the schema.

    Args:
        kind: The slip: `text` (`"3"` for 3, `"[1]"` for a list), `commas` (before a closing bracket), `around` (words,
            a code fence or reasoning around the JSON).
        path: The repaired place, as `stops[2].city`; empty for the whole.
        call_id: The call whose arguments were repaired; None for an answer of `output=`.
    """

    kind: RepairKind
    path: str = ""
    call_id: CallId | None = None


_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL).fullmatch
_COMMAS = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL).sub


def read_arguments(raw: str) -> tuple[JsonObject, tuple[RepairKind, ...]] | None:
    """Return the object that malformed arguments say, and the slips; None if they cannot be read without loss."""
    fenced = _FENCED(raw)
    read = read_json(fenced[1] if fenced else raw)
    if read is None:
        return None
    value, kinds = read
    before: tuple[RepairKind, ...] = ("around",) if fenced else ()
    if isinstance(value, str):  # the whole object, written as a text
        before = ("around", "text") if fenced else ("text",)
        inner = read_json(value)
        value = None if inner is None else inner[0]
    if not isinstance(value, dict):
        return None
    return JsonObject(dump(value)), (*before, *kinds)


def read_json(text: str, max_bytes: int = MAX_ARGUMENTS) -> tuple[JsonValue, tuple[RepairKind, ...]] | None:
    """Return the value of a JSON text whose only slip may be trailing commas, and the slips; None if it has none."""
    try:
        return parse(text.encode(), max_bytes=max_bytes), ()
    except ValueError:  # JsonRefused, and UnicodeEncodeError for lone surrogates
        pass
    try:
        return parse(without_commas(text).encode(), max_bytes=max_bytes), ("commas",)
    except (JsonRefused, UnicodeEncodeError):
        return None


def without_commas(text: str) -> str:
    """Return a JSON text without the commas before its closing brackets; its strings stay as they are."""
    return _COMMAS(lambda found: "" if found[0] == "," else found[0], text)
