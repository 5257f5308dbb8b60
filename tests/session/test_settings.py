"""Settings of an ask: sent if the dialect supports them, else reported as losses; logged, and valid for one ask."""

import json
from typing import Any

import anyio
import pytest

from actors import AskSettings, Runtime
from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.config import BackendSettings, Config, FileSettings
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import PROFILES, dialect
from actors.core.history.history import History
from actors.core.lanes.lane import advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.log.events import AskStarted, TurnEnded
from actors.core.render import RenderTarget
from actors.core.settings.asking import StoredAskSettings, parse_settings
from actors.core.stream_events.round_events import MessageEvent
from actors.core.values.content import Message, Text
from actors.errors import ConfigError
from actors.testing import Call, Say, Stall, Turn, serve, validate
from actors.tools import tool
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    backend_at,
    bodies,
    log,
    openai,
    runtime_with,
)
from tests.scripted import scripted

NOT_TAKEN = {
    "openai_responses": {"stop"},
    "kimi": {"temperature", "top_p"},
}
"""Settings tested below that a dialect does not support. Dialects without an entry support all of them."""


def request_with(name: str, settings: Settings) -> Request:
    """Return the request of a conversation with one message."""
    profile = dialect(name)
    history, encoder = History([Message("user", [Text("u")])]), adapter(profile).encoder
    rendered = advance(empty_lane(profile), history, Ledger(), profile, encoder, RenderTarget())
    return adapter(profile).request(rendered._segments, settings, rendered._facts)


def all_keys(value: Any) -> set[str]:  # Any: JSON
    """Return the keys of a JSON value at any depth."""
    if isinstance(value, list):
        return set().union(*map(all_keys, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(all_keys, value.values()))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("wanted", [{"temperature": 0.5}, {"top_p": 0.9}, {"stop": ("END", "###")}], ids=str)
def test_supported_settings_are_sent_and_unsupported_settings_are_reported_as_losses(
    name: str, wanted: dict[str, Any]
) -> None:
    (setting,) = wanted
    words = {"stop": {"stop", "stop_sequences", "stopSequences"}, "top_p": {"top_p", "topP"}}
    request = request_with(name, Settings(model="m", **wanted))
    lost = NOT_TAKEN.get(name, set())
    assert set(request.losses) == lost & {setting}
    assert bool(all_keys(json.loads(request.body)) & words.get(setting, {setting})) is (setting not in lost)
    assert validate(request.body, name) is None


@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
def test_only_one_sampling_setting_is_sent_to_claude_models(name: str) -> None:
    both = request_with(name, Settings(model="m", temperature=0.5, top_p=0.9))
    assert both.losses == ("top_p",)
    thinking = request_with(name, Settings(model="m", temperature=0.5, top_p=0.9, thinking="adaptive"))
    assert set(thinking.losses) == {"temperature", "top_p"}
    assert request_with("openai_chat", Settings(model="m", temperature=0.5, top_p=0.9)).losses == ()


@pytest.mark.parametrize(
    ("name", "model", "takes"),
    [
        ("anthropic", "claude-opus-4-6", True),
        ("anthropic", "claude-sonnet-4-5-20250929", True),
        ("anthropic", "claude-opus-4-7", False),
        ("anthropic", "claude-sonnet-5", False),
        ("anthropic", "claude-fable-5-1", False),
        ("anthropic", "somebody-elses", True),
        ("bedrock", "us.anthropic.claude-opus-4-8", False),
        ("bedrock", "anthropic.claude-haiku-4-5", True),
        ("bedrock", "amazon.nova-pro-v1:0", True),
        ("openai_chat", "gpt-5-mini", False),
        ("openai_chat", "o3", False),
        ("openai_chat", "gpt-5-chat-latest", True),
        ("openai_responses", "gpt-5", False),
        ("openai_responses", "gpt-5.2", False),
        ("openrouter", "openai/o3", False),
    ],
)
def test_a_model_that_rejects_sampling_settings_receives_none(name: str, model: str, takes: bool) -> None:
    for wanted in ({"temperature": 0.5}, {"top_p": 0.97}):
        request = request_with(name, Settings(model=model, **wanted))  # type: ignore[arg-type]  # either setting
        assert (request.losses == ()) is takes
        assert bool(all_keys(json.loads(request.body)) & {"temperature", "top_p", "topP"}) is takes


EFFORT_LEVELS = "none, minimal, low, medium, high, xhigh, max"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_tokens": 0}, "max_tokens is 0, but must be a whole number of at least 1, or None"),
        ({"max_tokens": True}, "max_tokens is True, but must be a whole number of at least 1, or None"),
        (
            {"temperature": float("nan")},
            "temperature is nan, but must be a finite number of at least 0, or None",
        ),
        ({"top_p": 1.5}, "top_p is 1.5, but must be a number from 0 to 1, or None"),
        (
            {"stop": ("a", " ")},
            "stop is ('a', ' '), but must be at most 4 strings that are not blank, or None",
        ),
        ({"stop": "a"}, "stop is 'a', but must be at most 4 strings that are not blank, or None"),
        (
            {"tool_choice": "any"},
            "tool_choice is 'any', but must be one of auto, none, required, ToolChoice('NAME'), or None",
        ),
        ({"thinking": "manual"}, "thinking is 'manual', but must be one of adaptive, off, or None"),
        (
            {"effort": " "},
            f"effort is ' ', but must be one of {EFFORT_LEVELS}, or the provider's own word, or None",
        ),
        (
            {"effort": "hihg"},
            f"effort is 'hihg', but must be one of {EFFORT_LEVELS}, or the provider's own word, or None; "
            "did you mean 'high'?",
        ),
        ({"timeout": 0}, "timeout is 0, but must be a number of seconds above 0, or None"),
        ({"max_corrections": -1}, "max_corrections is -1, but must be a whole number of at least 0, or None"),
        (
            {"max_tokens": 10**5000},
            "max_tokens is an integer of 16610 bits, but must be at most 9223372036854775807, or None",
        ),
        ({"max_token": 3}, "An ask has no setting 'max_token'; did you mean 'max_tokens'?"),
    ],
)
def test_an_invalid_setting_raises_a_short_error(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_settings(given)
    assert str(refused.value) == says


def test_ask_settings_and_their_log_record_have_the_same_fields() -> None:
    assert {*AskSettings.__annotations__, "output"} == {*StoredAskSettings.__struct_fields__}
    assert parse_settings({}) is None
    assert parse_settings({"stop": ["a"], "idle_timeout": None}) == StoredAskSettings(stop=("a",))


@pytest.mark.anyio
@pytest.mark.parametrize("make_server", [openai, anthropic])
async def test_settings_passed_to_an_ask_apply_only_to_that_ask_and_are_logged(
    make_server: Any,
) -> None:  # Any: a type of server
    async with scripted(make_server(Turn(Say("short")), Turn(Say("long")))) as (server, runtime, session):
        await session.ask("Briefly?", max_tokens=50, top_p=0.5, stop=("END",))
        await session.ask("At length?")
        first, second = bodies(server)
        assert 50 in (first.get("max_tokens"), first.get("max_completion_tokens"))
        assert first["top_p"] == 0.5
        assert "top_p" not in second
        assert 50 not in (second.get("max_tokens"), second.get("max_completion_tokens"))
        kept = [event.asked for event in log(runtime, session) if isinstance(event, AskStarted)]
        assert kept == [StoredAskSettings(max_tokens=50, top_p=0.5, stop=("END",)), None]


@pytest.mark.anyio
async def test_each_setting_of_an_ask_overrides_only_the_same_setting_of_its_backend() -> None:
    server = openai(Turn(Say("a")), Turn(Say("b")))
    async with serve(server):
        table = {**backend_at(server).model_dump(exclude_unset=True), "seed": 7, "user": "u"}
        config = Config(FileSettings(backends={"a": BackendSettings.model_validate(table)}), {})
        async with Runtime(config, seed=1) as runtime:
            session = await runtime.open("a")
            await session.ask("One.", seed=8)
            await session.ask("Two.")
    assert [(body["seed"], body["user"]) for body in bodies(server)] == [(8, "u"), (7, "u")]


@pytest.mark.anyio
async def test_a_forced_tool_is_forced_only_in_the_first_request() -> None:
    server, gate = anthropic(Turn(Call("work", {"name": "a"})), Turn(Say("done"))), Gate()
    gate.open("a")
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        answer = await session.ask("Work!", tool_choice="required")
        assert (answer.status, answer.text) == ("complete", "done")
        forced, free = bodies(server)
        assert forced["tool_choice"] == {"type": "any"}
        assert "tool_choice" not in free


@pytest.mark.anyio
async def test_tool_choice_none_declares_the_tools_and_runs_none() -> None:
    server, ran = openai(Turn(Say("by heart"), Call("work"))), []

    @tool
    async def work() -> None:
        ran.append(1)

    async with scripted(server, tools=[work]) as (_, _, session):
        answer = await session.ask("Do not look it up.", tool_choice="none")
        (body,) = bodies(server)
        assert (answer.status, body["tool_choice"], ran) == ("complete", "none", [])
        assert [item["function"]["name"] for item in body["tools"]] == ["work"]
        ledger = await session.ledger()
        assert [item.status for item in ledger.interactions()] == ["cancelled"]


@pytest.mark.anyio
async def test_the_setting_max_rounds_limits_the_rounds_of_an_ask() -> None:
    server, gate = openai(Turn(Call("work", {"name": "a"})), Turn(Say("final"))), Gate()
    gate.open("a")
    async with scripted(server, tools=[gate.tool]) as (_, _, session):
        answer = await session.ask("Work!", max_rounds=2)
        assert (answer.rounds, answer.text) == (2, "final")
        assert bodies(server)[1]["tool_choice"] == "none"


@pytest.mark.anyio
async def test_an_ask_that_exceeds_its_timeout_fails_and_closes_every_call() -> None:
    """The tool never returns, so only the deadline can end the ask."""
    server, gate = openai(Turn(Call("work", {"name": "a"})), Turn(Say("next"))), Gate()
    async with scripted(server, tools=[gate.tool]) as (_, runtime, session):
        answer = await session.ask("Work!", timeout=0.2, check=False)
        assert (answer.status, answer.error) == (
            "failed",
            "the ask took longer than its timeout of 0.2 s",
        )
        ended = [event for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert [event.status for event in ended] == ["failed"]
        assert (await session.ask("And now?", timeout=60)).text == "next"
        assert_paired(bodies(server)[1])


@pytest.mark.anyio
async def test_a_cancel_before_the_deadline_ends_the_ask_as_cancelled() -> None:
    gate = Gate()
    async with runtime_with(a=openai(Turn(Call("work", {"name": "a"})))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        ends = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gate.started, "a")
            async with session.stream("Work!", timeout=600) as events:
                async for event in events:
                    if isinstance(event, MessageEvent):
                        await gate.started("a")
                        assert await session.cancel()
                    ends.append(event)
        assert ends[-1].type == "complete"


@pytest.mark.anyio
@pytest.mark.parametrize("setting", ["first_byte", "idle"])
async def test_the_timeouts_of_an_ask_override_the_timeouts_of_its_backend(setting: str) -> None:
    """The timeouts of the backend are a minute or longer."""
    silent = Stall() if setting == "first_byte" else Stall(after_bytes=40)
    async with scripted(openai(Turn(Say("never heard")), faults={0: silent})) as (_, _, session):
        wanted: AskSettings = (
            {"first_byte_timeout": 0.2} if setting == "first_byte" else {"idle_timeout": 0.2}
        )
        with anyio.fail_after(30):
            answer = await session.ask("Hello?", **wanted, check=False)
        assert answer.status == "failed"


@pytest.mark.anyio
async def test_a_preview_reports_the_settings_that_would_be_lost() -> None:
    async with runtime_with(a=anthropic()) as runtime:
        session = await runtime.open("a")
        preview = await session.preview("a", temperature=0.5, top_p=0.9, thinking="adaptive")
        assert set(preview.losses) == {"temperature", "top_p"}
        assert (await session.preview("a")).losses == {}


def test_forcing_a_tool_is_reported_as_a_loss_if_the_model_cannot_be_forced() -> None:
    spec = (ToolSpec("read", "", Json(b'{"type":"object"}')),)
    assert request_with("kimi", Settings(model="m", tools=spec, tool_choice="required")).losses == (
        "tool_choice",
    )
