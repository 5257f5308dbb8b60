"""The settings of one ask: sent where a provider takes them, named where it does not, kept in the log, then gone."""

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
from actors.core.settings.asking import Asked, parse_settings
from actors.core.stream_events.events import MessageEvent
from actors.core.values.content import Message, Text
from actors.errors import ConfigError
from actors.testing import Call, Say, Stall, Turn, serve, validate
from actors.tools import tool
from tests.runtime_support import Gate, anthropic, assert_paired, backend_at, bodies, hosting, log, openai

NOT_TAKEN = {
    "openai_responses": {"stop"},
    "kimi": {"temperature", "top_p"},
}
"""What a dialect takes none of, of what is asked for below; the other dialects take it all."""


def sent(name: str, settings: Settings) -> Request:
    """Return the request of a conversation of one message in a dialect."""
    profile = dialect(name)
    history, encoder = History([Message("user", [Text("u")])]), adapter(profile).encoder
    rendered = advance(empty_lane(profile), history, Ledger(), profile, encoder, RenderTarget())
    return adapter(profile).request(rendered._segments, settings, rendered._facts)


def said(value: Any) -> set[str]:  # Any: JSON
    """Return every key that an object has, at any depth."""
    if isinstance(value, list):
        return set().union(*map(said, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(said, value.values()))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("wanted", [{"temperature": 0.5}, {"top_p": 0.9}, {"stop": ("END", "###")}], ids=str)
def test_what_a_dialect_takes_is_sent_and_the_rest_is_named(name: str, wanted: dict[str, Any]) -> None:
    (setting,) = wanted
    words = {"stop": {"stop", "stop_sequences", "stopSequences"}, "top_p": {"top_p", "topP"}}
    made = sent(name, Settings(model="m", **wanted))
    lost = NOT_TAKEN.get(name, set())
    assert set(made.losses) == lost & {setting}
    assert bool(said(json.loads(made.body)) & words.get(setting, {setting})) is (setting not in lost)
    assert validate(made.body, name) is None


@pytest.mark.parametrize("name", ["anthropic", "bedrock"])
def test_of_two_samplings_a_model_takes_one(name: str) -> None:
    both = sent(name, Settings(model="m", temperature=0.5, top_p=0.9))
    assert both.losses == ("top_p",)
    thinking = sent(name, Settings(model="m", temperature=0.5, top_p=0.9, thinking="adaptive"))
    assert set(thinking.losses) == {"temperature", "top_p"}
    assert sent("openai_chat", Settings(model="m", temperature=0.5, top_p=0.9)).losses == ()


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
def test_models_that_take_no_sampling_are_sent_none(name: str, model: str, takes: bool) -> None:
    for wanted in ({"temperature": 0.5}, {"top_p": 0.97}):
        made = sent(name, Settings(model=model, **wanted))  # type: ignore[arg-type]  # either setting
        assert (made.losses == ()) is takes
        assert bool(said(json.loads(made.body)) & {"temperature", "top_p", "topP"}) is takes


EFFORT_LEVELS = "none, minimal, low, medium, high, xhigh, max"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_tokens": 0}, "max_tokens is 0; it takes a whole number from 1, or None"),
        ({"max_tokens": True}, "max_tokens is True; it takes a whole number from 1, or None"),
        ({"temperature": float("nan")}, "temperature is nan; it takes a finite number from 0, or None"),
        ({"top_p": 1.5}, "top_p is 1.5; it takes a number from 0 to 1, or None"),
        ({"stop": ("a", " ")}, "stop is ('a', ' '); it takes at most 4 texts that are not blank, or None"),
        ({"stop": "a"}, "stop is 'a'; it takes at most 4 texts that are not blank, or None"),
        (
            {"tool_choice": "any"},
            "tool_choice is 'any'; it takes one of auto, none, required, ToolChoice('NAME'), or None",
        ),
        ({"thinking": "manual"}, "thinking is 'manual'; it takes one of adaptive, off, or None"),
        (
            {"effort": " "},
            f"effort is ' '; it takes one of {EFFORT_LEVELS}, or the provider's own word, or None",
        ),
        (
            {"effort": "hihg"},
            f"effort is 'hihg'; it takes one of {EFFORT_LEVELS}, or the provider's own word, or None; "
            "did you mean 'high'?",
        ),
        ({"timeout": 0}, "timeout is 0; it takes seconds above 0, or None"),
        ({"max_corrections": -1}, "max_corrections is -1; it takes a whole number from 0, or None"),
        ({"max_token": 3}, "An ask has no setting 'max_token'; did you mean 'max_tokens'?"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_settings(given)
    assert str(refused.value) == says


def test_what_may_be_asked_for_is_what_is_kept() -> None:
    assert {*AskSettings.__annotations__, "output"} == {*Asked.__struct_fields__}
    assert parse_settings({}) is None
    assert parse_settings({"stop": ["a"], "idle_timeout": None}) == Asked(stop=("a",))


@pytest.mark.anyio
@pytest.mark.parametrize("made", [openai, anthropic])
async def test_settings_hold_for_their_ask_and_no_other_and_are_in_the_log(
    made: Any,
) -> None:  # Any: a server
    server = made(Turn(Say("short")), Turn(Say("long")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a")
        await session.ask("Briefly?", max_tokens=50, top_p=0.5, stop=("END",))
        await session.ask("At length?")
        first, second = bodies(server)
        assert 50 in (first.get("max_tokens"), first.get("max_completion_tokens"))
        assert first["top_p"] == 0.5
        assert "top_p" not in second
        assert 50 not in (second.get("max_tokens"), second.get("max_completion_tokens"))
        kept = [event.asked for event in log(runtime, session) if isinstance(event, AskStarted)]
        assert kept == [Asked(max_tokens=50, top_p=0.5, stop=("END",)), None]


@pytest.mark.anyio
async def test_the_settings_of_an_ask_replace_those_of_its_backend_one_by_one() -> None:
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
async def test_a_forced_tool_is_forced_in_the_first_request_alone() -> None:
    server, gate = anthropic(Turn(Call("work", {"name": "a"})), Turn(Say("done"))), Gate()
    gate.open("a")
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        answer = await session.ask("Work!", tool_choice="required")
        assert (answer.status, answer.text) == ("complete", "done")
        forced, free = bodies(server)
        assert forced["tool_choice"] == {"type": "any"}
        assert "tool_choice" not in free


@pytest.mark.anyio
async def test_an_ask_without_tools_declares_them_and_runs_none() -> None:
    server, ran = openai(Turn(Say("by heart"), Call("work"))), []

    @tool
    async def work() -> None:
        ran.append(1)

    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[work])
        answer = await session.ask("Do not look it up.", tool_choice="none")
        (body,) = bodies(server)
        assert (answer.status, body["tool_choice"], ran) == ("complete", "none", [])
        assert [item["function"]["name"] for item in body["tools"]] == ["work"]
        ledger = await session.ledger()
        assert [item.status for item in ledger.interactions()] == ["cancelled"]


@pytest.mark.anyio
async def test_rounds_of_an_ask_bound_it() -> None:
    server, gate = openai(Turn(Call("work", {"name": "a"})), Turn(Say("final"))), Gate()
    gate.open("a")
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        answer = await session.ask("Work!", max_rounds=2)
        assert (answer.rounds, answer.text) == (2, "final")
        assert bodies(server)[1]["tool_choice"] == "none"


@pytest.mark.anyio
async def test_an_ask_that_takes_too_long_fails_with_every_call_closed() -> None:
    """No clock is read here: the tool never returns, so only the deadline can end the ask."""
    server, gate = openai(Turn(Call("work", {"name": "a"})), Turn(Say("next"))), Gate()
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        answer = await session.ask("Work!", timeout=0.2, check=False)
        assert (answer.status, answer.error) == (
            "failed",
            "the ask took longer than 0.2 s, as its timeout says",
        )
        ended = [event for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert [event.status for event in ended] == ["failed"]
        assert (await session.ask("And now?", timeout=60)).text == "next"
        assert_paired(bodies(server)[1])


@pytest.mark.anyio
async def test_a_cancel_before_the_deadline_is_a_cancel() -> None:
    gate = Gate()
    async with hosting(a=openai(Turn(Call("work", {"name": "a"})))) as runtime:
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
async def test_an_ask_waits_no_longer_for_an_answer_than_it_says(setting: str) -> None:
    """The backend's own bounds are a minute and more."""
    silent = Stall() if setting == "first_byte" else Stall(after_bytes=40)
    async with hosting(a=openai(Turn(Say("never heard")), faults={0: silent})) as runtime:
        session = await runtime.open("a")
        wanted: AskSettings = (
            {"first_byte_timeout": 0.2} if setting == "first_byte" else {"idle_timeout": 0.2}
        )
        with anyio.fail_after(30):
            answer = await session.ask("Hello?", **wanted, check=False)
        assert answer.status == "failed"


@pytest.mark.anyio
async def test_a_preview_says_what_of_an_asks_settings_would_be_lost() -> None:
    async with hosting(a=anthropic()) as runtime:
        session = await runtime.open("a")
        preview = await session.preview("a", temperature=0.5, top_p=0.9, thinking="adaptive")
        assert set(preview.losses) == {"temperature", "top_p"}
        assert (await session.preview("a")).losses == {}


def test_a_forced_tool_has_a_loss_where_none_can_be_forced() -> None:
    spec = (ToolSpec("read", "", Json(b'{"type":"object"}')),)
    assert sent("kimi", Settings(model="m", tools=spec, tool_choice="required")).losses == ("tool_choice",)
