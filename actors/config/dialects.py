"""Override built-in data with tables of `actors.toml`: custom profiles, and facts about models.

    [dialects.house]
    base = "openai_compatible"
    ids.style = "mistral"
    ids.pattern = "[a-zA-Z0-9]{9}"
    ids.max_len = 9
    turns.user_after_tool = "filler"

    [models."openai:gpt-6*"]
    chat_tools = "effort_none"
    efforts = ["none", "low", "high"]

docs/reference/rulebook.md lists the fields of a dialect and their values. A custom dialect has the wire format of its
base dialect. It may set any field that the base dialect has, to a value of the same type.

The key of a `[models]` table is `PROVIDER:GLOB`. `PROVIDER` is the name of a backend, the kind of a backend, or `*`;
`GLOB` is a model's name, or a pattern with `*`. If several tables match a model, the most specific table wins for each
field. The fields are those of `ModelFacts`; docs/reference/models.md lists them with the built-in values.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

import msgspec
from pydantic import TypeAdapter, ValidationError

from actors.config.complaints import hint, quote_key
from actors.core.data.jsonio import is_object
from actors.core.data.record import replace
from actors.core.dialects.dialect import AnthropicDialect, ChatDialect, Dialect, GeminiDialect
from actors.core.dialects.profiles import ALIASES, PROFILES, dialect
from actors.core.models.facts import EFFORTS, ModelFacts, Overrides, override_facts
from actors.core.models.rules import KeywordOnlyRecord
from actors.core.transcript.transcript import mint, tool_name
from actors.core.values.identity import CallId
from actors.errors import nearest

R = TypeVar("R", bound=KeywordOnlyRecord)
_MINIMUMS = {"max_string": 512 * 1024}  # a tool result with its notes cannot be split, so it must fit
_PATTERNS = (
    "pattern",
    "accepted",
    "tool_name_pattern",
)
_NEVER_BLANK = ("filler_first", "filler_last", "filler_between", "required_choice")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})*[A-Za-z0-9+/_-]{2,4}={0,2}")


def custom_dialect(name: str, table: Mapping[str, Any]) -> Dialect:  # Any: each field has its own type
    """Return the profile that a `[dialects.NAME]` table defines.

    Raises:
        ValueError: The table is invalid. The message is one line, without the table's values.
    """
    if name in PROFILES or name in ALIASES:
        raise ValueError("is the name of a built-in profile; choose another name")
    changes = dict(table)
    base = _base_profile(changes.pop("base", None))
    profile: Dialect = replace(_apply_changes(base, changes, _full_field_names(base)), name=name)
    for problem in _contradiction_errors(profile):
        raise ValueError(problem)
    return profile


def _apply_changes(
    record: R, table: Mapping[str, Any], full_names: Mapping[str, str], place: str = ""
) -> R:  # Any: each field has its own type
    """Return a copy of a dialect, or of one of its records, with the fields in `table` changed.

    Args:
        record: The dialect or the record.
        table: The new values.
        full_names: Full field names, such as `ids.style`, by their short names, such as `style`.
        place: The prefix of the record's fields in error messages, such as `ids.`.
    """
    types, profile = get_type_hints(type(record)), dict[str, Any]()  # Any: each field has its own type
    for key, value in table.items():
        own = getattr(record, key, None) if key in types and key != "model" else None
        if key == "name" or (
            f"{place}{key}" not in full_names.values() and not isinstance(own, KeywordOnlyRecord)
        ):
            close = nearest(key, full_names)
            fix = (
                f"did you mean {full_names[close]!r}?"
                if close
                else "docs/reference/rulebook.md lists the fields"
            )
            raise ValueError(f"has no field {quote_key(key)}{f' in {place[:-1]!r}' if place else ''}; {fix}")
        if not isinstance(own, KeywordOnlyRecord):
            profile[key] = _validate(f"{place}{key}", key, types[key], value)
        elif is_object(value):
            profile[key] = _apply_changes(own, value, full_names, f"{key}.")
        else:
            raise ValueError(f"{key}: must be a table; write its fields as {key}.NAME")
    return replace(record, **profile)


def _full_field_names(base: Dialect) -> dict[str, str]:
    """Return the full names of the fields that a table may change, such as `ids.style`, by short name (`style`)."""
    nested = {
        field: f"{name}.{field}"
        for name in base.__struct_fields__
        if isinstance(record := getattr(base, name), KeywordOnlyRecord)
        and name != "model"  # the fields of `model` are changed by a [models] table instead
        for field in record.__struct_fields__
    }
    return {"rules": "rules"} | nested


def _validate(
    full_name: str, key: str, declared_type: Any, value: object
) -> object:  # Any: a declared type may be any annotation
    """Return the value of a field, converted to the field's declared type.

    `full_name` is the name of the field for error messages.
    """
    try:
        held: Any = _type_adapter(declared_type).validate_python(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise ValueError(f"{full_name}: {fault['msg'].replace('Input should be', 'must be')}") from None
    number: object = held
    if type(number) is int and number < (least := _MINIMUMS.get(key, 1)):
        raise ValueError(f"{full_name}: must be at least {least}")
    if key in ("first_roles", "last_roles") and "user" not in held:
        raise ValueError(
            f"{full_name}: must contain 'user', because a user message may begin or end a conversation"
        )
    if key in _NEVER_BLANK and not held.strip():
        raise ValueError(f"{full_name}: must not be blank")
    for pattern in held if key == "overflow_patterns" else (held or "",) if key in _PATTERNS else ():
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{full_name}: must be a regular expression ({error.msg})") from None
    return held


@lru_cache
def _type_adapter(declared_type: Any) -> TypeAdapter[Any]:  # Any: a declared type may be any annotation
    return TypeAdapter(declared_type)


def _contradiction_errors(profile: Dialect) -> Iterator[str]:
    """Yield an error for each combination of fields that no request can satisfy."""
    if isinstance(profile, ChatDialect):
        if not profile.turns.drop_empty_text and not profile.turns.empty_answers:
            yield "turns.drop_empty_text: needs turns.empty_answers"
        if (
            profile.request.stream_usage
            and profile.request.keys
            and "stream_options" not in profile.request.keys
        ):
            yield "request.stream_usage: add 'stream_options' to request.keys"
    if profile.reasoning.binding == "prefix" and not profile.turns.calls_together:
        yield (
            "reasoning.binding: 'prefix' needs turns.calls_together, because splitting the calls changes the prefix"
        )
    yield from _caching_errors(profile)
    if profile.reasoning.required != "no":
        yield from _reasoning_errors(profile)
    yield from _id_errors(profile)


def _caching_errors(profile: Dialect) -> Iterator[str]:
    """Yield an error for each combination of caching fields that no request can satisfy."""
    caching = profile.caching
    if caching.moving and caching.marks != "block":
        yield "caching.moving: needs caching.marks 'block'"
    if isinstance(profile, ChatDialect):
        if caching.marks == "part" and profile.turns.empty_result is None:
            yield "caching.marks: 'part' needs turns.empty_result, because a blank text cannot have a mark (ANT-33)"
        if caching.cache_key and profile.request.keys and "prompt_cache_key" not in profile.request.keys:
            yield "caching.cache_key: add 'prompt_cache_key' to request.keys"
    if caching.long_lifetime == "ttl" and caching.marks == "none":
        yield "caching.long_lifetime: 'ttl' needs caching.marks"
    if caching.long_lifetime == "retention" and not caching.cache_key:
        yield "caching.long_lifetime: 'retention' needs caching.cache_key"


def _reasoning_errors(profile: Dialect) -> Iterator[str]:
    demand = f"reasoning.required: {profile.reasoning.required!r} needs"
    if isinstance(profile, ChatDialect):
        carrier = "extra_content" if profile.reasoning.required == "before_calls" else "reasoning_content"
        if profile.reasoning.carrier != carrier:
            yield f"{demand} reasoning.carrier {carrier!r}"
    if isinstance(profile, AnthropicDialect) and profile.reasoning.carrier == "none":
        yield f"{demand} reasoning.carrier 'anthropic_blocks'"
    if isinstance(profile, AnthropicDialect) and not profile.reasoning.must_be_first:
        yield f"{demand} reasoning.must_be_first"
    if not profile.reasoning.placeholder.strip():
        yield "reasoning.placeholder: must not be blank if reasoning.required is set"
    if isinstance(profile, GeminiDialect) and not _BASE64.fullmatch(profile.reasoning.placeholder):
        yield "reasoning.placeholder: must be base64, because it replaces a signature"


def _id_errors(profile: Dialect) -> Iterator[str]:
    """Yield an error if the id or tool-name patterns reject the ids or names that this library generates."""
    ids = profile.ids
    if ids.style != "none" and ids.style != "kimi":
        sample = mint(ids.style, CallId("hist_tool_1"))
        if len(sample) > ids.max_len or not re.fullmatch(ids.pattern, sample):
            yield f"ids.pattern and ids.max_len reject the ids of ids.style {ids.style!r}, such as {sample!r}"
    if not re.fullmatch(ids.tool_name_pattern, name := tool_name("files.read", ids.tool_name_pattern)):
        yield f"ids.tool_name_pattern: rejects {name!r}, the name that is generated for tool 'files.read'"


def _base_profile(name: object) -> Dialect:
    """Return the built-in dialect that a table changes."""
    if not isinstance(name, str):
        raise ValueError(f"lacks the key 'base', the profile to change; use one of {', '.join(PROFILES)}")
    if name not in PROFILES and name not in ALIASES:
        raise ValueError(f"base: {unknown_dialect_message(name)}")
    return dialect(name)


def unknown_dialect_message(name: str) -> str:
    """Return the message for an unknown dialect in a file, with the nearest known name."""
    return f"No dialect {quote_key(name)}; {hint(name, [*PROFILES, *ALIASES], 'known')}"


def check_models_table(name: str, table: Mapping[str, Any], providers: Collection[str]) -> None:
    """Validate one `[models."PROVIDER:GLOB"]` table.

    Args:
        name: The table's name, `PROVIDER:GLOB`.
        table: The table's fields.
        providers: Names of the configured backends, and all kinds of backends.

    Raises:
        ValueError: The name or a field is invalid. The message is one line, without the table's values.
    """
    provider, colon, glob = name.partition(":")
    if not (colon and provider.strip() and glob.strip()):
        raise ValueError('must be named PROVIDER:MODEL, such as "openai:gpt-6*"')
    if provider != "*" and provider not in providers:
        raise ValueError(
            f"names an unknown backend, {quote_key(provider)}; {hint(provider, providers, 'backends')}"
        )
    fields = ModelFacts.__struct_fields__
    if unknown := next((key for key in table if key not in fields), None):
        raise ValueError(f"has no field {quote_key(unknown)}; {hint(unknown, fields, 'fields')}")
    try:
        facts = override_facts(ModelFacts(), table)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).replace(" - at `$.", " at ").rstrip("`")) from None
    _check_efforts(facts)
    try:
        re.compile(facts.property_keys or "")
    except re.error as error:
        raise ValueError(f"property_keys: must be a regular expression ({error})") from None


def _check_efforts(facts: ModelFacts) -> None:
    """Check that the effort levels exist and are in ascending order."""
    efforts = facts.efforts or ()
    default = (facts.default_effort,) if facts.default_effort else ()
    for name, levels in (("efforts", efforts), ("default_effort", default)):
        if wrong := next((level for level in levels if level not in EFFORTS), None):
            raise ValueError(f"{name}: {quote_key(wrong)} is not a level; {hint(wrong, EFFORTS, 'levels')}")
    if sorted(efforts, key=EFFORTS.index) != list(efforts):
        raise ValueError(f"efforts: must be in ascending order: {', '.join(EFFORTS)}")


def matching_overrides(
    tables: Mapping[str, Mapping[str, Any]], providers: Collection[str], model: str
) -> tuple[Overrides, ...]:
    """Return the tables that match a model of one of these providers, the least specific first.

    A table is more specific if its pattern has more characters that are not wildcards. If two patterns have the same
    number of these characters, a table for a named provider is more specific than a table for `*`.
    """
    found = [name for name in tables if _table_matches(name, providers, model)]
    return tuple(tables[name] for name in sorted(found, key=_table_specificity))


def _table_matches(table_name: str, providers: Collection[str], model: str) -> bool:
    """Return True if a table applies to a model of one of these providers."""
    provider, _, glob = table_name.partition(":")
    return (provider == "*" or provider in providers) and fnmatchcase(model, glob)


def _table_specificity(table_name: str) -> tuple[int, bool]:
    """Return the sort key of a table. A more specific table has a larger key."""
    provider, _, glob = table_name.partition(":")
    return (len(glob) - sum(map(glob.count, "*?[]")), provider != "*")
