"""Arguments that are JSON but for what stands around or between: read without loss, or not at all.

In:  the text a model wrote as a call's arguments, when that is no JSON object.
Out: the object it is without a code fence around it and without trailing commas; None if it is none even so.

Nothing is guessed: what is removed has no meaning in any reading of the text. A cut text, single quotes or words
of Python are not touched, since more than one object could have been meant. The call keeps the text as it was.
"""

import re

from actors.core.jsonio import JsonObject, JsonRefused, dump, parse

_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL).fullmatch
_COMMAS = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL).sub


def repaired(raw: str) -> JsonObject | None:
    """Return the object that the text says, if it can be read without loss."""
    fenced = _FENCED(raw)
    text = _COMMAS(lambda found: "" if found[0] == "," else found[0], fenced[1] if fenced else raw)
    try:
        value = parse(text.encode())
    except (JsonRefused, UnicodeEncodeError):
        return None
    return JsonObject(dump(value)) if isinstance(value, dict) else None
