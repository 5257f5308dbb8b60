"""One table describes every setting: each is either sent or reported as a loss."""

import json
from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import fields

from actors import AskSettings
from actors.adapters.adapter import adapter
from actors.adapters.refusals import refused_parameter
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.settings import DEFAULTS
from actors.adapters.writing import field_name
from actors.core.check import check
from actors.core.data.jsonio import Json
from actors.core.dialects.narrow import for_model
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.history.history import History
from actors.core.lanes.lane import advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import AskStarted
from actors.core.render import RenderTarget
from actors.core.settings.asking import StoredAskSettings, parse_settings
from actors.core.settings.table import REQUEST_SETTINGS, SETTINGS, out_of_range, setting_names
from actors.core.settings.values import RequestSettings, ToolChoice
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.testing import validate
from tests import naming

TOOL = ToolSpec("look", "Look.", Json(b'{"type":"object","properties":{}}'))
VALUES: dict[str, Any] = {  # Any: each setting has its own type
    "max_tokens": 321,
    "temperature": 0.5,
    "top_p": 0.875,
    "top_k": 40,
    "frequency_penalty": 0.25,
    "presence_penalty": -0.25,
    "seed": 7,
    "stop": ("END",),
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "thinking": "adaptive",
    "effort": "low",
    "display": "summarized",
    "verbosity": "low",
    "logprobs": 2,
    "service_tier": "auto",
    "user": "u-1",
    "metadata": (("team", "blue"),),
}
"""One value of each setting that requests send."""
MODELS = [
    *((name, "m") for name in PROFILES),
    ("openai_chat", "gpt-4o"),
    ("openai_chat", "gpt-5.2"),
    ("openai_responses", "gpt-4.1"),
    ("openai_responses", "gpt-5.2"),
    ("anthropic", "claude-opus-4-6"),
    ("anthropic", "claude-sonnet-5"),
    ("vertex_anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-3-pro-preview"),
    ("gemini_2", "gemini-2.5-flash"),
    ("bedrock", "us.anthropic.claude-opus-4-6-v1:0"),
]


def request_with(name: str, model: str, **settings: Any) -> tuple[bytes, tuple[str, ...]]:  # Any: as above
    """Return the body of a request with one tool, and its losses."""
    profile = dialect(name)
    history, codec = History([Message("user", [Text("u")])]), adapter(profile)
    lane = advance(empty_lane(profile), history, Ledger(), profile, codec.encoder, RenderTarget())
    request = codec.request(lane._segments, Settings(model=model, tools=(TOOL,), **settings), lane._facts)
    return request.body, request.losses


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_every_setting_changes_the_request_or_is_reported_as_a_loss(name: str, model: str) -> None:
    plain, _ = request_with(name, model)
    for setting, value in VALUES.items():
        with naming.case(setting):
            body, losses = request_with(name, model, **{setting: value})
            assert (body != plain) or setting in losses
            assert check(body, dialect(name)) == []
            assert validate(body, name) is None


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_a_setting_is_sent_in_the_field_that_the_table_names(name: str, model: str) -> None:
    for setting in REQUEST_SETTINGS:
        if setting != "thinking":
            with naming.case(setting):
                assert_is_sent_in_its_field(name, model, setting)


def assert_is_sent_in_its_field(name: str, model: str, setting: str) -> None:
    body, losses = request_with(name, model, **{setting: VALUES[setting]})
    if setting in losses or setting == "effort":  # each vendor has its own field for the effort
        return
    place = json.loads(body)
    for key in field_name(setting, for_model(dialect(name), model)).split("."):
        assert key in place
        place = place[key]


def test_every_list_and_type_of_settings_contains_the_same_setting_names() -> None:
    assert {*VALUES} == {*REQUEST_SETTINGS}
    assert {*setting_names("ask")} == {*AskSettings.__annotations__}
    assert {*setting_names("ask"), "output"} == {*StoredAskSettings.__struct_fields__}
    assert {*RequestSettings.__struct_fields__} <= {*setting_names("ask")} & {*DEFAULTS}
    for kind in (StoredAskSettings, Settings, RequestSettings):
        defaults = {
            field.name: field.default
            for field in fields(kind)
            if field.name in RequestSettings.__struct_fields__
        }
        assert defaults == {name: SETTINGS[name].default for name in defaults}


@pytest.mark.parametrize("setting", [*VALUES])
def test_a_refusal_that_names_a_field_is_mapped_to_its_setting(setting: str) -> None:
    for path in {*SETTINGS[setting].wire.values()} - {"user", "metadata.user_id", "metadata"}:
        found = refused_parameter("Unsupported parameter.", path)
        assert found is not None
        assert setting in found.settings or path.endswith(
            ("thinkingLevel", "includeThoughts", "reasoning.effort")
        )


def test_the_log_stores_only_the_settings_that_were_passed() -> None:
    given = parse_settings({"seed": 3, "metadata": {"team": "blue"}, "timeout": 9})
    event = AskStarted(1, pack(Message("user", [Text("u")])), given)
    record = encode_event(event)
    assert decode_event(record) == event
    stored = msgpack.decode(record)[1][3]
    assert stored == {"seed": 3, "metadata": [["team", "blue"]], "timeout": 9.0}


LONE = {"stop": ("x", "\ud800"), "user": "\ud800", "metadata": {"a": "\ud800"}, "effort": "\ud800"}
"""Values that cannot be encoded as UTF-8."""


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("top_k", 0, "a whole number of at least 1, or None"),
        ("seed", -1, "a whole number from 0 to 2147483647, or None"),
        ("frequency_penalty", 3, "a number from -2 to 2, or None"),
        ("parallel_tool_calls", 1, "True or False, or None"),
        ("logprobs", 21, "a whole number from 0 to 20, or None"),
        ("verbosity", "terse", "one of low, medium, high, or None"),
        ("display", "raw", "one of summarized, omitted, or None"),
        ("service_tier", "", "a string of at most 64 characters that is not blank, or None"),
        ("user", " ", "a string of at most 256 characters that is not blank, or None"),
        ("metadata", {"a": 1}, "a mapping of at most 16 names to strings of at most 512 characters, or None"),
        ("temperature", 10**400, "a finite number of at least 0, or None"),
        ("timeout", float("inf"), "a number of seconds above 0, or None"),
        ("max_tokens", 2**63, "at most 9223372036854775807, or None"),
        *[(name, value, "valid Unicode, without lone surrogates, or None") for name, value in LONE.items()],
    ],
)
def test_a_value_out_of_range_is_rejected_with_the_range_in_words(
    setting: str, value: Any, words: str
) -> None:
    assert out_of_range(setting, value) == words
    assert out_of_range(setting, None) is None


def test_forcing_a_tool_can_be_combined_with_one_call_per_message() -> None:
    body, losses = request_with("anthropic", "m", tool_choice=ToolChoice("look"), parallel_tool_calls=False)
    assert json.loads(body)["tool_choice"] == {
        "type": "tool",
        "name": "look",
        "disable_parallel_tool_use": True,
    }
    assert losses == ()
