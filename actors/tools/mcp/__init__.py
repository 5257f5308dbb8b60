"""Use MCP servers as toolsets, through the `mcp` SDK (the extra `mcp`). `actors.mcp` exports these names.

    files = mcp.stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/data"], name="files")
    session = await runtime.open("openai:gpt-5.2", tools=[files], approve=ask_the_user)

`stdio` and `http` return a `ToolSource`, a toolset that the runtime opens and closes like any other. Servers are
untrusted: by default, every call of their tools needs approval, except calls of tools that the server declares
read-only.

The SDK is imported in a thread when the first server is opened, so that the event loop keeps running. The import takes
about a second. All waiting tasks share one import, even in different event loops. Cancelling a waiting task does not
stop the import, and the next task uses its result. If the import fails, the next task tries again. The time counts
towards the toolset's `opening` timeout.
"""

import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Unpack

from actors.kernel.event_loop import Waiter, event_loop, reset_after_fork, wake
from actors.tools.mcp.options import Elicit, Elicitation, McpOptions, Sample, Sampling, check_options
from actors.tools.toolset import OpenedTools
from actors.tools.toolsets import ToolSource

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
        env: Environment variables for the program. The program inherits only `PATH`, `HOME` and a few more of the
            host's variables.
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


def _import_sdk() -> None:
    """Import the modules of this package that import the SDK."""
    import_module("actors.tools.mcp.connection")
    import_module("actors.tools.mcp.transports")  # imports the SDK


class SdkImport:
    """The import of the SDK in this process. `SDK` is the only instance outside tests.

    Args:
        load: Imports the SDK. Called in a separate thread; if it raises, called again when the SDK is next needed.
    """

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load
        self.reset()

    def reset(self) -> None:
        """Return to the state before the import.

        A forked child process calls this, because the thread of its parent does not exist in the child.
        """
        self._lock = threading.Lock()
        self._is_done = False
        self._waiting: list[Callable[[BaseException | None], None]] = []

    async def ready(self) -> None:
        """Wait until the SDK is imported. If the import fails, raise its exception."""
        if self._is_done:
            return
        here = event_loop()
        waiter: Waiter = here.waiter()

        def notify(error: BaseException | None) -> None:
            here.soon(partial(wake, waiter, copy(error)))

        self._add_waiter(notify)
        if (error := await waiter) is not None:
            raise error

    def _add_waiter(self, notify: Callable[[BaseException | None], None]) -> None:
        """Start the import unless it is running. The import thread calls `notify` when the import has ended."""
        with self._lock:
            self._waiting.append(notify)
            is_first = len(self._waiting) == 1
        if is_first:
            threading.Thread(target=self._run, name="actors mcp import", daemon=True).start()

    def _run(self) -> None:
        """Import the SDK in the thread, and notify the waiting tasks."""
        error: BaseException | None = None
        try:
            self._load()
        except BaseException as raised:  # every waiting task raises a copy of this exception
            error = raised
        with self._lock:
            self._is_done = error is None
            waiting, self._waiting = self._waiting, []
        for notify in waiting:
            try:
                notify(error)
            except RuntimeError:  # the event loop of the waiting task has ended
                continue


SDK = SdkImport(_import_sdk)
reset_after_fork(SDK.reset)


@asynccontextmanager
async def with_sdk(
    open_server: Callable[[], AbstractAsyncContextManager[OpenedTools]],
) -> AsyncGenerator[OpenedTools]:
    """Import the SDK, and then open a server's tools."""
    await SDK.ready()
    async with open_server() as given:
        yield given
