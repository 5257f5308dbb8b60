"""Check the cache marks of a request, at most four around the lane, and its cache key."""

import json
from typing import Any

import pytest

from actors import Message, Text, ToolCall, ToolResult
from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.check import check
from actors.core.data.jsonio import Json
from actors.core.data.persistent import PAGE, SHARED
from actors.core.data.record import replace
from actors.core.dialects.dialect import lane_key
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.lanes.lane import Rendered
from actors.core.values.content import Media
from actors.core.values.identity import Binding
from actors.testing import validate
from actors.testing.images import png_base64
from actors.transcripts import History, Ledger, encode, render
from tests.renderer.marks import marks, without_marks

TOOLS = tuple(ToolSpec(name, "Does it.", Json(b'{"type":"object"}')) for name in ("read", "write"))
MARKED = ("anthropic", "vertex_anthropic", "bedrock_anthropic", "bedrock", "openrouter")
KEYED = ("openai_chat", "openai_responses", "mistral", "kimi", "xai")
MODELS = {"bedrock": "eu.anthropic.claude-sonnet-5-v1:0", "openrouter": "anthropic/claude-sonnet-5"}
ASKED = (Message("user", [Text("Read both.")]),)
WENT_ON = (
    Message("assistant", [ToolCall("c1", "read"), ToolCall("c2", "read")]),
    Message("tool", [ToolResult("c1", "one"), ToolResult("c2", "")]),
)
SAID = (Message("assistant", [Text("Done.")]), Message("user", [Text("And now?")]))
PLACES = {
    "anthropic": ["tools.1", "system.0", "messages.0.content.0", "request"],
    "bedrock": [
        "toolConfig.tools.2",
        "system.1",
        "messages.0.content.1",
        "messages.2.content.2",
    ],
    "openrouter": ["messages.0.content.0", "messages.1.content.0", "messages.4.content.0"],
    **{
        name: ["tools.1", "system.0", "messages.0.content.0", "messages.2.content.1"]
        for name in ("vertex_anthropic", "bedrock_anthropic")
    },
}
"""Tools, system prompt, the end of what the first request sent, and of the second."""
FIRST = {
    "anthropic": ["tools.1", "system.0", "request"],
    "bedrock": ["toolConfig.tools.2", "system.1", "messages.0.content.1"],
    "openrouter": ["messages.0.content.0", "messages.1.content.0"],
    **{
        name: ["tools.1", "system.0", "messages.0.content.0"]
        for name in ("vertex_anthropic", "bedrock_anthropic")
    },
}


def render_conversation(name: str, *messages: Message, after: Rendered | None = None) -> Rendered:
    return render(History(messages), Ledger(), dialect(name), after.lane if after else None)


def request(name: str, sent: Rendered, lane: str = "", **settings: Any) -> Request:
    asked = {"model": MODELS.get(name, "m"), "system": "Be brief.", "tools": TOOLS} | settings
    return adapter(dialect(name)).request(sent._segments, Settings(**asked), sent._facts._replace(lane=lane))


@pytest.mark.requirement("PROMISE-14")
@pytest.mark.parametrize("name", MARKED)
def test_the_tools_the_system_prompt_and_the_last_two_requests_end_with_cache_marks(
    name: str,
) -> None:
    first = render_conversation(name, *ASKED)
    second = render_conversation(name, *ASKED, *WENT_ON, after=first)
    assert marks(request(name, first).body) == FIRST[name]
    assert marks(request(name, second).body) == PLACES[name]


@pytest.mark.requirement("PROMISE-4", "PROMISE-14")
@pytest.mark.parametrize("name", MARKED)
def test_without_its_cache_marks_a_request_contains_the_earlier_requests_unchanged(name: str) -> None:
    first = render_conversation(name, *ASKED)
    second = render_conversation(name, *ASKED, *WENT_ON, after=first)
    third = render_conversation(name, *ASKED, *WENT_ON, *SAID, after=second)
    kept = [b"".join(step.lane._segments) for step in (first, second, third)]
    assert kept[2].startswith(kept[1])
    assert kept[1].startswith(kept[0])
    for step, lane in zip((first, second, third), kept, strict=True):
        made = request(name, step)
        assert lane in without_marks(made.body, name)
        assert b"cache" not in lane
        assert validate(made.body, name) is None
        assert check(made.body, dialect(name)) == []


@pytest.mark.parametrize("name", PROFILES)
def test_a_request_without_caching_equals_the_cached_request_without_its_marks(name: str) -> None:
    first = render_conversation(name, *ASKED)
    second = render_conversation(name, *ASKED, *WENT_ON, after=first)
    plain = request(name, second, "lane", cache="off").body
    assert marks(plain) == []
    assert b"cache" not in plain
    asked = request(name, second).body
    assert without_marks(asked, name) == plain
    assert (asked != plain) == (name in MARKED)


@pytest.mark.parametrize("name", MARKED)
def test_every_cache_mark_requests_a_one_hour_lifetime_if_configured(name: str) -> None:
    first = render_conversation(name, *ASKED)
    second = render_conversation(name, *ASKED, *WENT_ON, after=first)
    made = request(name, second, cache="long")
    assert made.body.count(b'"ttl":"1h"') == len(marks(made.body)) == len(PLACES[name])
    assert validate(made.body, name) is None
    assert check(made.body, dialect(name)) == []


@pytest.mark.parametrize(
    ("name", "model", "taken"),
    [
        ("openrouter", "openai/gpt-5.2", False),
        ("openrouter", "meta/anthropic", False),
        ("bedrock", "amazon.nova-pro-v1:0", False),
        ("bedrock", "anthropic.claude-3-haiku-20240307-v1:0", False),
        ("bedrock", "anthropic.claude-3-5-sonnet-20240620-v1:0", False),
        ("bedrock", "anthropic.claude-3-7-sonnet-20250219-v1:0", True),
        ("bedrock", "us.anthropic.claude-opus-4-5-20251101-v1:0", True),
        ("bedrock", "arn:aws:bedrock:eu-central-1:1:inference-profile/eu.anthropic.claude-sonnet-5", True),
        ("anthropic", "whatever", True),
    ],
)
def test_only_requests_to_models_with_a_cache_get_cache_marks(name: str, model: str, taken: bool) -> None:
    made = request(name, render_conversation(name, *ASKED), model=model, cache="long")
    assert bool(marks(made.body)) == taken
    assert ("cache" in made.losses) != taken  # an unsupported lifetime is reported


def test_media_at_the_end_of_a_message_get_the_cache_mark() -> None:
    photo = Message("user", [Text("Look:"), Media("image/png", png_base64())])
    made = request("openrouter", render_conversation("openrouter", photo))
    assert marks(made.body) == ["messages.0.content.0", "messages.1.content.1"]
    assert validate(made.body, "openrouter") is None


def test_adding_a_cache_mark_copies_only_the_segment_of_the_mark() -> None:
    long = [Message("user", [Text("x" * 200_000)]), Message("assistant", [Text("y" * 200_000)])]
    first = render_conversation("anthropic", *long, *ASKED)
    second = render_conversation("anthropic", *long, *ASKED, *WENT_ON, after=first)
    sent = {id(segment) for segment in request("anthropic", second).segments}
    assert len([segment for segment in second.lane._segments if id(segment) not in sent]) <= 1


@pytest.mark.requirement("PROMISE-14")
@pytest.mark.parametrize("name", MARKED)
def test_the_end_of_the_previous_request_always_gets_a_cache_mark(
    name: str,
) -> None:
    first = render_conversation(name, *ASKED)
    told = [Message("user", [Text(f"{number} {'x' * SHARED}")]) for number in range(PAGE)]
    said = [Message("assistant", [Text(f"{number} {'y' * SHARED}")]) for number in range(PAGE)]
    since = [message for pair in zip(said, told, strict=True) for message in pair]
    second = render_conversation(name, *ASKED, *since, after=first)
    assert second.lane._segments.paged >= first.lane.size
    made = request(name, second)
    assert PLACES[name][-2] in marks(made.body)
    lane = replace(second.lane, _segments=second.lane._segments.flatten())
    assert made.body == request(name, replace(second, lane=lane)).body


# --- keys


@pytest.mark.requirement("PROMISE-14")
@pytest.mark.parametrize("name", PROFILES)
def test_a_cache_key_is_sent_to_hosts_that_use_it_to_route_requests(name: str) -> None:
    body = json.loads(request(name, render_conversation(name, *ASKED), "lane-1").body)
    assert body.get("prompt_cache_key") == ("lane-1" if name in KEYED else None)
    assert "prompt_cache_retention" not in body


@pytest.mark.parametrize("name", KEYED)
def test_a_longer_cache_lifetime_is_requested_where_supported(name: str) -> None:
    made = request(name, render_conversation(name, *ASKED), "lane-1", cache="long")
    keeps = name.startswith("openai")
    assert json.loads(made.body).get("prompt_cache_retention") == ("24h" if keeps else None)
    assert ("cache" in made.losses) != keeps
    assert validate(made.body, name) is None
    assert check(made.body, dialect(name)) == []


def test_a_cache_key_is_unique_and_reveals_nothing() -> None:
    binding = Binding("claude", "anthropic", "https://host.example", "account-1", "m")
    named = lane_key("s", binding)
    assert named == lane_key("s", binding)
    assert len(named) == 32
    others = [replace(binding, **{key: "other"}) for key in ("backend", "dialect", "account", "model")]
    assert len({named, lane_key("t", binding), *(lane_key("s", other) for other in others)}) == 6
    assert lane_key("\ud800", binding).isalnum()


def test_the_public_encode_function_takes_cache_marks_and_cache_key_as_arguments() -> None:
    sent = render_conversation("anthropic", *ASKED)
    assert marks(encode(sent, model="m")) == ["request"]
    assert marks(encode(sent, model="m", cache="off")) == []
    chat = render_conversation("openai_chat", *ASKED)
    assert b'"prompt_cache_key":"k"' in encode(chat, model="m", cache_key="k")
    assert b"prompt_cache" not in encode(chat, model="m")
