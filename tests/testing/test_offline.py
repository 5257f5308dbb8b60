"""`offline` serves every target of a script in the dialect of the target's own provider."""

from typing import Any

import pytest

from actors import AskFailed, tool
from actors.config.providers import PROVIDERS
from actors.errors import ConfigError, UnknownTarget
from actors.testing import Call, Say, Think, Turn, answer, call, offline, say, think
from actors.testing.offline_runtime import ScriptPart, group_answers

pytestmark = pytest.mark.anyio

MODELS = {"anthropic": "claude-sonnet-5", "bedrock_anthropic": "anthropic.claude-sonnet-5"}
REACHED = [kind for kind, provider in PROVIDERS.items() if provider.endpoint]


@tool
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 °C"


async def test_a_scripted_answer_ends_with_text_or_the_last_of_adjacent_calls() -> None:
    find, look = call("find", name="x"), call("look")
    script: list[ScriptPart] = [
        think("Hm."),
        find,
        look,
        say("One."),
        answer(say("Two."), look),
        think("So."),
        say("Three."),
        find,
    ]
    assert group_answers(script) == [
        Turn(Think("Hm."), Call("find", {"name": "x"}), Call("look")),
        Turn(Say("One.")),
        Turn(Say("Two."), Call("look")),
        Turn(Think("So."), Say("Three.")),
        Turn(Call("find", {"name": "x"})),
    ]


@pytest.mark.parametrize("kind", REACHED)
async def test_every_provider_with_an_address_answers_in_its_own_dialect(kind: str) -> None:
    target = f"{kind}:{MODELS.get(kind, 'm')}"
    provider = PROVIDERS[kind]
    async with offline({target: [say("Hello.")]}) as runtime, runtime.open(target) as session:
        result = await session.ask("Hi.")
        assert (result.text, runtime.stats().refused) == ("Hello.", 0)
        assert result.binding.dialect == provider.dialect_at(provider.endpoint)


async def test_the_offline_mode_serves_several_models_of_one_provider_and_a_second_provider() -> None:
    small, large, claude = "openai:gpt-5-mini", "openai:gpt-5", "anthropic:claude-sonnet-5"
    script: dict[str, list[ScriptPart]] = {
        small: [call("weather", city="Oslo"), say("It is cold.")],
        large: [say("Very cold.")],
        claude: [think("4 °C."), say("Take a coat.")],
    }
    async with offline(script) as runtime, runtime.open(small, tools=[weather]) as session:
        texts = [(await session.ask("Weather?")).text]
        for target in (large, claude, small):
            await session.switch(target)
            texts.append((await session.ask("And?")).text)
        assert texts == ["It is cold.", "Very cold.", "Take a coat.", "ok"]
        assert runtime.stats().refused == 0


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ({}, ConfigError, "The script is empty"),
        ({"nowhere:m": [say("Hi.")]}, UnknownTarget, "nowhere"),
        (
            {"openai:gpt-5": ["Hi."]},
            ConfigError,
            "say\\(\\), think\\(\\), call\\(\\) and answer\\(\\), but not 'Hi\\.'",
        ),
        ({"openai:gpt-5": say("Hi.")}, ConfigError, "must be a list of .*, not Say"),
        ({"vertex:gemini-3-pro": [say("Hi.")]}, ConfigError, "'vertex' has no default address"),
    ],
)
async def test_an_invalid_script_raises_a_typed_error(
    script: Any,  # Any: an invalid script
    kind: type[ConfigError],
    words: str,
) -> None:
    with pytest.raises(kind, match=words):
        async with offline(script):
            pass


async def test_a_scripted_answer_within_an_answer_raises_a_typed_error() -> None:
    with pytest.raises(ConfigError, match="not another answer"):
        answer(say("One."), answer(say("Two.")))


async def test_a_target_without_a_script_fails_and_the_message_names_the_fix() -> None:
    async with (
        offline({"openai:gpt-5": [say("Hi.")]}) as runtime,
        runtime.open("anthropic:claude-sonnet-5") as session,
    ):
        with pytest.raises(AskFailed, match="add an entry for its target to the script"):
            await session.ask("Hi.")
