"""Check that every profile that a file may describe produces valid requests."""

import re
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from pydantic import TypeAdapter

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings
from actors.config.dialects import custom_dialect
from actors.core.check import check
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import PROFILES
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.models.rules import KeywordOnlyRecord
from actors.transcripts import render
from tests.commands.at_scale import extent, spread
from tests.generated.histories import READERS, history

Table = dict[str, dict[str, Any]]  # Any: each field has its own type

CONCERNS = ("ids", "turns", "media", "reasoning", "request", "caching")


def generated_history(seed: int) -> tuple[History, Ledger]:
    messages, ledger = history(seed)
    return History(messages, ledger), ledger


HISTORIES = [generated_history(seed) for seed in range(8)]
OTHERWISE = {"style"}  # the style of ids must match their pattern
STAND_IN = "c3RhbmQtaW4="
KINDS: tuple[list[str], ...] = ([], ["image"], ["document"], ["image", "document"])
SETS: Mapping[tuple[str, str], tuple[list[str], ...]] = {
    ("media", "result_kinds"): KINDS,
    ("media", "user_kinds"): KINDS,
    ("media", "types"): (["image/png", "application/pdf"], ["audio/wav", "image/png"]),
    ("turns", "first_roles"): (["user"], ["user", "assistant"]),
    ("turns", "last_roles"): (["user"], ["user", "tool"], ["user", "assistant"]),
}
"""Fields that hold several values, each with some of what it may be."""


def choices() -> set[tuple[str, str, Any]]:  # Any: as above
    """Return each field with a choice of values, for every family, with its values."""
    records = [(name, getattr(p, name)) for p in PROFILES.values() for name in p.__struct_fields__]
    return {
        (concern, field, value)
        for concern, record in records
        if isinstance(record, KeywordOnlyRecord)
        for field in record.__struct_fields__
        if field not in OTHERWISE
        for value in _values(get_type_hints(type(record))[field])
    }


def _values(hint: Any) -> tuple[Any, ...]:  # Any: a type and its values
    return get_args(hint) if get_origin(hint) is Literal else (True, False) if hint is bool else ()


def changed_tables() -> list[Table]:
    """Return tables that each change one field, whether or not a family supports the value."""
    single = sorted(choices(), key=str)
    demands = [{"required": value, "placeholder": STAND_IN} for value in ("with_calls", "before_calls")]
    return [
        *({concern: {name: value}} for concern, name, value in single),
        *({"reasoning": demand} for demand in demands),
        *({concern: {name: value}} for (concern, name), values in SETS.items() for value in values),
    ]


VARIANTS = changed_tables()


def build_profile(base: str, *tables: Table) -> Dialect | None:
    """Return a profile with some fields changed, or None if a file may not describe it."""
    changed: Table = {}
    for table in tables:
        for concern, fields_ in table.items():
            changed[concern] = changed.get(concern, {}) | fields_
    try:
        return custom_dialect("house", {"base": base, **changed})
    except ValueError:
        return None


def assert_valid_requests(
    house: Dialect, base: str, conversations: Iterable[tuple[History, Ledger]], *tables: Table
) -> None:
    reader = replace(READERS[base], dialect="house")
    for conversation, ledger in conversations:
        rendered = render(conversation, ledger, house, binding=reader)
        request = adapter(house).request(rendered._segments, Settings(model="any"), rendered._facts)
        assert check(request.body, house) == [], tables


@pytest.mark.parametrize(
    "name",
    ["openai_chat", "mistral", "kimi", "openrouter", "anthropic", "openai_responses", "gemini", "bedrock"],
)
def test_a_profile_with_one_value_that_its_family_supports_gives_valid_requests(name: str) -> None:
    tried, plain = 0, custom_dialect("house", {"base": name})
    for table in VARIANTS:
        if (house := build_profile(name, table)) is not None and house != plain:
            tried += 1
            assert_valid_requests(house, name, spread(HISTORIES, tried), table)
    assert tried > 15


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_profile_has_only_values_that_its_family_supports(name: str) -> None:
    """This includes profiles built with `replace`, which type checkers do not check."""
    for concern, record in [(field, getattr(PROFILES[name], field)) for field in CONCERNS]:
        assert isinstance(record, get_type_hints(type(PROFILES[name]))[concern])
        types = get_type_hints(type(record))
        for field in record.__struct_fields__:
            TypeAdapter(types[field]).validate_python(getattr(record, field), strict=True)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_profile_with_several_changed_fields_gives_valid_requests(name: str) -> None:
    random, tried = Random(name), 0
    for _ in range(300):
        tables = random.sample(VARIANTS, 3)
        if tried < extent(8, 256) and (house := build_profile(name, *tables)) is not None:
            tried += 1
            assert_valid_requests(house, name, [generated_history(random.randrange(1000))], *tables)
    assert tried > 5


@pytest.mark.parametrize(
    ("base", "concern", "changes", "why"),
    [
        ("openai_chat", "turns", {"result_carrier": "item"}, "has no field 'result_carrier' in 'turns'"),
        ("gemini", "turns", {"error_prefix": "!"}, "has no field 'error_prefix' in 'turns'"),
        ("gemini", "turns", {"absent_content": "omit"}, "has no field 'absent_content' in 'turns'"),
        ("gemini", "reasoning", {"once": True}, "has no field 'once' in 'reasoning'"),
        ("gemini", "turns", {"empty_result": "(Nothing.)"}, "has no field 'empty_result' in 'turns'"),
        ("openai_chat", "media", {"result_kinds": ["image"]}, "has no field 'result_kinds' in 'media'"),
        ("anthropic", "reasoning", {"carrier": "reasoning_item"}, "reasoning.carrier: must be 'none' or"),
        ("bedrock", "turns", {"drop_empty_text": False}, "turns.drop_empty_text: must be True"),
        ("gemini", "media", {"urls": True}, "media.urls: must be False"),
        (
            "openai_chat",
            "turns",
            {"alternation": "merge_same"},
            "turns.alternation: must be 'none' or 'fill'",
        ),
        ("vllm", "media", {"user_kinds": ["document"]}, "media.user_kinds: must be 'image'"),
        ("bedrock", "media", {"types": ["audio/wav"]}, "media.types: must be 'image/png', "),
        ("gemini", "turns", {"first_roles": ["user", "assistant"]}, "turns.first_roles: must be 'user'"),
        ("anthropic", "turns", {"last_roles": ["user", "assistant"]}, "turns.last_roles: must be 'user'"),
        (
            "openai_responses",
            "reasoning",
            {"must_be_followed": False},
            "reasoning.must_be_followed: must be True",
        ),
        ("kimi", "turns", {"drop_empty_text": False}, "turns.drop_empty_text: needs turns.empty_answers"),
        (
            "mistral",
            "request",
            {"stream_usage": True},
            "request.stream_usage: add 'stream_options' to request.keys",
        ),
        ("mistral", "reasoning", {"required": "with_calls"}, "reasoning.required: 'with_calls' needs"),
        ("anthropic", "reasoning", {"required": "with_calls"}, "reasoning.placeholder: must not be blank"),
        ("gemini", "reasoning", {"placeholder": "(None.)"}, "reasoning.placeholder: must be base64"),
    ],
)
def test_an_unsupported_value_is_reported_with_its_field(
    base: str, concern: str, changes: dict[str, object], why: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        custom_dialect("house", {"base": base, concern: changes})
