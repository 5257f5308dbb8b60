"""Answer the requests of a server for user input (elicitation) or for a model's answer (sampling) during a call.

The functions that the host passes as `elicit=` and `sample=` give the answers. Without them, the SDK does not declare
the capability and rejects the requests. If a function raises, the server learns only that the host could not answer.
"""

import inspect
from collections.abc import Awaitable
from functools import partial
from typing import TypeVar, cast

from mcp.client.session import ClientRequestContext, ElicitationFnT, SamplingFnT
from mcp_types import (
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
)

from actors.core.values.content import Block, Media, Message, Text
from actors.kernel.host_code import await_host
from actors.telemetry import logger
from actors.tools.mcp.options import Elicitation, McpServer, Sampling

T = TypeVar("T")

FAILED = ErrorData(code=INTERNAL_ERROR, message="The host could not answer this.")
DECLINED = ErrorData(code=INVALID_REQUEST, message="The host declined to answer this.")


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
