"""What a server asks its host in the midst of a call: something of the user (elicitation), or of a model (sampling).

The host's functions answer, in its own types. Without one the SDK does not say that it can be asked, and refuses in
words. A function that raises is a refusal too; the server is told no more than that.
"""

import inspect
from collections.abc import Awaitable
from functools import partial
from typing import TypeVar

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

from actors import telemetry
from actors.core.values.content import Block, Media, Message, Text
from actors.kernel.host_code import await_host
from actors.tools.mcp.options import Elicitation, McpServer, Sampling

T = TypeVar("T")

FAILED = ErrorData(code=INTERNAL_ERROR, message="The host could not answer this.")
DECLINED = ErrorData(code=INVALID_REQUEST, message="The host declined to answer this.")


def elicitation(server: McpServer) -> ElicitationFnT | None:
    """Return who answers what the server asks the user."""
    if (elicit := server.elicit) is None:
        return None

    async def said(params: ElicitRequestParams) -> ElicitResult:
        answered = await _awaited(elicit(_asked(server.name, params)))
        if answered is None or answered is False:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if answered is True else dict(answered))  # type: ignore[arg-type]  # flat, or refused by the SDK

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        return await await_host(partial(said, params), partial(_failed, server.name, "elicit"))

    return answer


def _failed(server: str, option: str, error: BaseException) -> ErrorData:
    """Tell the server that there is no answer: the host's function raised."""
    telemetry.host_code_failed(f"{option}= of MCP server {server!r}", error, "answered with an error")
    return FAILED


def _asked(server: str, params: ElicitRequestParams) -> Elicitation:
    if isinstance(params, ElicitRequestFormParams):
        return Elicitation(server, params.message, params.requested_schema)
    return Elicitation(server, params.message, {}, params.url)


def sampling(server: McpServer) -> SamplingFnT | None:
    """Return who answers what the server asks a model."""
    if (sample := server.sample) is None:
        return None

    async def said(params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        messages = tuple(_message(message) for message in params.messages)
        asked = Sampling(server.name, messages, params.system_prompt, params.max_tokens)
        if (text := await _awaited(sample(asked))) is None:
            return DECLINED
        return CreateMessageResult(role="assistant", content=TextContent(text=text), model="host")

    async def answer(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        return await await_host(partial(said, params), partial(_failed, server.name, "sample"))

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
            case _:  # calls of tools that this host did not say it has
                blocks.append(Text("[A tool call stood here.]"))
    return Message("user" if message.role == "user" else "assistant", tuple(blocks))


async def _awaited(value: "Awaitable[T] | T") -> T:
    return await value if inspect.isawaitable(value) else value
