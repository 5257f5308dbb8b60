"""What a server asks its host in the midst of a call: something of the user (elicitation), or of a model (sampling).

The host's functions answer, in its own types. Without one the SDK does not say that it can be asked, and refuses in
words. A function that raises is a refusal too; the server is told no more than that.
"""

import inspect
from collections.abc import Awaitable
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
from actors.core.content import Block, Media, Message, Text
from actors.mcp.options import Elicitation, McpServer, Sampling

T = TypeVar("T")

FAILED = ErrorData(code=INTERNAL_ERROR, message="The host could not answer this.")
DECLINED = ErrorData(code=INVALID_REQUEST, message="The host declined to answer this.")


def elicitation(server: McpServer) -> ElicitationFnT | None:
    """Return who answers what the server asks the user."""
    if (elicit := server.elicit) is None:
        return None

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        try:
            said = await _awaited(elicit(_asked(server.name, params)))
            if said is None or said is False:
                return ElicitResult(action="decline")
            return ElicitResult(action="accept", content=None if said is True else dict(said))  # type: ignore[arg-type]  # flat, or refused by the SDK
        except Exception as error:  # the host's own code
            telemetry.crashed(f"toolset/{server.name}/elicit", error)
            return FAILED

    return answer


def _asked(server: str, params: ElicitRequestParams) -> Elicitation:
    if isinstance(params, ElicitRequestFormParams):
        return Elicitation(server, params.message, params.requested_schema)
    return Elicitation(server, params.message, {}, params.url)


def sampling(server: McpServer) -> SamplingFnT | None:
    """Return who answers what the server asks a model."""
    if (sample := server.sample) is None:
        return None

    async def answer(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        messages = tuple(_message(message) for message in params.messages)
        try:
            said = await _awaited(
                sample(Sampling(server.name, messages, params.system_prompt, params.max_tokens))
            )
            if said is None:
                return DECLINED
            return CreateMessageResult(role="assistant", content=TextContent(text=said), model="host")
        except Exception as error:  # the host's own code
            telemetry.crashed(f"toolset/{server.name}/sample", error)
            return FAILED

    return answer


def _message(message: SamplingMessage) -> Message:
    blocks: list[Block] = []
    for block in message.content_as_list:
        match block:
            case TextContent(text=text):
                blocks.append(Text(text))
            case ImageContent(data=data, mime_type=mime) | AudioContent(data=data, mime_type=mime):
                blocks.append(Media(mime, data))
            case _:  # calls of tools that this host did not say it has
                blocks.append(Text("[A tool call stood here.]"))
    return Message("human" if message.role == "user" else "model", tuple(blocks))


async def _awaited(value: "Awaitable[T] | T") -> T:
    return await value if inspect.isawaitable(value) else value
