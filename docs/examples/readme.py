import anyio

from actors.testing import call, offline, say, think


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 °C"


SCRIPT = {  # two strict provider servers on this machine; with real keys: Runtime()
    "openai:gpt-5.2": [call("weather", city="Oslo"), say("Oslo has 4 °C.")],
    "anthropic:claude-sonnet-5": [think("4 °C is cold."), say("Take a coat.")],
}


async def main() -> None:
    async with offline(SCRIPT) as runtime, runtime.open("openai:gpt-5.2", tools=[weather]) as session:
        print((await session.ask("Weather in Oslo?")).text)
        await session.switch("anthropic:claude-sonnet-5")
        print((await session.ask("What should I wear?")).text, "Requests refused:", runtime.stats().refused)


anyio.run(main)
