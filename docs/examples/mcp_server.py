import sys

import anyio
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from actors import Runtime, ToolCall, mcp
from actors.testing import AnthropicServer, Call, Say, Turn, serve

server = MCPServer("depot")  # a server, made with the SDK: any other will do


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def stock(item: str) -> int:
    """How many there are."""
    return 4


@server.tool()
def order(item: str, count: int) -> str:
    """Order some."""
    return f"{count} {item} ordered"


def approve(call: ToolCall) -> bool:
    """Asked before a call of a tool that does not say it only reads."""
    return call.arguments["count"] == 2


SCRIPT = [
    Turn(Call("stock", {"item": "lamps"}), Call("order", {"item": "lamps", "count": 2})),
    Turn(Call("order", {"item": "lamps", "count": 1000})),
    Turn(Say("Two are ordered.")),
]


async def main() -> None:
    model = AnthropicServer(SCRIPT)
    depot = mcp.stdio(sys.executable, [__file__, "serve"], name="depot")
    async with serve(model), Runtime(environ={"ANTHROPIC_BASE_URL": model.base_url}) as runtime:
        session = await runtime.open("anthropic:claude-sonnet-5", tools=[depot], approve=approve)
        print((await session.ask("Order lamps.")).text)
        for call in (await session.ledger()).interactions():
            assert call.completion is not None
            print(call.tool, call.status, call.completion.error or call.completion.content)


if sys.argv[1:] == ["serve"]:
    server.run()
else:
    anyio.run(main)
