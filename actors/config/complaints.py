"""Describe an error in a configuration file in one line: the place, without the value.

`actors.config.load` uses this module. A value may be a misplaced secret, and a key may be on the wrong side of the `=`.
Keys and values that should be names are therefore only quoted if they are short or consist of plain words. Table
headers are names, and quoted.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import ValidationError

from actors.config.fields import NAME, Frozen
from actors.config.settings import FileSettings
from actors.core.data.jsonio import is_object
from actors.core.settings.table import SETTINGS
from actors.errors import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_QUOTE = "'"
_HARMLESS = re.compile(r"[A-Za-z0-9_.:-]{1,16}|[a-z]{1,16}(_[a-z]{1,16}){1,4}")
_QUOTING = re.compile(r"(declare|key|namespace) [('\"].*[)'\"]( twice)?( \(at [^()]*\))", re.DOTALL)


def clip(name: str) -> str:
    return repr(name[:80])


def quote_key(key: str) -> str:
    """Return a key, or a value that should be a name, in the form for messages."""
    return repr(key) if _HARMLESS.fullmatch(key) else "(not shown, it may be a secret)"


def header(*place: str) -> str:
    """Return the header of a table in the form for messages."""
    return f"[{'.'.join(part if NAME.fullmatch(part) else '(not shown)' for part in place)}]"


def syntax(error: tomllib.TOMLDecodeError) -> str:
    """Return a TOML syntax error's message without the keys that it quotes."""
    return _QUOTING.sub(r"\1\2\3", str(error))


_MOST_NAMES = 40
"""Maximum names in one message."""


def hint(name: str, known: Iterable[str], label: str) -> str:
    names = list(known)
    if close := nearest(name, names):
        return f"did you mean {close!r}?"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{label}: {', '.join(names[:_MOST_NAMES]) or 'none'}{more}"


def describe(error: ValidationError, source: str, text: str) -> str:
    """Return one line for the first error. Inputs are omitted: the input of a missing key contains its siblings."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    fault = faults[0]
    place = tuple(str(part) for part in fault["loc"] if not isinstance(part, int))
    key = place[-1] if place else ""
    where = f"{source}{location_of(text, place)}: "
    owner = header(*place[:-1]) if place[1:] else "the file"
    if fault["type"] == "extra_forbidden":
        return f"{where}{owner} has no key {quote_key(key)}; {hint(key, _known_keys(place[:-1]), 'keys')}"
    if fault["type"] == "missing":
        return f"{where}{owner} lacks the key {key!r}{_misspelling_hint(key, place[:-1], faults)}"
    reason = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    reason = reason.replace("a valid tuple", "a list")
    reason = reason.replace("a valid dictionary or instance of Auth", _AUTH)
    return f"{where}{owner} {quote_key(key).strip(_QUOTE)}: {' '.join(reason.split())[:300]}"


def _misspelling_hint(key: str, table: Sequence[str], faults: "Sequence[ErrorDetails]") -> str:
    """Return a hint if an unknown key of the table was probably meant as a missing key, otherwise ""."""
    for fault in faults:
        *owner, name = (str(part) for part in fault["loc"] if not isinstance(part, int))
        if fault["type"] == "extra_forbidden" and owner == [*table] and nearest(name, [key]) is not None:
            return f"; is it what {quote_key(name)} was meant to be?"
    return ""


def _known_keys(table: Sequence[str]) -> Iterable[str]:
    """Return the keys that a table accepts; keys of the settings table are last."""
    model: type[Frozen] = FileSettings
    parts = iter(table)
    for part in parts:
        annotation = model.model_fields[part].annotation
        if get_origin(annotation) is dict:
            next(parts, None)
        found = _table(annotation)
        if found is None:
            return ()
        model = found
    return sorted(model.model_fields, key=lambda name: name in SETTINGS)


def _table(annotation: Any) -> type[Frozen] | None:  # Any: a type, of any kind
    """Return the model of the table that a field of this type is or contains."""
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        return annotation
    return next(filter(None, map(_table, get_args(annotation))), None)


_AUTH = "the name of a variable, or a table with one of key, bearer, command and aws"
_HEADER = re.compile(r"\s*\[\[?(?P<key>[^\[\]]+)\]\]?\s*(#.*)?")
_ENTRY = re.compile(r"(?P<indent>\s*)(?P<key>[^=#\[\]{}]+?)\s*=.*")


def location_of(text: str, place: Sequence[str]) -> str:
    """Return `, line 3, column 1` for the key or table at `place`, or for its nearest enclosing table in the text."""
    table: tuple[str, ...] = ()
    best, found = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = here = _key_parts(header["key"])
            column = line.index("[") + 1
        elif entry := _ENTRY.fullmatch(line):
            here = (*table, *_key_parts(entry["key"]))
            column = len(entry["indent"]) + 1
        else:
            continue
        depth = min(len(here), len(place))
        if best < depth and here[:depth] == tuple(place[:depth]):
            best, found = depth, f", line {number}, column {column}"
    return found


def _key_parts(key: str) -> tuple[str, ...]:
    """Return the parts of a TOML key."""
    try:
        value: Any = tomllib.loads(f"{key} = 0")  # Any: nested tables
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str] = []
    while is_object(value) and value:
        name, value = next(iter(value.items()))
        parts.append(name)
    return tuple(parts)
