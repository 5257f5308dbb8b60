"""A profile that may be, whatever an operator changed in it, writes requests that its judge takes."""

from collections.abc import Iterator
from dataclasses import fields
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings
from actors.core.check import check
from actors.core.dialect import Dialect
from actors.core.families import impossible
from actors.core.form import replace
from actors.core.history import History
from actors.core.profiles import PROFILES
from actors.pure import render
from actors.testing.histories import READERS, history

HISTORIES = [history(seed) for seed in range(8)]
OTHERWISE = {"family", "id_style"}  # the base's own; its form of ids, which the pattern of ids goes with
STAND_IN = {"thinking_placeholder": "c3RhbmQtaW4="}
KINDS = (frozenset[str](), frozenset({"image"}), frozenset({"document"}), frozenset({"image", "document"}))
SETS: dict[str, tuple[frozenset[str], ...]] = {
    "result_media": KINDS,
    "user_media": KINDS,
    "media_types": (frozenset({"image/png", "application/pdf"}), frozenset({"audio/wav", "image/png"})),
    "first_roles": (frozenset({"user"}), frozenset({"user", "assistant"})),
    "last_roles": (frozenset({"user"}), frozenset({"user", "tool"}), frozenset({"user", "assistant"})),
}
"""Fields that hold several values, each with some of what it may be."""


def variants(base: Dialect) -> Iterator[dict[str, Any]]:  # Any: each field has its own type
    """Each field with a choice of values, changed to every other one."""
    hints = get_type_hints(Dialect)
    for field in fields(Dialect):
        hint = hints[field.name]
        values = get_args(hint) if get_origin(hint) is Literal else (True, False) if hint is bool else ()
        if field.name not in OTHERWISE:
            yield from ({field.name: value} for value in values if value != getattr(base, field.name))
    yield from ({"thinking_required": demand, **STAND_IN} for demand in ("with_calls", "before_calls"))
    yield from ({name: value} for name, values in SETS.items() for value in values)


@pytest.mark.parametrize(
    "name",
    ["openai_chat", "mistral", "kimi", "openrouter", "anthropic", "openai_responses", "gemini", "bedrock"],
)
def test_what_a_family_can_write_is_written_and_judged_sound(name: str) -> None:
    base, tried = PROFILES[name], 0
    reader = replace(READERS[name], dialect="house")
    for changes in variants(base):
        house = base.derive(name="house", **changes)
        if impossible(house):
            continue
        tried += 1
        for messages, ledger in HISTORIES:
            rendered = render(History(messages, ledger), ledger, house, binding=reader)
            request = adapter(house).request(rendered.segments, Settings(model="any"), rendered.shown)
            assert check(request.body, house) == [], changes
    assert tried > 20


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_fields_changed_together_are_written_and_judged_sound(name: str) -> None:
    base, reader, random = PROFILES[name], replace(READERS[name], dialect="house"), Random(name)
    choices = list(variants(base))
    for _ in range(60):
        changes = {field: value for some in random.sample(choices, 3) for field, value in some.items()}
        house = base.derive(name="house", **changes)
        if impossible(house):
            continue
        messages, ledger = history(random.randrange(1000))
        rendered = render(History(messages, ledger), ledger, house, binding=reader)
        request = adapter(house).request(rendered.segments, Settings(model="any"), rendered.shown)
        assert check(request.body, house) == [], changes


@pytest.mark.parametrize(
    ("base", "changes", "why"),
    [
        (
            "openai_chat",
            {"result_carrier": "item"},
            "result_carrier: family openai_chat writes 'tool_message'",
        ),
        (
            "anthropic",
            {"thinking_carrier": "reasoning_item"},
            "thinking_carrier: family anthropic has 'none',",
        ),
        ("bedrock", {"drop_empty_text": False}, "drop_empty_text: family converse refuses empty texts"),
        ("kimi", {"drop_empty_text": False}, "drop_empty_text: needs empty_answers"),
        ("mistral", {"stream_usage": True}, "stream_usage: request_keys do not have 'stream_options'"),
        ("gemini", {"media_urls": True}, "media_urls: family gemini takes media by value"),
        ("mistral", {"thinking_required": "with_calls"}, "thinking_required: 'with_calls' needs"),
        ("anthropic", {"thinking_required": "with_calls"}, "thinking_placeholder: needs words"),
        ("gemini", {"thinking_placeholder": "(None.)"}, "thinking_placeholder: must be base64"),
        ("openai_chat", {"alternation": "merge_same"}, "alternation: family openai_chat writes 'none' or"),
        ("openai_chat", {"result_media": frozenset({"image"})}, "result_media: family openai_chat cannot"),
        ("vllm", {"user_media": KINDS[-1]}, "user_media: family openai_chat cannot have 'document'"),
        ("gemini", {"empty_result": "(Nothing.)"}, "empty_result: has a meaning in families openai_chat and"),
        ("bedrock", {"media_types": frozenset({"audio/wav"})}, "media_types: family converse cannot have"),
        ("gemini", {"first_roles": frozenset({"user", "assistant"})}, "first_roles: family gemini writes"),
        ("gemini", {"thinking_once": True}, "thinking_once: has a meaning in family responses alone"),
        ("anthropic", {"last_roles": frozenset({"user", "assistant"})}, "last_roles: family anthropic"),
        ("openai_responses", {"thinking_followed": False}, "thinking_followed: family responses writes"),
    ],
)
def test_what_a_family_cannot_write_is_said_by_its_field(
    base: str,
    changes: dict[str, Any],
    why: str,  # Any: as above
) -> None:
    told = impossible(PROFILES[base].derive(**changes))
    assert told is not None
    assert told.startswith(why)
