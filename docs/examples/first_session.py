import anyio

from actors import Runtime, tool
from actors.testing import Call, OpenAIServer, Say, Turn, serve


@tool
async def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 4 C"


SCRIPT = [
    Turn(Call("weather", {"town": "Oslo"})),
    Turn(Call("weather", {"city": "Oslo"})),
    Turn(Say("Oslo has 4 C.")),
]


async def main() -> None:
    server = OpenAIServer(SCRIPT)
    async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open("openai:gpt-5.2", tools=[weather])
        async with session.stream("Weather in Oslo?") as events:
            async for event in events:
                match event.type:
                    case "tool_call":
                        print("call  ", event.call_id, event.arguments)
                    case "tool_results":
                        print("ended ", [end.outcome for end in event.results])
                    case "complete":
                        print("answer", event.result.text)
                        print("rounds", event.result.rounds)
                    case _:
                        pass


anyio.run(main)
