"""Use MCP servers as toolsets, through the `mcp` SDK (the extra `mcp`). `actors.mcp` exports these names.

    files = mcp.stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/data"], name="files")
    session = await runtime.open("openai:gpt-5.2", tools=[files], approve=ask_the_user)

`stdio` and `http` return a `ToolSource`, a toolset that the runtime opens and closes like any other. Servers are
untrusted: by default, every call of their tools needs approval, except calls of tools that the server declares
read-only. The SDK is imported when the first server is opened (`sdk`).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Unpack

from actors.tools.mcp.options import Elicit, Elicitation, McpOptions, Sample, Sampling, check_options
from actors.tools.mcp.sdk import with_sdk
from actors.tools.toolsets import ToolSource
from actors.tools.toolsets.source import OpenedTools

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
    """Return the tools of a server that runs as a child process and communicates over its standard streams.

    Args:
        command: The program, searched in `PATH`.
        args: Arguments of the program.
        env: Environment variables for the program. Of the host's variables, the program inherits only `PATH`, `HOME`
            and a few more.
        cwd: Working directory of the program.
        log: A file to which the program's standard error is appended. If the server cannot be opened, the error
            contains its last lines.
        name: The name in errors, and the prefix of a tool whose name is already in use; the program's name by default.
        options: Fields of `McpOptions`.

    Raises:
        ConfigError: The SDK is not installed.
        ToolDefinitionError: An option is invalid.
    """
    build_source, server = check_options(name or Path(command).name, options)

    def open_server() -> AbstractAsyncContextManager[OpenedTools]:
        from actors.tools.mcp.connection import connect
        from actors.tools.mcp.transports import ChildServer

        child = ChildServer(command, tuple(args), dict(env or {}), cwd, log, server.limits, server.name)
        return connect(child.open, server)

    return build_source(partial(with_sdk, open_server))


def http(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    **options: Unpack[McpOptions],
) -> ToolSource:
    """Return the tools of a server at a URL (streamable HTTP).

    Args:
        url: The server's endpoint, often `.../mcp`.
        headers: Headers to send with each request, such as credentials. Errors and logs never contain them.
        name: The name in errors, and the prefix of a tool whose name is already in use; the URL's host by default.
        options: Fields of `McpOptions`.

    Raises:
        ConfigError: The SDK is not installed.
        ToolDefinitionError: An option is invalid.
    """
    build_source, server = check_options(name or _host_name(url), options)

    def open_server() -> AbstractAsyncContextManager[OpenedTools]:
        from actors.tools.mcp.connection import connect
        from actors.tools.mcp.transports import RemoteServer

        return connect(RemoteServer(url, dict(headers or {}), server.limits, server.name).open, server)

    return build_source(partial(with_sdk, open_server))


def _host_name(url: str) -> str:
    """Return the host of a URL, as the default name of a server."""
    from urllib.parse import urlsplit

    return urlsplit(url).hostname or "mcp"
