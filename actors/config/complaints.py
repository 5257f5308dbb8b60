"""Describe an error in a configuration file in one line, which says where the error is but does not contain the value.

`actors.config.load` uses this module. A value may be a misplaced secret. A key may be a secret as well, if it was
written on the wrong side of the `=`. So a message quotes a key or a name only if it is short or consists of plain
words.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import ValidationError

from actors.config.fields import NAME, FrozenModel
from actors.config.settings import FileSettings
from actors.core.data.jsonio import is_object
from actors.core.settings.table import SETTINGS
from actors.errors import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_QUOTE = "'"
_HARMLESS = re.compile(r"[A-Za-z0-9_.:-]{1,16}|[a-z]{1,16}(_[a-z]{1,16}){1,4}")
_QUOTING = re.compile(r"(declare|key|namespace) [('\"].*[)'\"]( twice)?( \(at [^()]*\))", re.DOTALL)


def quote_clipped(name: str) -> str:
    """Return the first 80 characters of a name in quotes."""
    return repr(name[:80])


def quote_key(key: str) -> str:
    """Return a key or name in quotes, or a placeholder if it may be a secret."""
    return repr(key) if _HARMLESS.fullmatch(key) else "(not shown, it may be a secret)"


def table_header(*place: str) -> str:
    """Return the header of a table, such as `[backends.gpt]`. A part that is not a valid name becomes a placeholder."""
    return f"[{'.'.join(part if NAME.fullmatch(part) else '(not shown)' for part in place)}]"


def syntax_message(error: tomllib.TOMLDecodeError) -> str:
    """Return the message of a TOML syntax error. Quoted keys are removed, because they may be secrets."""
    return _QUOTING.sub(r"\1\2\3", str(error))


_MAX_NAMES = 40
"""Maximum number of names in one message."""


def hint(name: str, known: Iterable[str], label: str) -> str:
    """Return a suggestion for an unknown name: the nearest known name or, failing that, the list of known names.

    `label` is the word before the list, such as `backends`.
    """
    names = list(known)
    if close := nearest(name, names):
        return f"did you mean {close!r}?"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{label}: {', '.join(names[:_MAX_NAMES]) or 'none'}{more}"


def validation_message(error: ValidationError, source: str, text: str) -> str:
    """Describe the first validation error in one line. The line omits the invalid value, which may be a secret.

    Args:
        error: The error of pydantic.
        source: The name of the file.
        text: The contents of the file, to find the line of the error.
    """
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    fault = faults[0]
    place = tuple(str(part) for part in fault["loc"] if not isinstance(part, int))
    key = place[-1] if place else ""
    where = f"{source}{location_of(text, place)}: "
    owner = table_header(*place[:-1]) if place[1:] else "the file"
    if fault["type"] == "extra_forbidden":
        return f"{where}{owner} has no key {quote_key(key)}; {hint(key, _known_keys(place[:-1]), 'keys')}"
    if fault["type"] == "missing":
        return f"{where}{owner} lacks the key {key!r}{_misspelling_hint(key, place[:-1], faults)}"
    reason = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    reason = reason.replace("a valid tuple", "a list")
    reason = reason.replace("a valid dictionary or instance of Auth", _AUTH)
    return f"{where}{owner} {quote_key(key).strip(_QUOTE)}: {' '.join(reason.split())[:300]}"


def _misspelling_hint(key: str, table: Sequence[str], faults: "Sequence[ErrorDetails]") -> str:
    """Return a hint if the table has an unknown key that resembles the missing `key`; otherwise an empty string."""
    for fault in faults:
        *owner, name = (str(part) for part in fault["loc"] if not isinstance(part, int))
        if fault["type"] == "extra_forbidden" and owner == [*table] and nearest(name, [key]) is not None:
            return f"; rename {quote_key(name)}, if it is a misspelling"
    return ""


def _known_keys(table: Sequence[str]) -> Iterable[str]:
    """Return the keys that a table accepts. The keys of request settings, which many tables share, come last."""
    model: type[FrozenModel] = FileSettings
    parts = iter(table)
    for part in parts:
        annotation = model.model_fields[part].annotation
        if get_origin(annotation) is dict:
            next(parts, None)
        found = _table_model(annotation)
        if found is None:
            return ()
        model = found
    return sorted(model.model_fields, key=lambda name: name in SETTINGS)


def _table_model(annotation: Any) -> type[FrozenModel] | None:  # Any: an annotation may be any object
    """Return the pydantic model inside a field's type, such as `X` in `dict[str, X] | None`; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, FrozenModel):
        return annotation
    return next(filter(None, map(_table_model, get_args(annotation))), None)


_AUTH = "the name of a variable, or a table with one of key, bearer, command and aws"
_HEADER = re.compile(r"\s*\[\[?(?P<key>[^\[\]]+)\]\]?\s*(#.*)?")
_ENTRY = re.compile(r"(?P<indent>\s*)(?P<key>[^=#\[\]{}]+?)\s*=.*")


def location_of(text: str, place: Sequence[str]) -> str:
    """Return the position of a key or table in the text, such as `, line 3, column 1`.

    If the text does not contain the key or table, return the position of the nearest enclosing table.
    """
    table: tuple[str, ...] = ()
    best, found = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if heading := _HEADER.fullmatch(line):
            table = here = _key_parts(heading["key"])
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
    """Split a dotted TOML key into its parts. Return an empty tuple if the key is invalid."""
    try:
        value: Any = tomllib.loads(f"{key} = 0")  # Any: TOML values have many types
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str] = []
    while is_object(value) and value:
        name, value = next(iter(value.items()))
        parts.append(name)
    return tuple(parts)
