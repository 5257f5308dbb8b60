"""Override the built-in facts about models with `[models."PROVIDER:GLOB"]` tables in `actors.toml`.

    [models."openai:gpt-6*"]
    chat_tools = "effort_none"
    efforts = ["none", "low", "high"]

`PROVIDER` is the name of a backend, the kind of a backend, or `*`; `GLOB` is a model's name, or a pattern with `*`. If
several tables match a model, the most specific table wins for each field. The fields are those of `ModelFacts`;
docs/reference/models.md lists them with the built-in values.
"""

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from actors.config.complaints import hint, quote_key
from actors.core.models.facts import EFFORTS, ModelFacts, Overrides, override_facts


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
            f"names an unknown backend, {quote_key(provider)}; {hint(provider, providers, 'there are')}"
        )
    fields = ModelFacts.__struct_fields__
    if unknown := next((key for key in table if key not in fields), None):
        raise ValueError(f"has no field {quote_key(unknown)}; {hint(unknown, fields, 'there are')}")
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
