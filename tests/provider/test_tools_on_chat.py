"""Models without tools on Chat Completions: the error names the fix, and pools skip them."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from actors import Runtime, Session, tool
from actors.config import Config, FileSettings
from actors.config.settings import BackendSettings, PoolSettings
from actors.core.stream_events.ask_events import CompleteEvent, MemberSkippedEvent
from actors.errors import ConfigError
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, serve

pytestmark = pytest.mark.anyio

NEVER = pytest.mark.parametrize("model", ["gpt-6-astra", "gpt-6.1-sol", "gpt-6-astra-2026-09-01"])
FIX = r"accepts no tools on Chat Completions; use openai_responses:"


@tool
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


def config(
    gpt: str, claude: str = "http://127.0.0.1:9", *, model: str = "gpt-6-astra", **pool: Any
) -> Config:
    backends = {
        "gpt": BackendSettings(kind="openai", model=model, base_url=gpt),
        "twin": BackendSettings(kind="openai_chat", model=model, base_url=gpt),
        "claude": BackendSettings(kind="anthropic", model="claude-sonnet-5", base_url=claude),
    }
    pools = {
        "main": PoolSettings(members=("gpt", "claude", "twin"), policy="failover", **pool),
        "none": PoolSettings(members=("gpt", "twin")),
    }
    return Config(FileSettings(backends=backends, pools=pools), {})


@NEVER
async def test_errors_raised_by_open_or_switch_or_configure_name_the_api_that_supports_tools(
    model: str,
) -> None:
    chat, claude = OpenAIServer([Turn(Say("Yes."))]), AnthropicServer()
    with anyio.fail_after(60):
        async with serve(chat, claude):
            settings = config(chat.base_url, claude.base_url, model=model)
            async with Runtime(settings) as runtime:
                for target in ("gpt", "twin", "none"):
                    with pytest.raises(ConfigError, match=FIX + model):
                        await runtime.open(target, tools=[weather])
                session = await runtime.open("claude", tools=[weather])
                for target in ("gpt", "none"):
                    with pytest.raises(ConfigError, match=FIX + model):
                        await session.switch(target)
                    with pytest.raises(ConfigError, match=FIX + model):
                        await session.preview(target)
                bare = await runtime.open("gpt")
                with pytest.raises(ConfigError, match=FIX + model):
                    await bare.configure(tools=[weather])
                assert (await bare.ask("Is it?")).text == "Yes."
    assert (chat.refusals, len(chat.requests), claude.requests) == ([], 1, [])


async def test_the_same_model_is_accepted_on_the_responses_api() -> None:
    environ = {"OPENAI_API_KEY": "k"}
    async with Runtime(environ=environ) as runtime:
        await runtime.open("openai:gpt-6-astra", tools=[weather])
        await runtime.open("openai_responses:gpt-6-astra", tools=[weather])
        with pytest.raises(ConfigError, match=FIX + "gpt-6-astra"):
            await runtime.open("openai_chat:gpt-6-astra", tools=[weather])


@pytest.mark.parametrize("policy", ["failover", "round_robin", "weighted", "manual"])
async def test_a_pool_skips_and_reports_members_that_do_not_support_tools(policy: str) -> None:
    chat = OpenAIServer()
    claude = AnthropicServer([Turn(Call("weather", {"city": "Oslo"})), Turn(Say("Cold.")), Turn(Say("Bye."))])
    with anyio.fail_after(60):
        async with serve(chat, claude):
            settings = config(chat.base_url, claude.base_url)
            pools = {"main": settings.settings.pools["main"].model_copy(update={"policy": policy})}
            settings = Config(settings.settings.model_copy(update={"pools": pools}), {})
            async with Runtime(settings) as runtime:
                session = await runtime.open("main", tools=[weather])
                preview = await session.preview("main")
                events = [event async for event in stream_events(session, "Weather in Oslo?")]
                later = await session.ask("Good bye.")
    complete = events[-1]
    assert isinstance(complete, CompleteEvent)
    result = complete.result
    assert (result.text, result.binding.backend, later.text) == ("Cold.", "claude", "Bye.")
    assert [each.binding.backend for each in result.attempts] == ["claude"]
    for shown in (preview.skipped, result.skipped, later.skipped):
        assert [each.member for each in shown] == ["gpt", "twin"]
        assert all("openai_responses:gpt-6-astra" in each.reason for each in shown)
    assert preview.binding.backend == "claude"
    told = [event.member for event in events if isinstance(event, MemberSkippedEvent)]
    assert told == ["gpt", "twin"]
    assert chat.requests == []


async def stream_events(session: Session, message: str) -> Any:  # Any: an async generator of events
    async with session.stream(message) as events:
        async for event in events:
            yield event


async def test_a_pool_skips_no_member_for_a_session_without_tools() -> None:
    chat = OpenAIServer([Turn(Say("Yes."))])
    with anyio.fail_after(60):
        async with serve(chat), Runtime(config(chat.base_url)) as runtime:
            session = await runtime.open("main")
            result = await session.ask("Is it?")
    assert (result.text, result.binding.backend, result.skipped) == ("Yes.", "gpt", ())


async def test_pool_weights_apply_to_the_remaining_members() -> None:
    claude = AnthropicServer([Turn(Say("One.")), Turn(Say("Two."))])
    weights = {"gpt": 5, "claude": 1, "twin": 7}
    with anyio.fail_after(60):
        async with serve(claude):
            made = config("http://127.0.0.1:9", claude.base_url, weights=weights)
            pools = {"main": made.settings.pools["main"].model_copy(update={"policy": "weighted"})}
            made = Config(made.settings.model_copy(update={"pools": pools}), {})
            async with Runtime(made) as runtime:
                session = await runtime.open("main", tools=[weather])
                texts = [(await session.ask(words)).text for words in ("a", "b")]
    assert texts == ["One.", "Two."]


async def test_a_model_entry_of_the_user_overrides_the_model_table(tmp_path: Path) -> None:
    chat, file = OpenAIServer([Turn(Say("Yes."))]), tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(chat):
            file.write_text(
                f'[backends.gpt]\nkind = "openai"\nmodel = "gpt-6-astra"\nbase_url = "{chat.base_url}"\n'
                '[models."gpt:*"]\nchat_tools = "always"\n'
            )
            async with Runtime(file, environ={}) as runtime:
                session = await runtime.open("gpt", tools=[weather])
                assert (await session.preview("gpt")).skipped == ()
