"""MCP servers as toolsets, through the `mcp` SDK (the extra `mcp`).

    from actors import mcp

    files = mcp.stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/data"], name="files")
    issues = mcp.http("https://example.com/mcp", headers={"Authorization": f"Bearer {token}"}, name="issues")
    session = await runtime.open("openai:gpt-5.2", tools=[files, issues], approve=ask_the_user)

Both give a `ToolSource`: when it is opened, kept, opened again and closed is as of any toolset. What a server says of
itself is a stranger's word: its tools are asked about before they run, unless it says that they only read.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Unpack

from actors.tools.mcp.options import Elicit, Elicitation, McpOptions, Sample, Sampling, options_of
from actors.tools.mcp.sdk import with_sdk
from actors.tools.toolsets import ToolSource
from actors.tools.toolsets.source import Given

__all__ = ["Elicit", "Elicitation", "McpOptions", "Sample", "Sampling", "http", "stdio"]


def stdio(
    command: str,
    args: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    log: str | Path | None = None,
    name: str | None = None,
    **options: Unpack[McpOptions],
) -> ToolSource:
    """Return the tools of a server that runs as a child process and is spoken to over its standard streams.

    Args:
        command: The program, looked for in `PATH`.
        args: Its arguments.
        env: Variables it gets beside `PATH`, `HOME` and a few more; nothing else of this process's.
        cwd: Where it runs.
        log: A file that its standard error is appended to. The last lines are in the error if it cannot be opened.
        name: Names the server in errors, and sets its tools apart; the program's name by default.
        options: As of `McpOptions`.

    Raises:
        ConfigError: The SDK is not installed.
        ToolDefinitionError: An option cannot be used.
    """
    named, how = options_of(name or Path(command).name, options)

    def open_() -> AbstractAsyncContextManager[Given]:
        from actors.tools.mcp.connection import connected
        from actors.tools.mcp.transports import ChildServer

        child = ChildServer(command, tuple(args), dict(env or {}), cwd, log, how.limits, how.name)
        return connected(child.open, how)

    return named(partial(with_sdk, open_))


def http(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    **options: Unpack[McpOptions],
) -> ToolSource:
    """Return the tools of a server at an address (streamable HTTP).

    Args:
        url: The server's endpoint, often `.../mcp`.
        headers: Sent with each request: credentials, for instance. They are shown nowhere.
        name: Names the server in errors, and sets its tools apart; the address's host by default.
        options: As of `McpOptions`.

    Raises:
        ConfigError: The SDK is not installed.
        ToolDefinitionError: An option cannot be used.
    """
    named, how = options_of(name or _host(url), options)

    def open_() -> AbstractAsyncContextManager[Given]:
        from actors.tools.mcp.connection import connected
        from actors.tools.mcp.transports import RemoteServer

        return connected(RemoteServer(url, dict(headers or {}), how.limits, how.name).open, how)

    return named(partial(with_sdk, open_))


def _host(url: str) -> str:
    from urllib.parse import urlsplit

    return urlsplit(url).hostname or "mcp"
