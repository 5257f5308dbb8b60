"""Build custom profiles: a `[dialects.NAME]` table in `actors.toml` changes fields of a built-in dialect.

    [dialects.house]
    base = "openai_compatible"
    ids.style = "mistral"
    ids.pattern = "[a-zA-Z0-9]{9}"
    ids.max_len = 9
    turns.user_after_tool = "filler"

docs/reference/rulebook.md lists the fields and their values. The wire family is that of the base, and the types of its
records define the valid fields and values.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from actors.config.complaints import hint, quote_key
from actors.core.data.jsonio import is_object
from actors.core.data.record import replace
from actors.core.dialects.dialect import AnthropicDialect, ChatDialect, Dialect, GeminiDialect
from actors.core.dialects.profiles import ALIASES, PROFILES, dialect
from actors.core.models.rules import KeywordOnlyRecord
from actors.core.transcript.projection import mint, tool_name
from actors.core.values.identity import CallId
from actors.errors import nearest

R = TypeVar("R", bound=KeywordOnlyRecord)

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


def custom_dialect(name: str, table: Mapping[str, Any]) -> Dialect:  # Any: each field has its own type
    """Return the profile that a table describes.

    Raises:
        ValueError: The table is invalid. The message is one line, without the table's values.
    """
    if name in PROFILES or name in ALIASES:
        raise ValueError("is the name of a built-in profile; choose another name")
    changes = dict(table)
    base = _base(changes.pop("base", None))
    profile: Dialect = replace(_apply_changes(base, changes, _names(base)), name=name)
    for problem in _contradictions(profile):
        raise ValueError(problem)
    return profile


def _apply_changes(
    record: R, table: Mapping[str, Any], known: Mapping[str, str], place: str = ""
) -> R:  # Any: as above
    """Return a profile, or a record of one, with some fields changed."""
    types, profile = get_type_hints(type(record)), dict[str, Any]()  # Any: as above
    for key, value in table.items():
        own = getattr(record, key, None) if key in types and key != "model" else None
        if key == "name" or (
            f"{place}{key}" not in known.values() and not isinstance(own, KeywordOnlyRecord)
        ):
            close = nearest(key, known)
            way = f"did you mean {known[close]!r}?" if close else "docs/reference/rulebook.md lists them"
            raise ValueError(f"has no field {quote_key(key)}{f' in {place[:-1]!r}' if place else ''}; {way}")
        if not isinstance(own, KeywordOnlyRecord):
            profile[key] = _validate(f"{place}{key}", key, types[key], value)
        elif is_object(value):
            profile[key] = _apply_changes(own, value, known, f"{key}.")
        else:
            raise ValueError(f"{key}: must be a table; its fields are written {key}.NAME")
    return replace(record, **profile)


def _names(base: Dialect) -> dict[str, str]:
    """Return the fields that a table may change: the full name of each field, by its short name."""
    nested = {
        field: f"{name}.{field}"
        for name in base.__struct_fields__
        if isinstance(record := getattr(base, name), KeywordOnlyRecord)
        and name != "model"  # the [models] table has those
        for field in record.__struct_fields__
    }
    return {"rules": "rules"} | nested


def _validate(place: str, key: str, declared: Any, value: object) -> object:  # Any: a type
    """Return a validated value in its field's type."""
    try:
        held: Any = _adapter(declared).validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{place}: {fault['msg'].replace('Input should be', 'must be')}") from None
    number: object = held
    if type(number) is int and number < (least := _LEAST.get(key, 1)):
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


def _contradictions(profile: Dialect) -> Iterator[str]:
    """Yield combinations that no request can satisfy, so that they fail at load time instead of in a conversation."""
    if isinstance(profile, ChatDialect):
        if not profile.turns.drop_empty_text and not profile.turns.empty_answers:
            yield "turns.drop_empty_text: needs turns.empty_answers"
        if (
            profile.request.stream_usage
            and profile.request.keys
            and "stream_options" not in profile.request.keys
        ):
            yield "request.stream_usage: request.keys do not have 'stream_options'"
    if profile.reasoning.binding == "prefix" and not profile.turns.calls_together:
        yield (
            "reasoning.binding: 'prefix' needs turns.calls_together; with one call per message there is no such prefix"
        )
    yield from _caching_errors(profile)
    if profile.reasoning.required != "no":
        yield from _misplaced_demand(profile)
    yield from _id_faults(profile)


def _caching_errors(profile: Dialect) -> Iterator[str]:
    """Yield combinations of caching fields that cannot be requested."""
    caching = profile.caching
    if caching.moving and caching.marks != "block":
        yield "caching.moving: needs caching.marks 'block'"
    if isinstance(profile, ChatDialect):
        if caching.marks == "part" and profile.turns.empty_result is None:
            yield "caching.marks: 'part' needs turns.empty_result; a blank text takes no mark (ANT-33)"
        if caching.cache_key and profile.request.keys and "prompt_cache_key" not in profile.request.keys:
            yield "caching.cache_key: request.keys do not have 'prompt_cache_key'"
    if caching.long_lifetime == "ttl" and caching.marks == "none":
        yield "caching.long_lifetime: 'ttl' needs caching.marks"
    if caching.long_lifetime == "retention" and not caching.cache_key:
        yield "caching.long_lifetime: 'retention' needs caching.cache_key"


def _misplaced_demand(profile: Dialect) -> Iterator[str]:
    demand = f"reasoning.required: {profile.reasoning.required!r} needs"
    if isinstance(profile, ChatDialect):
        carrier = "extra_content" if profile.reasoning.required == "before_calls" else "reasoning_content"
        if profile.reasoning.carrier != carrier:
            yield f"{demand} reasoning.carrier {carrier!r}"
    if isinstance(profile, AnthropicDialect) and profile.reasoning.carrier == "none":
        yield f"{demand} reasoning.carrier 'anthropic_blocks'"
    if isinstance(profile, AnthropicDialect) and not profile.reasoning.first:
        yield f"{demand} reasoning.first"
    if not profile.reasoning.placeholder.strip():
        yield "reasoning.placeholder: needs words where reasoning.required is set"
    if isinstance(profile, GeminiDialect) and not _BASE64.fullmatch(profile.reasoning.placeholder):
        yield "reasoning.placeholder: must be base64 where it stands for a signature"


def _id_faults(profile: Dialect) -> Iterator[str]:
    """Yield the reasons why generated ids and tool names would be rejected."""
    ids = profile.ids
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
    """Return the message for an unknown dialect in a file."""
    return f"No dialect {quote_key(name)}; {hint(name, [*PROFILES, *ALIASES], 'known')}"
