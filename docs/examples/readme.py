import anyio

from actors import Runtime
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Think, Turn, serve


def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


async def main() -> None:
    gpt = OpenAIServer([Turn(Call("weather", {"city": "Oslo"})), Turn(Say("Oslo has 4 C."))])
    claude = AnthropicServer([Turn(Think("4 C is cold."), Say("Take a coat."))])
    async with serve(gpt, claude):  # on this machine, and as strict as the real ones
        urls = {"OPENAI_BASE_URL": gpt.base_url, "ANTHROPIC_BASE_URL": claude.base_url}
        async with Runtime(environ=urls) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[weather])
            print((await session.ask("Weather in Oslo?")).text)
            print(await session.switch("anthropic:claude-sonnet-5"))
            print((await session.ask("What shall I wear?")).text, "Refused:", gpt.refusals + claude.refusals)


anyio.run(main)
