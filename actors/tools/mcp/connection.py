"""Manage one connection to an MCP server: convert its tools, run their calls, and detect the loss of the connection.

The task that opened the toolset keeps the connection open. Each call runs in the task of its tool. When a call is
cancelled, the SDK notifies the server. If the connection is lost during a call, the call fails with an error that says
whether the call may have run.

During a call, a server may request user input (elicitation) or a model's answer (sampling). The functions that the host
passes as `elicit=` and `sample=` give the answers. Without them, the SDK does not declare the capability and rejects
the requests. If a function raises, the server learns only that the host could not answer.
"""

import inspect
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar, cast

import anyio
from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext, ElicitationFnT, IncomingMessage, SamplingFnT
from mcp.client.subscriptions import Subscription
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    AudioContent,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ImageContent,
    SamplingMessage,
    TextContent,
    ToolListChangedNotification,
)
from mcp_types import Tool as Listed
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from actors.core.data.jsonio import JsonValue
from actors.core.log.call_events import Effects
from actors.core.values.content import Block, Media, Message, Text
from actors.core.values.identity import content_digest
from actors.errors import ToolDefinitionError, ToolsetDown
from actors.kernel.host_code import await_host
from actors.telemetry import logger
from actors.tools.context import ToolContext
from actors.tools.mcp.answers import MAX_TOOLS, decode_error, rejection_error, tool_output
from actors.tools.mcp.options import OTHER_TOOLS, Elicitation, McpServer, Sampling
from actors.tools.mcp.transports import Transport
from actors.tools.tool import MAX_DESCRIPTION, Approval, Tool
from actors.tools.toolsets import valid_name

MAX_PAGES = 100  # maximum pages of a server's list of tools
REJECTION_MESSAGES = {"Session terminated": False, "Server returned an error response": True}
"""The SDK's error messages for requests that an HTTP server rejected, and whether the request may have run.

A server that was restarted does not know the session, so it rejects the request with status 404 or 400. A status of 400
may have other causes, so the request may have run.
"""
T = TypeVar("T")
FAILED = ErrorData(code=INTERNAL_ERROR, message="The client could not answer this request.")
DECLINED = ErrorData(code=INVALID_REQUEST, message="The client declined this request.")


@asynccontextmanager
async def connect(transport: Transport, server: McpServer) -> AsyncGenerator["ServerTools"]:
    """Connect to a server, read its list of tools, and return the connection."""
    connection = ServerTools(server)
    client = Client(
        transport(connection.on_end),
        cache=None,
        message_handler=connection.on_notification,
        elicitation_callback=elicitation_callback(server),
        sampling_callback=sampling_callback(server),
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(client)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        if _must_subscribe(client):
            events = await stack.enter_async_context(client.listen(tools_list_changed=True))
            tasks.start_soon(connection.listen, events)
        await connection.start(client)
        yield connection


def _must_subscribe(client: Client) -> bool:
    """Return True if the client must subscribe to changes of the tool list.

    Servers with a protocol from before 2026 announce changes without a subscription.
    """
    tools = client.server_capabilities.tools
    return (
        client.protocol_version in MODERN_PROTOCOL_VERSIONS and tools is not None and bool(tools.list_changed)
    )


class ServerTools:
    """The tools of an MCP server during one connection. Implements `actors.tools.toolset.LiveTools`."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._client: Client | None = None
        self._changed = anyio.Event()
        self._is_lost = self._is_listing = False
        self.tools: tuple[Tool[..., Any], ...] = ()  # Any: tool signatures differ

    async def start(self, client: Client) -> None:
        """Set the client, and read the list of tools for the first time."""
        self._client = client
        await self._refresh()

    @property
    def is_changing(self) -> bool:
        """True if the server has announced a change of its tool list, and the new list has not been read yet."""
        return self._is_listing or self._changed.is_set()

    async def changed(self) -> None:
        """Return when a changed list of tools has been read. Raise when the connection is lost."""
        await self._changed.wait()
        self._changed = anyio.Event()
        if self._is_lost:
            raise ToolsetDown(f"the connection to MCP server {self._server.name!r} was lost")
        self._is_listing = True
        try:
            await self._refresh()
        finally:
            self._is_listing = False

    async def on_notification(self, message: IncomingMessage) -> None:
        """Mark the tool list as changed if a notification from the server announces a change."""
        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    async def listen(self, events: Subscription) -> None:
        """Mark the tool list as changed on each event of a subscription.

        Servers with a protocol from 2026 on announce changes only to subscribers.
        """
        async for _ in events:
            self._changed.set()

    def on_end(self) -> None:
        """Record that the connection is lost, and wake the task that waits in `changed`."""
        self._is_lost = True
        self._changed.set()

    async def _refresh(self) -> None:
        """Read the list of tools within the time limit, and convert the tools that the options select."""
        with anyio.fail_after(self._server.listing):
            listed = await self._read_list()
        only = self._server.only
        self.tools = self._build_tools([each for each in listed if only is None or each.name in only])

    async def _read_list(self) -> list[Listed]:
        """Return the server's list of tools, read page by page."""
        assert self._client is not None
        listed: list[Listed] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            try:
                page = await self._client.list_tools(cursor=cursor)
            except MCPError as error:
                raise (decode_error(error.error) or error) from None
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None or len(listed) > MAX_TOOLS:
                break
        return listed[:MAX_TOOLS]

    def _build_tools(
        self, listed: Sequence[Listed]
    ) -> tuple[Tool[..., Any], ...]:  # Any: tool signatures differ
        """Convert a list of tools. A tool that cannot be declared to a model is dropped and logged."""
        tools: list[Tool[..., Any]] = []  # Any: tool signatures differ
        for name, each in assign_names(listed):
            try:
                tools.append(self._build_tool(name, each))
            except ToolDefinitionError as error:
                logger.tool_left_out(self._server.name, each.name, error)
        return tuple(tools)

    def _build_tool(self, name: str, listed: Listed) -> Tool[..., Any]:  # Any: tool signatures differ
        """Convert one tool of the server. Raises `ToolDefinitionError` if the tool cannot be declared to a model."""
        effects = effects_of(listed)
        return Tool[..., Any].from_schema(
            name,
            (listed.description or listed.title or "")[:MAX_DESCRIPTION],
            _input_schema(listed),
            self._make_function(listed.name),
            effects=effects,
            approval=self._approval(listed.name, effects),
            timeout=self._server.timeout,
        )

    def _approval(self, name: str, effects: Effects) -> Approval:
        """Return the approval of a tool: from the options of the server, or the default for its effects."""
        rule = self._server.approval
        if isinstance(rule, Mapping):
            rule = rule.get(name) or rule.get(OTHER_TOOLS)
        return rule or ("allow" if effects == "pure" else "ask")

    def _make_function(self, name: str) -> Callable[..., Any]:  # Any: tool signatures differ
        """Return a tool's function. The function sends the tool's calls to the server."""

        async def call(
            _tool_context: ToolContext[object], **arguments: Any
        ) -> object:  # Any: the tool's schema decides the types of its arguments
            return await self._call(name, arguments, _tool_context)

        return call

    async def _call(self, name: str, arguments: dict[str, JsonValue], context: ToolContext[object]) -> object:
        """Send a tool call to the server, report its progress, and return its output.

        Raises:
            ToolsetDown: The connection was lost before or during the call.
            ServerToolError: The server rejected the call, or the tool failed.
        """

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            await context.progress(message or "", min(progress / total, 1.0) if total else None)

        assert self._client is not None
        if self._is_lost:
            raise ToolsetDown(f"The connection to MCP server {self._server.name!r} was lost")
        try:
            return tool_output(
                await self._client.call_tool(name, arguments, progress_callback=report_progress)
            )
        except MCPError as error:
            if not self._is_lost_call(error):
                raise rejection_error(error) from None
            raise self._lost_error(may_have_run=REJECTION_MESSAGES.get(error.message, True)) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise self._lost_error(may_have_run=True) from None

    def _is_lost_call(self, error: MCPError) -> bool:
        """Return True if a call failed because the connection, or the session on the server, was lost."""
        return self._is_lost or error.code == CONNECTION_CLOSED or error.message in REJECTION_MESSAGES

    def _lost_error(self, *, may_have_run: bool) -> ToolsetDown:
        """Mark the connection as lost, and return the error for the call that noticed the loss."""
        self.on_end()
        lost = f"The connection to MCP server {self._server.name!r} was lost during the call."
        end = "It is not known whether the call took effect" if may_have_run else "The call did not run"
        return ToolsetDown(f"{lost} {end}", may_have_run=may_have_run)


def effects_of(listed: Listed) -> Effects:
    """Return the effects of a server's tool according to its annotations. Without annotations, return `once`."""
    hints = listed.annotations
    if hints is None:
        return "once"
    if hints.read_only_hint:
        return "pure"
    return "idempotent" if hints.idempotent_hint else "once"


def _input_schema(listed: Listed) -> dict[str, JsonValue]:
    """Return the input schema of a server's tool. A schema without a type gets the type `object`."""
    return {"type": "object", **listed.input_schema}


def assign_names(listed: Iterable[Listed]) -> Iterator[tuple[str, Listed]]:
    """Yield the tools of a server, each with a name that a model accepts.

    A valid name is kept. An invalid name is changed. If two changed names are equal, a digest of the original name is
    appended to each. If the server lists a name twice, only one of the two tools can be called, so the other tool is
    dropped. The names do not depend on the order of the list.
    """
    tools: dict[str, Listed] = {}
    for each in listed:
        known = tools.get(each.name)
        tools[each.name] = each if known is None else min(known, each, key=Listed.model_dump_json)
    alike = Counter(map(valid_name, tools))
    for name, each in tools.items():
        usable = valid_name(name)
        yield usable if usable == name or alike[usable] == 1 else _unique_name(usable, name, tools), each


def _unique_name(valid: str, server_name: str, taken: Collection[str]) -> str:
    """Return a name that is not in `taken`: the start of `valid`, followed by a digest of `server_name`."""
    digest = content_digest(server_name)
    tries = (valid_name(f"{valid[:40]}_{digest[:size]}") for size in range(8, len(digest) + 1))
    return next(each for each in tries if each not in taken)


def elicitation_callback(server: McpServer) -> ElicitationFnT | None:
    """Return the SDK callback that answers requests for user input; None if the host has no `elicit=`."""
    if (elicit := server.elicit) is None:
        return None

    async def respond(params: ElicitRequestParams) -> ElicitResult:
        reply = await _await_if_needed(elicit(_convert_elicitation(server.name, params)))
        if reply is None or reply is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if reply is True else dict(reply))  # type: ignore[arg-type]  # the SDK rejects nested values

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        return await await_host(partial(respond, params), partial(_log_failure, server.name, "elicit"))

    return answer


def _log_failure(server: str, option: str, error: BaseException) -> ErrorData:
    """Log an exception that the host's function raised, and return the JSON-RPC error for the server."""
    logger.host_code_failed(f"{option}= of MCP server {server!r}", error, "answered with an error")
    return FAILED


def _convert_elicitation(server: str, params: ElicitRequestParams) -> Elicitation:
    """Convert the SDK's request for user input to an `Elicitation`."""
    if isinstance(params, ElicitRequestFormParams):
        return Elicitation(server, params.message, params.requested_schema)
    return Elicitation(server, params.message, {}, params.url)


def sampling_callback(server: McpServer) -> SamplingFnT | None:
    """Return the SDK callback that answers requests for a model's answer; None if the host has no `sample=`."""
    if (sample := server.sample) is None:
        return None

    async def respond(params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        messages = tuple(_convert_message(message) for message in params.messages)
        request = Sampling(server.name, messages, params.system_prompt, params.max_tokens)
        if (text := await _await_if_needed(sample(request))) is None:
            return DECLINED
        return CreateMessageResult(role="assistant", content=TextContent(text=text), model="host")

    async def answer(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        return await await_host(partial(respond, params), partial(_log_failure, server.name, "sample"))

    return answer


def _convert_message(message: SamplingMessage) -> Message:
    """Convert a message of a sampling request to a `Message`."""
    blocks: list[Block] = []
    for block in message.content_as_list:
        match block:
            case TextContent(text=text):
                blocks.append(Text(text))
            case (
                ImageContent(data=data, mime_type=media_type) | AudioContent(data=data, mime_type=media_type)
            ):
                blocks.append(Media(media_type, data))
            case _:  # a tool call or result, although this host declares no tools to servers
                blocks.append(Text("[A tool call was omitted here.]"))
    return Message("user" if message.role == "user" else "assistant", tuple(blocks))


async def _await_if_needed(value: "Awaitable[T] | T") -> T:
    """Return a value, after awaiting it if it is awaitable."""
    if inspect.isawaitable(value):
        return await cast("Awaitable[T]", value)  # `isawaitable` loses the type of the result
    return value  # pyright: ignore[reportReturnType]  # pyright does not exclude awaitables here
