"""Profiles of one's own: `[dialects.NAME]` in `actors.toml`, any field of a `Dialect` on top of a known one.

    [dialects.house]
    base = "openai_compatible"
    id_style = "mistral"
    id_pattern = "[a-zA-Z0-9]{9}"
    id_max_len = 9
    user_after_tool = "filler"

The fields and their values are in docs/reference/rulebook.md. The wire family is the base's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from actors.config.complaints import hint, named
from actors.core.dialect import Dialect
from actors.core.families import impossible
from actors.core.identity import CallId
from actors.core.profiles import ALIASES, PROFILES, dialect
from actors.core.projection import mint, tool_name

_FIXED = frozenset({"name", "family"})
_RESULT = 512 * 1024
"""Least of `max_string`: texts are split at it, a tool's result and what is noted behind it are not."""
_PATTERNS = ("id_pattern", "id_accepted", "tool_name_pattern")


def derived(name: str, table: Mapping[str, Any]) -> Dialect:  # Any: each field has its own type
    """Return the profile that a table describes.

    Raises:
        ValueError: One line that says what is wrong with the table, without its values.
    """
    if name in PROFILES or name in ALIASES:
        raise ValueError("is the name of a profile that comes with the project; take another")
    changes = dict(table)
    base = _base(changes.pop("base", None))
    own = {item.name: getattr(base, item.name) for item in fields(Dialect)}
    for key in changes:
        if key not in own or key in _FIXED:
            close = get_close_matches(key, own.keys() - _FIXED, n=1)
            way = f"did you mean {close[0]!r}?" if close else "docs/reference/rulebook.md lists them"
            raise ValueError(f"has no field {named(key)}; {way}")
    try:
        made = _checker().validate_python(own | changes | {"name": name})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{fault['loc'][0]}: {fault['msg'].replace('Input should be', 'must be')}") from None
    for key in (*_PATTERNS, *(["overflow_patterns"] if "overflow_patterns" in changes else [])):
        _compiled(key, getattr(made, key) or ())
    _compiled("caching.models", made.caching.models)
    for problem in _contradictions(made):
        raise ValueError(problem)
    return made


def _contradictions(made: Dialect) -> Iterator[str]:
    """Yield what no request could obey: found here, it is a line of the file and not a conversation that fails."""
    for item in fields(Dialect):
        value, least = getattr(made, item.name), _RESULT if item.name == "max_string" else 1
        if type(value) is int and value < least:
            yield f"{item.name}: must be at least {least}"
    for key in ("first_roles", "last_roles"):
        if "user" not in getattr(made, key):
            yield f"{key}: must hold 'user', who begins a conversation and speaks last in it"
    for key in ("filler_first", "filler_last", "filler_between", "required_choice"):
        if not getattr(made, key).strip():
            yield f"{key}: must not be blank"
    if (reason := impossible(made)) is not None:
        yield reason
    yield from _misfits(made)


def _misfits(made: Dialect) -> Iterator[str]:
    """Yield why the ids and names we make would not be taken."""
    if made.id_style != "none" and made.id_style != "kimi":
        sample = mint(made.id_style, CallId("hist_tool_1"))
        if len(sample) > made.id_max_len or not re.fullmatch(made.id_pattern, sample):
            yield f"id_pattern and id_max_len: take no id of id_style {made.id_style!r}, as {sample!r}"
    if not re.fullmatch(made.tool_name_pattern, name := tool_name("files.read", made.tool_name_pattern)):
        yield f"tool_name_pattern: takes no name made for 'files.read', as {name!r}"


@lru_cache(maxsize=1)
def _checker() -> TypeAdapter[Dialect]:
    """Return what checks the fields' types; made when a file has such a table, since it takes a while."""
    return TypeAdapter(Dialect)


def _base(name: object) -> Dialect:
    if not isinstance(name, str):
        raise ValueError(f"lacks the key 'base': the profile it starts from, one of {', '.join(PROFILES)}")
    if name not in PROFILES and name not in ALIASES:
        raise ValueError(f"base: {no_dialect(name)}")
    return dialect(name)


def no_dialect(name: str) -> str:
    """Return what to say of a profile's name in a file that is none."""
    return f"No dialect {named(name)}; {hint(name, [*PROFILES, *ALIASES], 'known')}"


def _compiled(key: str, patterns: str | tuple[str, ...]) -> None:
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{key}: is no regular expression ({error.msg})") from None
