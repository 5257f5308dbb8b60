import anyio

from actors import Runtime, tool
from actors.testing import AnthropicServer, Call, Say, Think, Turn, serve


@tool
async def look(city: str) -> str:
    """Look up the weather."""
    return f"{city}: rain"


@tool
async def book(hotel: str) -> str:
    """Book a hotel."""
    return f"{hotel}: booked"


TURNS = [
    Turn(Think("Which city?"), Call("look", {"city": "Oslo"})),
    Turn(Think("Rain."), Say("It rains in Oslo.")),
    Turn(Call("book", {"hotel": "Astoria"})),
    Turn(Say("You sleep in the Astoria.")),
]


async def main() -> None:
    server = AnthropicServer(TURNS)
    async with serve(server), Runtime(environ={"ANTHROPIC_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open(
            "anthropic:claude-sonnet-5", tools=[look], system="You know the weather."
        )
        print((await session.ask("Weather in Oslo?")).text)
        print(await session.configure(tools=[book], system="You book hotels."))
        async with session.stream("Then book the Astoria.") as events:
            async for event in events:
                if event.type == "lane_rewritten":
                    print("a new epoch:", event.detail)
                elif event.type == "complete":
                    print(event.result.text)


anyio.run(main)
