"""Answer a server's requests during a call: for user input (elicitation), or for a model's answer (sampling).

The host's functions answer, with this package's types. Without them, the SDK does not declare the capability and
rejects requests. If a function raises, the server only learns that the host could not answer.
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


def elicitation(server: McpServer) -> ElicitationFnT | None:
    """Return the SDK callback for requests for user input; None if the host does not answer them."""
    if (elicit := server.elicit) is None:
        return None

    async def respond(params: ElicitRequestParams) -> ElicitResult:
        reply = await _resolve(elicit(_elicitation(server.name, params)))
        if reply is None or reply is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if reply is True else dict(reply))  # type: ignore[arg-type]  # flat, or refused by the SDK

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        return await await_host(partial(respond, params), partial(_log_failure, server.name, "elicit"))

    return answer


def _log_failure(server: str, option: str, error: BaseException) -> ErrorData:
    """Log an exception of the host's function, and return the error for the server."""
    logger.host_code_failed(f"{option}= of MCP server {server!r}", error, "answered with an error")
    return FAILED


def _elicitation(server: str, params: ElicitRequestParams) -> Elicitation:
    if isinstance(params, ElicitRequestFormParams):
        return Elicitation(server, params.message, params.requested_schema)
    return Elicitation(server, params.message, {}, params.url)


def sampling(server: McpServer) -> SamplingFnT | None:
    """Return the SDK callback for requests for a model's answer; None if the host does not answer them."""
    if (sample := server.sample) is None:
        return None

    async def respond(params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        messages = tuple(_message(message) for message in params.messages)
        request = Sampling(server.name, messages, params.system_prompt, params.max_tokens)
        if (text := await _resolve(sample(request))) is None:
            return DECLINED
        return CreateMessageResult(role="assistant", content=TextContent(text=text), model="host")

    async def answer(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        return await await_host(partial(respond, params), partial(_log_failure, server.name, "sample"))

    return answer


def _message(message: SamplingMessage) -> Message:
    blocks: list[Block] = []
    for block in message.content_as_list:
        match block:
            case TextContent(text=text):
                blocks.append(Text(text))
            case (
                ImageContent(data=data, mime_type=media_type) | AudioContent(data=data, mime_type=media_type)
            ):
                blocks.append(Media(media_type, data))
            case _:  # calls of tools, which this host does not offer to servers
                blocks.append(Text("[A tool call stood here.]"))
    return Message("user" if message.role == "user" else "assistant", tuple(blocks))


async def _resolve(value: "Awaitable[T] | T") -> T:
    if inspect.isawaitable(value):
        return await cast("Awaitable[T]", value)  # `isawaitable` forgets of what
    return value  # pyright: ignore[reportReturnType]  # nor does it tell what is none
