"""A reference MCP server made with the SDK, in this process or forked (`tests.tools.mcp_servers.forking`).

It serves standard streams, or HTTP at the port in its first argument (0 for any); then it prints its port and process
id. Its side effects are reported line by line to the loopback port in the variable `NOTES`.
"""

import os
import socket
import sys
from typing import Annotated

import anyio
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp_types import (
    CallToolResult,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

from actors.testing.images import png_base64

server = MCPServer("reference", instructions="Count carefully.")

PIXEL = png_base64()


def note(line: str) -> None:
    """Report a side effect to the test."""
    if port := os.environ.get("NOTES"):
        with socket.create_connection(("127.0.0.1", int(port))) as notes:
            notes.sendall(f"{line}\n".encode())


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(one: int, other: int) -> int:
    """Add two numbers."""
    return one + other


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def store(key: str) -> str:
    """Store something."""
    note(f"store {key}")
    return f"stored {key}"


@server.tool()
def pid() -> str:
    """Return the process id."""
    return str(os.getpid())


@server.tool(structured_output=False)
def picture() -> CallToolResult:
    """Show a picture with a caption."""
    resource = TextResourceContents(uri="memo://one", text="Under the picture.", mime_type="text/plain")
    return CallToolResult(
        content=[
            TextContent(type="text", text="A pixel."),
            ImageContent(type="image", data=PIXEL, mime_type="image/png"),
            EmbeddedResource(type="resource", resource=resource),
        ]
    )


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("the disk is full")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def look(context: Context) -> str:
    """Report progress and wait forever; after a restart, return at once."""
    if os.environ.get("FOUND") or (len(sys.argv) > 2 and sys.argv[2] == "found"):
        return "found"
    await context.report_progress(1, 4, "looking")
    note(f"looking {os.getpid()}")
    try:
        await anyio.sleep_forever()
    except BaseException:
        note("cancelled")
        raise
    raise AssertionError


@server.tool()
async def hang() -> str:
    """Wait forever, with an unknown effect."""
    note(f"hanging {os.getpid()}")
    await anyio.sleep_forever()
    raise AssertionError


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def learn(name: str, context: Context) -> str:
    """Add one more tool."""
    server.add_tool(lambda: f"{name} was learnt", name=name, description="A new one.")
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "learnt"


class Answer(BaseModel):
    colour: str


def colour_question() -> Elicit[Answer]:
    return Elicit("Which colour?", Answer)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def favourite(answer: Annotated[ElicitationResult[Answer], Resolve(colour_question)]) -> str:
    """Ask the user for a colour."""
    return f"accept: {answer.data.colour}" if answer.action == "accept" else answer.action


def poem_request() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Write a poem."))
    return Sample([message], max_tokens=20, system_prompt="Rhyme.")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def poem(written: Annotated[CreateMessageResult, Resolve(poem_request)]) -> str:
    """Request a poem from the host's model."""
    return f"{written.model}: {written.content.text}" if isinstance(written.content, TextContent) else "?"


async def serve_http(port: int) -> None:
    import uvicorn  # most of these servers need none

    listener = socket.create_server(("127.0.0.1", port))
    sys.stdout.write(f"{listener.getsockname()[1]} {os.getpid()}\n")
    sys.stdout.flush()
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    await uvicorn.Server(config).serve(sockets=[listener])


def main() -> None:
    """Serve as the arguments say."""
    note(f"began {os.getpid()}")
    if sys.argv[1:] and sys.argv[1].isdecimal():
        anyio.run(serve_http, int(sys.argv[1]))
    else:
        server.run()
