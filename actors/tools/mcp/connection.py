"""One connection to an MCP server: its tools as ours, its calls, and how it is known that it was lost.

It lives in the block of a toolset. Calls come from the tasks of tools; a call that is cancelled is told to the server
by the SDK. A call whose connection ends has no known outcome, and says so.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import Subscription
from mcp_types import CONNECTION_CLOSED, ToolListChangedNotification
from mcp_types import Tool as Listed
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from actors import telemetry
from actors.core.data.jsonio import JsonValue
from actors.core.log.events import Effects
from actors.core.values.identity import content_name
from actors.errors import ToolDefinitionError, ToolsetDown
from actors.tools import Approval, Tool, ToolContext
from actors.tools.mcp.answers import TOOLS
from actors.tools.mcp.options import REST, McpServer
from actors.tools.mcp.questions import elicitation, sampling
from actors.tools.mcp.refusals import too_large
from actors.tools.mcp.results import failure, returned
from actors.tools.mcp.transports import Transport
from actors.tools.tool import MAX_DESCRIPTION
from actors.tools.toolsets.offer import fitting

PAGES = 100  # of a list of tools that are read
REFUSED = {"Session terminated": False, "Server returned an error response": True}
"""What the SDK says of a request that an HTTP server refused, and whether it may have run: one that was restarted does
not know the session any more, and answers 404, or 400 as others do for other reasons."""


@asynccontextmanager
async def connected(transport: Transport, server: McpServer) -> AsyncIterator["ServerTools"]:
    """Open a connection, and give it with its tools listed."""
    connection = ServerTools(server)
    client = Client(
        transport(connection.ended),
        cache=None,
        message_handler=connection.notified,
        elicitation_callback=elicitation(server),
        sampling_callback=sampling(server),
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(client)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        if _may_listen(client):
            events = await stack.enter_async_context(client.listen(tools_list_changed=True))
            tasks.start_soon(connection.listen, events)
        await connection.begin(client)
        yield connection


def _may_listen(client: Client) -> bool:
    """Say whether changes of the list have to be asked for. Servers of before 2026 tell them anyway, if they do."""
    tools = client.server_capabilities.tools
    return (
        client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and bool(tools.list_changed)
    )


class ServerTools:
    """A server's tools while one connection lasts; see `actors.tools.toolsets.source.LiveTools`."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._client: Client | None = None
        self._news = anyio.Event()
        self._is_lost = self._is_listing = False
        self.tools: tuple[Tool[..., Any], ...] = ()  # Any: any function

    async def begin(self, client: Client) -> None:
        """List the tools for the first time."""
        self._client = client
        await self._list()

    @property
    def is_changing(self) -> bool:
        """Whether the server said that its list has changed, and it was not read since."""
        return self._is_listing or self._news.is_set()

    async def changed(self) -> None:
        """Return when the list has changed; raise when the connection is lost."""
        await self._news.wait()
        self._news = anyio.Event()
        if self._is_lost:
            raise ToolsetDown(f"the connection to MCP server {self._server.name!r} was lost")
        self._is_listing = True
        try:
            await self._list()
        finally:
            self._is_listing = False

    async def notified(self, message: IncomingMessage) -> None:
        """Hear what the server says of itself."""
        if isinstance(message, ToolListChangedNotification):
            self._news.set()

    async def listen(self, events: Subscription) -> None:
        """Hear of changes of the list, from servers that have to be asked for them."""
        async for _ in events:
            self._news.set()

    def ended(self) -> None:
        """Hear that the server has ended the connection."""
        self._is_lost = True
        self._news.set()

    async def _list(self) -> None:
        with anyio.fail_after(self._server.listing):
            listed = await self._listed()
        only = self._server.only
        self.tools = self._build_tools([each for each in listed if only is None or each.name in only])

    async def _listed(self) -> list[Listed]:
        assert self._client is not None
        listed: list[Listed] = []
        cursor: str | None = None
        for _ in range(PAGES):
            try:
                page = await self._client.list_tools(cursor=cursor)
            except MCPError as error:
                raise (too_large(error.error) or error) from None
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None or len(listed) > TOOLS:
                break
        return listed[:TOOLS]

    def _build_tools(self, listed: Sequence[Listed]) -> tuple[Tool[..., Any], ...]:  # Any: any function
        """Return the tools of a list; leave out one that no model could be shown, and log that."""
        tools: list[Tool[..., Any]] = []  # Any: any function
        for name, each in assign_names(listed):
            try:
                tools.append(self._made(name, each))
            except ToolDefinitionError as error:
                telemetry.tool_left_out(self._server.name, each.name, error)
        return tuple(tools)

    def _made(self, name: str, listed: Listed) -> Tool[..., Any]:  # Any: any function
        effects = effects_of(listed)
        return Tool.from_schema(
            name,
            (listed.description or listed.title or "")[:MAX_DESCRIPTION],
            _schema(listed),
            self._caller(listed.name),
            effects=effects,
            approval=self._approval(listed.name, effects),
            timeout=self._server.timeout,
        )

    def _approval(self, name: str, effects: Effects) -> Approval:
        said = self._server.approval
        if isinstance(said, Mapping):
            said = said.get(name) or said.get(REST)
        return said or ("allow" if effects == "pure" else "ask")

    def _caller(self, name: str) -> Callable[..., Any]:  # Any: any function
        async def call(
            _tool_context: ToolContext[object], **arguments: Any
        ) -> object:  # Any: fits the schema
            return await self._call(name, arguments, _tool_context)

        return call

    async def _call(self, name: str, arguments: dict[str, JsonValue], context: ToolContext[object]) -> object:
        async def come(progress: float, total: float | None, message: str | None) -> None:
            await context.progress(message or "", min(progress / total, 1.0) if total else None)

        assert self._client is not None
        if self._is_lost:
            raise ToolsetDown(f"The connection to MCP server {self._server.name!r} was lost")
        try:
            return returned(await self._client.call_tool(name, arguments, progress_callback=come))
        except MCPError as error:
            if not self._is_cut(error):
                raise failure(error) from None
            raise self._cut(may_have_run=REFUSED.get(error.message, True)) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise self._cut(may_have_run=True) from None

    def _is_cut(self, error: MCPError) -> bool:
        """Say whether a call failed because the connection, or what the server knew of it, is gone."""
        return self._is_lost or error.code == CONNECTION_CLOSED or error.message in REFUSED

    def _cut(self, *, may_have_run: bool) -> ToolsetDown:
        """Note that the connection is of no use any more, and return what that means for a call."""
        self.ended()
        lost = f"The connection to MCP server {self._server.name!r} was lost during the call."
        end = "Whether it took effect is not known" if may_have_run else "It did not run"
        return ToolsetDown(f"{lost} {end}", may_have_run=may_have_run)


def effects_of(listed: Listed) -> Effects:
    """Return what a call of a server's tool does to the world, as far as the server says."""
    hints = listed.annotations
    if hints is None:
        return "once"
    if hints.read_only_hint:
        return "pure"
    return "idempotent" if hints.idempotent_hint else "once"


def _schema(listed: Listed) -> dict[str, JsonValue]:
    return {"type": "object", **listed.input_schema}


def assign_names(listed: Iterable[Listed]) -> Iterator[tuple[str, Listed]]:
    """Yield tools with the names that a model is shown, whatever the order of the list.

    A name that every provider takes stays. Another one is changed; if two come to the same, a digest of the server's
    name tells them apart. Of two tools with the same name the server knows only one, so one is offered.
    """
    tools: dict[str, Listed] = {}
    for each in listed:
        known = tools.get(each.name)
        tools[each.name] = each if known is None else min(known, each, key=Listed.model_dump_json)
    alike = Counter(map(fitting, tools))
    for name, each in tools.items():
        usable = fitting(name)
        yield usable if usable == name or alike[usable] == 1 else _apart(usable, name, tools), each


def _apart(usable: str, name: str, taken: Collection[str]) -> str:
    """Return a name with a digest of the server's name for a tool, which no other tool has."""
    digest = content_name(name)
    tries = (fitting(f"{usable[:40]}_{digest[:size]}") for size in range(8, len(digest) + 1))
    return next(each for each in tries if each not in taken)
