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
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from actors.core.dialect import Dialect
from actors.core.profiles import PROFILES, dialect
from actors.errors import UnknownTarget

_FIXED = frozenset({"name", "family"})
_PATTERNS = ("id_pattern", "tool_name_pattern")


def derived(name: str, table: Mapping[str, Any]) -> Dialect:  # Any: each field has its own type
    """Return the profile that a table describes.

    Raises:
        ValueError: One line that says what is wrong with the table, without its values.
    """
    if name in PROFILES:
        raise ValueError("is the name of a profile that comes with the project; take another")
    changes = dict(table)
    base = _base(changes.pop("base", None))
    own = {item.name: getattr(base, item.name) for item in fields(Dialect)}
    for key in changes:
        if key not in own or key in _FIXED:
            close = get_close_matches(key, own.keys() - _FIXED, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "docs/reference/rulebook.md lists them"
            raise ValueError(f"has no field {key[:80]!r}; {hint}")
    try:
        made = _checker().validate_python(own | changes | {"name": name})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{fault['loc'][0]}: {fault['msg'].replace('Input should be', 'must be')}") from None
    for key in (*_PATTERNS, *(["overflow_patterns"] if "overflow_patterns" in changes else [])):
        _compiled(key, getattr(made, key))
    return made


@lru_cache(maxsize=1)
def _checker() -> TypeAdapter[Dialect]:
    """Return what checks the fields' types; made when a file has such a table, since it takes a while."""
    return TypeAdapter(Dialect)


def _base(name: object) -> Dialect:
    if not isinstance(name, str):
        raise ValueError(f"lacks the key 'base': the profile it starts from, one of {', '.join(PROFILES)}")
    try:
        return dialect(name)
    except UnknownTarget as error:
        raise ValueError(f"base: {error}") from None


def _compiled(key: str, patterns: str | tuple[str, ...]) -> None:
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{key}: is no regular expression ({error.msg})") from None
