"""Profiles of one's own: `[dialects.NAME]` in `actors.toml`, fields of a dialect by concern on top of a known one.

    [dialects.house]
    base = "openai_compatible"
    ids.style = "mistral"
    ids.pattern = "[a-zA-Z0-9]{9}"
    ids.max_len = 9
    turns.user_after_tool = "filler"

The fields and their values are in docs/reference/rulebook.md. The wire family is the base's, and its records say which
fields there are and what they may hold.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from actors.config.complaints import hint, named
from actors.core.data.record import replace
from actors.core.dialects.dialect import AnthropicDialect, ChatDialect, Dialect, GeminiDialect
from actors.core.dialects.profiles import ALIASES, PROFILES, dialect
from actors.core.models.concerns import Demands
from actors.core.transcript.projection import mint, tool_name
from actors.core.values.identity import CallId
from actors.errors import nearest

R = TypeVar("R", bound=Demands)

_LEAST = {
    "max_string": 512 * 1024
}  # texts are split at it, a tool's result and what is noted behind it are not
_PATTERNS = (
    "pattern",
    "accepted",
    "tool_name_pattern",
)
_NEVER_BLANK = ("filler_first", "filler_last", "filler_between", "required_choice")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})*[A-Za-z0-9+/_-]{2,4}={0,2}")


def derived(name: str, table: Mapping[str, Any]) -> Dialect:  # Any: each field has its own type
    """Return the profile that a table describes.

    Raises:
        ValueError: One line that says what is wrong with the table, without its values.
    """
    if name in PROFILES or name in ALIASES:
        raise ValueError("is the name of a profile that comes with the project; take another")
    changes = dict(table)
    base = _base(changes.pop("base", None))
    made: Dialect = replace(_changed(base, changes, _names(base)), name=name)
    for problem in _contradictions(made):
        raise ValueError(problem)
    return made


def _changed(
    record: R, table: Mapping[str, Any], known: Mapping[str, str], place: str = ""
) -> R:  # Any: as above
    """Return a record of a profile, or the whole of it, with some fields changed."""
    types, made = get_type_hints(type(record)), dict[str, Any]()  # Any: as above
    for key, value in table.items():
        own = getattr(record, key, None) if key in types and key != "model" else None
        if key == "name" or (f"{place}{key}" not in known.values() and not isinstance(own, Demands)):
            close = nearest(key, known)
            way = f"did you mean {known[close]!r}?" if close else "docs/reference/rulebook.md lists them"
            raise ValueError(f"has no field {named(key)}{f' in {place[:-1]!r}' if place else ''}; {way}")
        if not isinstance(own, Demands):
            made[key] = _checked(f"{place}{key}", key, types[key], value)
        elif isinstance(value, dict):
            made[key] = _changed(own, value, known, f"{key}.")
        else:
            raise ValueError(f"{key}: must be a table; its fields are written {key}.NAME")
    return replace(record, **made)


def _names(base: Dialect) -> dict[str, str]:
    """Return the fields that a table may change: where each stands, by its own name."""
    nested = {
        field: f"{name}.{field}"
        for name in base.__struct_fields__
        if isinstance(record := getattr(base, name), Demands)
        and name != "model"  # the [models] table has those
        for field in record.__struct_fields__
    }
    return {"rules": "rules"} | nested


def _checked(place: str, key: str, declared: Any, value: object) -> object:  # Any: a type
    """Return a value as its field holds it."""
    try:
        held: Any = _adapter(declared).validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{place}: {fault['msg'].replace('Input should be', 'must be')}") from None
    if type(held) is int and held < (least := _LEAST.get(key, 1)):
        raise ValueError(f"{place}: must be at least {least}")
    if key in ("first_roles", "last_roles") and "user" not in held:
        raise ValueError(f"{place}: must hold 'user', who begins a conversation and speaks last in it")
    if key in _NEVER_BLANK and not held.strip():
        raise ValueError(f"{place}: must not be blank")
    for pattern in held if key == "overflow_patterns" else (held or "",) if key in _PATTERNS else ():
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{place}: not a regular expression ({error.msg})") from None
    return held


@lru_cache
def _adapter(declared: Any) -> TypeAdapter[Any]:  # Any: a type
    return TypeAdapter(declared)


def _contradictions(made: Dialect) -> Iterator[str]:
    """Yield what no request could obey: found here, it is a line of the file and not a conversation that fails."""
    if isinstance(made, ChatDialect):
        if not made.turns.drop_empty_text and not made.turns.empty_answers:
            yield "turns.drop_empty_text: needs turns.empty_answers"
        if made.request.stream_usage and made.request.keys and "stream_options" not in made.request.keys:
            yield "request.stream_usage: request.keys do not have 'stream_options'"
    if made.reasoning.binding == "prefix" and not made.turns.calls_together:
        yield (
            "reasoning.binding: 'prefix' needs turns.calls_together; who takes one call a message has no such prefix"
        )
    yield from _unasked(made)
    if made.reasoning.required != "no":
        yield from _misplaced_demand(made)
    yield from _misfits(made)


def _unasked(made: Dialect) -> Iterator[str]:
    """Yield what a prompt cache cannot be asked for."""
    caching = made.caching
    if caching.moving and caching.marks != "block":
        yield "caching.moving: needs caching.marks 'block'"
    if isinstance(made, ChatDialect):
        if caching.marks == "part" and made.turns.empty_result is None:
            yield "caching.marks: 'part' needs turns.empty_result; a blank text takes no mark (ANT-33)"
        if caching.keyed and made.request.keys and "prompt_cache_key" not in made.request.keys:
            yield "caching.keyed: request.keys do not have 'prompt_cache_key'"
    if caching.long == "ttl" and caching.marks == "none":
        yield "caching.long: 'ttl' needs caching.marks"
    if caching.long == "retention" and not caching.keyed:
        yield "caching.long: 'retention' needs caching.keyed"


def _misplaced_demand(made: Dialect) -> Iterator[str]:
    demand = f"reasoning.required: {made.reasoning.required!r} needs"
    if isinstance(made, ChatDialect):
        carrier = "extra_content" if made.reasoning.required == "before_calls" else "reasoning_content"
        if made.reasoning.carrier != carrier:
            yield f"{demand} reasoning.carrier {carrier!r}"
    if isinstance(made, AnthropicDialect) and made.reasoning.carrier == "none":
        yield f"{demand} reasoning.carrier 'anthropic_blocks'"
    if isinstance(made, AnthropicDialect) and not made.reasoning.first:
        yield f"{demand} reasoning.first"
    if not made.reasoning.placeholder.strip():
        yield "reasoning.placeholder: needs words where reasoning.required is set"
    if isinstance(made, GeminiDialect) and not _BASE64.fullmatch(made.reasoning.placeholder):
        yield "reasoning.placeholder: must be base64 where it stands for a signature"


def _misfits(made: Dialect) -> Iterator[str]:
    """Yield why the ids and names we make would not be taken."""
    ids = made.ids
    if ids.style != "none" and ids.style != "kimi":
        sample = mint(ids.style, CallId("hist_tool_1"))
        if len(sample) > ids.max_len or not re.fullmatch(ids.pattern, sample):
            yield f"ids.pattern and ids.max_len: take no id of ids.style {ids.style!r}, as {sample!r}"
    if not re.fullmatch(ids.tool_name_pattern, name := tool_name("files.read", ids.tool_name_pattern)):
        yield f"ids.tool_name_pattern: takes no name made for 'files.read', as {name!r}"


def _base(name: object) -> Dialect:
    if not isinstance(name, str):
        raise ValueError(f"lacks the key 'base': the profile it starts from, one of {', '.join(PROFILES)}")
    if name not in PROFILES and name not in ALIASES:
        raise ValueError(f"base: {no_dialect(name)}")
    return dialect(name)


def no_dialect(name: str) -> str:
    """Return what to say of a profile's name in a file that is none."""
    return f"No dialect {named(name)}; {hint(name, [*PROFILES, *ALIASES], 'known')}"
