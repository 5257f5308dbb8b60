import anyio

from actors import Runtime, ToolCall, tool
from actors.testing import AnthropicServer, Call, Say, Turn, serve


@tool
async def weather(city: str, days: int = 1) -> dict[str, object]:
    """Forecast for a city.

    Args:
        city: Name of the city.
        days: How many days, from today.
    """
    return {"city": city, "celsius": [4] * days}


@tool(timeout=5)
def read_file(path: str) -> str:
    """Read a text file."""  # a plain function runs in a worker thread
    with open(path) as file:
        return file.read()


@tool(approval="ask")
async def delete(path: str) -> str:
    """Delete a file."""
    return f"{path}: deleted"


def approve(call: ToolCall) -> bool:
    """Decide on calls of tools with `approval="ask"`."""
    return call.arguments["path"] == "old.txt"


SCRIPT = [
    Turn(
        Call("weather", {"city": "Oslo", "days": 2}),
        Call("weather", {"days": "many"}),
        Call("read_file", {"path": "/no/such/file"}),
        Call("delete", {"path": "old.txt"}),
        Call("delete", {"path": "new.txt"}),
        Call("wether", {"city": "Oslo"}),
    ),
    Turn(Say("I see.")),
]


async def main() -> None:
    server = AnthropicServer(SCRIPT)
    async with serve(server), Runtime(environ={"ANTHROPIC_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open(
            "anthropic:claude-sonnet-5", tools=[weather, read_file, delete], approve=approve
        )
        await session.ask("Do all kinds of things.")
        for call in (await session.ledger()).interactions():
            assert call.completion is not None
            print(call.tool, call.status, str(call.completion.error or call.completion.content)[:64])


anyio.run(main)
