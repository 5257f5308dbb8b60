"""Convert transcripts of any provider to valid requests: pure functions that need no runtime, network or clock.

    history, ledger = from_wire(messages, "openai")
    rendered = render(history, ledger, dialect("anthropic"))
    body = encode(rendered, model="claude-sonnet-5")
    assert check(body, dialect("anthropic")) == []

`decode` decodes a provider's answer. The classes here are arguments and return values of these functions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from actors.adapters import codec
from actors.adapters.adapter import adapter
from actors.adapters.importing import read_transcript
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.check import check
from actors.core.data.jsonio import Json, dump
from actors.core.dialects.dialect import (
    AnthropicCaching,
    AnthropicDialect,
    AnthropicReasoning,
    AnthropicRequest,
    BlockTurns,
    Cache,
    Caching,
    ChatCaching,
    ChatDialect,
    ChatMedia,
    ChatReasoning,
    ChatRequest,
    ChatTurns,
    ConverseCaching,
    ConverseDialect,
    ConverseMedia,
    ConverseReasoning,
    ConverseRequest,
    ConverseTurns,
    Dialect,
    GeminiCaching,
    GeminiDialect,
    GeminiMedia,
    GeminiReasoning,
    GeminiRequest,
    GeminiTurns,
    PartMedia,
    Profile,
    ResponsesCaching,
    ResponsesDialect,
    ResponsesReasoning,
    ResponsesRequest,
    ResponsesTurns,
)
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History, from_transcript
from actors.core.lanes.lane import Lane, Preview, Rendered, advance, empty_lane
from actors.core.lanes.reproduction import RedactedRequest
from actors.core.ledger import Ledger
from actors.core.log.call_events import ToolCallRecord
from actors.core.models.facts import ModelFacts
from actors.core.models.rules import Ids, MediaRules, ReasoningRules, RequestRules, TurnRules
from actors.core.render import RenderTarget, ThinkingPolicy
from actors.core.settings.asking import check_forced_tool
from actors.core.settings.values import ToolChoiceSetting
from actors.core.transcript.diagnostics import Refusal, Report
from actors.core.values.content import Message, ProviderBlock, ProviderState
from actors.core.values.identity import Binding
from actors.core.values.intake import Finding, ImportReport
from actors.core.values.stream import (
    ArgumentsDelta,
    CallDone,
    CallStarted,
    Finish,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from actors.errors import TranscriptError
from actors.tools import Tool

__all__ = [
    "AnswerDecoder",
    "AnthropicCaching",
    "AnthropicDialect",
    "AnthropicReasoning",
    "AnthropicRequest",
    "ArgumentsDelta",
    "BlockTurns",
    "Caching",
    "CallDone",
    "CallStarted",
    "ChatCaching",
    "ChatDialect",
    "ChatMedia",
    "ChatReasoning",
    "ChatRequest",
    "ChatTurns",
    "ConverseCaching",
    "ConverseDialect",
    "ConverseMedia",
    "ConverseReasoning",
    "ConverseRequest",
    "ConverseTurns",
    "Dialect",
    "Finding",
    "Finish",
    "GeminiCaching",
    "GeminiDialect",
    "GeminiMedia",
    "GeminiReasoning",
    "GeminiRequest",
    "GeminiTurns",
    "History",
    "Ids",
    "ImportReport",
    "Lane",
    "Ledger",
    "MediaRules",
    "ModelFacts",
    "PartMedia",
    "Preview",
    "Profile",
    "ProviderBlock",
    "ProviderState",
    "ReasoningRules",
    "RedactedRequest",
    "Refusal",
    "Rendered",
    "Report",
    "RequestRules",
    "ResponsesCaching",
    "ResponsesDialect",
    "ResponsesReasoning",
    "ResponsesRequest",
    "ResponsesTurns",
    "StreamEvent",
    "TextDelta",
    "ThinkingDelta",
    "ThinkingPolicy",
    "ToolCallRecord",
    "ToolDeclaration",
    "ToolSpec",
    "TurnRules",
    "check",
    "decode",
    "dialect",
    "encode",
    "from_wire",
    "render",
]


class AnswerDecoder(Protocol):
    """A decoder of one answer. Pass the bytes of the response body to `feed` as they arrive, then call `close`."""

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Decode the next bytes, and return the new events. The bytes may be split at any point.

        Bytes after the end of the answer are ignored.
        `Usage` events carry cumulative figures: the last event counts, and the figures must not be summed.

        Raises:
            StreamFault: The provider reported an error inside the answer, the answer is too large, or the bytes are not
                a stream of this dialect. The deltas of this chunk are lost; their content is in `partial_message`.
        """
        ...

    def close(self) -> Message:
        """End the answer, and return the model's complete message. `late` then contains the events of the last bytes.

        Raises:
            StreamFault: The answer ended without its end marker, or reports that it failed.
        """
        ...

    def partial_message(self) -> Message:
        """Return a message with the content received so far, without unfinished calls."""
        ...

    @property
    def late(self) -> Iterable[StreamEvent]:
        """The events of the last bytes, which only `close` could decode."""
        ...

    @property
    def usage(self) -> Usage:
        """The token counts that the provider reported last."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """The number of items of the answer that are missing from the message, by the provider's item type."""
        ...


ToolDeclaration: TypeAlias = (
    "Tool[..., Any] | ToolSpec | dict[str, Any]"  # Any: a tool of any result type; a declaration as JSON
)
"""A tool to declare in a request, without its function: a `@tool` function, a `ToolSpec`, or a JSON object."""


def from_wire(transcript: object, name: str | None = None) -> tuple[History, Ledger]:
    """Import a provider's messages, even invalid ones, as a history and a ledger of their tool calls.

    Args:
        transcript: A list of messages in one provider's format, or a complete request body.
        name: The dialect of the messages: `openai`, `anthropic`, ... By default, the dialect is detected; the messages
            must match exactly one dialect, and `history.report` names it.

    Calls get canonical ids in order of appearance. A result is paired with the latest call that has its native id. A
    result is kept as a note in the conversation if it is uncertain which call it answers. `history.system` is the
    system prompt of the transcript. `history.report` lists the problems, their resolutions, and the omitted content.

    Raises:
        TranscriptError: The value is not a transcript, is in the format of another dialect, or matches no dialect or
            several.
        UnknownTarget: There is no dialect with this name.
    """
    history = from_transcript(*read_transcript(transcript, name))
    return history, history.ledger


def render(
    history: History,
    ledger: Ledger,
    dialect: Dialect,
    lane: Lane | None = None,
    *,
    binding: Binding | None = None,
    thinking: ThinkingPolicy = "native",
) -> Rendered:
    """Render a history for a dialect. The same arguments produce the same bytes in every process.

    Args:
        history: The conversation. `History(messages, ledger)` creates one from messages of any form; its `report` lists
            the changes to them.
        ledger: The record of the history's tool calls. For calls that are not in the ledger, the results in the history
            are used, so `Ledger()` is valid.
        dialect: The dialect of the provider that receives the request.
        lane: `rendered.lane` of an earlier render for the same dialect and binding, to append to.
        binding: The backend that receives the request. Only reasoning and native ids of the same binding are sent back.
        thinking: `native` replays reasoning, `drop` omits it, and `text` converts it to text.

    Returns:
        `.transcript` (the messages, as the JSON array of a request), `.lane` (the lane to pass next time, if the
        request is sent) and `.report`.

    Raises:
        TranscriptError: `history` is not a `History`.
    """
    if not isinstance(history, History):
        raise TranscriptError(
            f"render() takes a History, not {type(history).__name__}; create one with History(messages)"
        )
    target = RenderTarget(binding, thinking)
    return advance(lane or empty_lane(dialect), history, ledger, dialect, adapter(dialect).encoder, target)


def encode(
    rendered: Rendered,
    *,
    model: str,
    tools: Sequence[ToolDeclaration] = (),
    system: str | None = None,
    max_tokens: int | None = None,
    tool_choice: ToolChoiceSetting = "auto",
    cache: Cache = "default",
    cache_key: str = "",
    stream: bool = False,
) -> bytes:
    """Return the complete request body for a rendered transcript, as bytes.

    Args:
        rendered: The return value of `render`.
        model: The name that the provider uses for the model.
        tools: Tools to declare: `@tool` functions, `ToolSpec`, or `{"name", "description", "parameters"}`.
        system: System prompt. By default, the history's own is sent; `""` sends none.
        max_tokens: The maximum number of tokens in the answer, at least 1; None for the default of the dialect.
        tool_choice: `auto`, `none`, `required`, or `ToolChoice("NAME")` for one of the tools.
        cache: Use of the provider's prompt cache: `default`, `long` (the longest lifetime it offers) or `off`.
        cache_key: Name of the conversation, for providers that route requests by it: at most 64 characters, not secret.
        stream: Whether to request a stream of events.

    Raises:
        Fault: The judge rejected the transcript (a bug in this library; the error contains the evidence) or the tools:
            there are too many, two have the same name, or a schema is invalid.
        ConfigError: `max_tokens` is below 1, `cache` has another value, or `tool_choice` forces a tool that is not
            declared.
    """
    declared = tuple(map(_tool_spec, tools))
    check_forced_tool(tool_choice, [tool.name for tool in declared])
    settings = Settings(
        model=model,
        system=rendered.system if system is None else system,
        tools=declared,
        tool_choice=tool_choice,
        max_tokens=max_tokens,
        cache=cache,
        stream=stream,
    )
    return request_for(rendered, settings, cache_key).body


def request_for(rendered: Rendered, settings: Settings, cache_key: str = "") -> Request:
    """Return the request for a rendered transcript, with a list of the settings that were omitted or assumed.

    Raises:
        Fault: The judge rejected the transcript or the tools; see `encode`.
    """
    if rendered.report.faults:
        raise rendered.report.faults[0]
    facts = rendered._facts._replace(lane=cache_key)
    request = adapter(rendered.dialect).request(rendered._segments, settings, facts)
    if faults := check(request.body, rendered.dialect):
        raise faults[0]
    return request


def _tool_spec(declared: ToolDeclaration) -> ToolSpec:
    if isinstance(declared, Tool):
        return ToolSpec(declared.name, declared.description, declared.parameters)
    if isinstance(declared, ToolSpec):
        return declared
    schema: Json = dump(declared.get("parameters") or {"type": "object", "properties": {}})
    return ToolSpec(declared["name"], declared.get("description", ""), schema)


def decode(
    dialect: Dialect,
    binding: Binding | None = None,
    *,
    stream: bool = True,
    first_call: int = 1,
    turn: int = 0,
) -> AnswerDecoder:
    """Return a decoder for one answer.

    Args:
        dialect: The dialect of the answer.
        binding: The binding that answers; by default, an unnamed backend of this dialect.
        stream: Whether the answer is a stream. If False, the answer is one JSON document, and `late` contains its
            events after `close`.
        first_call: Number of the first canonical call id to create.
        turn: Number of the message's turn.
    """
    return codec.decode(dialect, binding, stream=stream, first_call=first_call, turn=turn)
