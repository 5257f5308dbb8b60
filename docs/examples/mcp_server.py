import sys

import anyio
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from actors import Runtime, ToolCall, mcp
from actors.testing import AnthropicServer, Call, Say, Turn, serve

server = MCPServer("depot")  # an example server; any MCP server works


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def stock(item: str) -> int:
    """Count the items in stock."""
    return 4


@server.tool()
def order(item: str, count: int) -> str:
    """Order items."""
    return f"{count} {item} ordered"


def approve(call: ToolCall) -> bool:
    """Approve calls of tools that are not declared read-only."""
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
