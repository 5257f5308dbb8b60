"""The pure functions of the package: transcripts in, valid requests out, without a runtime, a network or a clock.

    history, ledger = from_wire(messages, "openai")
    rendered = render(history, ledger, dialect("anthropic"))
    body = encode(rendered, model="claude-sonnet-5")
    assert check(body, dialect("anthropic")) == []

`decode` reads a provider's answer. The classes here are the values that these functions take and return.
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
from actors.core.lanes.lane import Lane, Rendered, advance, empty_lane
from actors.core.lanes.preview import Preview
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
    """The decoder of one answer: feed it the body's bytes as they arrive, then close it."""

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Decode bytes split at any point and return the new events. Bytes after the end are ignored.

        `Usage` events carry cumulative figures: the last one counts, and they must not be summed.

        Raises:
            StreamFault: The provider reported an error inside the answer, the answer is too large, or the bytes are
                not a stream of this dialect. The deltas of this chunk are lost; their content is in
                `partial_message`.
        """
        ...

    def close(self) -> Message:
        """Return the model's message. Events of the last bytes are in `late`.

        Raises:
            StreamFault: The answer ended without its end marker, or reports that it is none.
        """
        ...

    def partial_message(self) -> Message:
        """Return the message of the content so far, without unfinished calls."""
        ...

    @property
    def late(self) -> Iterable[StreamEvent]:
        """The events that became known only in `close`."""
        ...

    @property
    def usage(self) -> Usage:
        """The latest token figures."""
        ...

    @property
    def left_out(self) -> Mapping[str, int]:
        """Content of the answer that the message lacks, as counts by the provider's name for it."""
        ...


ToolDeclaration: TypeAlias = (
    "Tool[..., Any] | ToolSpec | dict[str, Any]"  # Any: any function; a schema as JSON
)


def from_wire(transcript: object, name: str | None = None) -> tuple[History, Ledger]:
    """Read wire messages, in whatever state they are, into a history and the ledger they support.

    Args:
        transcript: A list of messages as one provider takes them, or a whole request body.
        name: The dialect they are written in: `openai`, `anthropic`, ... Left out, it is the only one that they fit,
            and `history.report` says which.

    Calls get canonical ids by order of appearance. A result is paired with the latest call of its native id, and a
    result that may be another call's is kept as a note (`actors.core.normalize.pairing`). `history.system` is the
    system prompt it begins with, `history.report` says what was odd, how that was resolved, and what was left out.

    Raises:
        TranscriptError: It is not a transcript at all, or plainly one of another dialect, or fits none or several.
        UnknownTarget: There is no such dialect.
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
    """Render a history for a dialect. Same arguments, same bytes, in every process.

    Args:
        history: The conversation. `History(messages, ledger)` makes one of messages of any shape, and its `report`
            says what was done to them.
        ledger: The truth about its tool calls. Where it is silent, the blocks speak (`Ledger()` knows nothing).
        dialect: Whom to please.
        lane: `rendered.lane` of an earlier render for the same dialect and binding, to append to.
        binding: Whom it is for: its own sealed reasoning and native ids go back to it, nobody else's do.
        thinking: `native`, `drop` or `text`: whether reasoning is replayed, left out or written as text.

    Returns:
        `.transcript` (the messages, as the JSON array of a request), `.lane` (the next version, yours to adopt) and
        `.report`.
    """
    if not isinstance(history, History):
        raise TranscriptError(
            f"render takes a History, not {type(history).__name__}; History(messages) makes one"
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
    """Return the request body for a rendered transcript, as one piece of bytes, ready to send.

    Args:
        rendered: What `render` returned.
        model: The provider's name of the model.
        tools: Tools to declare: `@tool` functions, `ToolSpec`, or `{"name", "description", "parameters"}`.
        system: System prompt. Without it, the one that came with the history; `""` sends none.
        max_tokens: Most tokens of the answer, at least 1; None leaves it to the dialect.
        tool_choice: `auto`, `none`, `required`, or `ToolChoice("NAME")` for one of the tools.
        cache: What is asked of the provider's prompt cache: `default`, `long` (the longest life it has) or `off`.
        cache_key: Name of the conversation, for providers that route by it: at most 64 characters, no secret.
        stream: Whether the answer comes as events.

    Raises:
        Fault: The judge refused the transcript (our bug, with the evidence), or what was declared: too many
            tools, two of one name, a schema that is none.
        ConfigError: `max_tokens` is below 1, `cache` is none of the three, or `tool_choice` forces a tool that is not
            among them.
    """
    declared = tuple(map(_spec, tools))
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
    """Return the request for a rendered transcript, which says what of the settings was left out or assumed.

    Raises:
        Fault: As `encode`.
    """
    if rendered.report.faults:
        raise rendered.report.faults[0]
    facts = rendered._facts._replace(lane=cache_key)
    request = adapter(rendered.dialect).request(rendered._segments, settings, facts)
    if faults := check(request.body, rendered.dialect):
        raise faults[0]
    return request


def _spec(declared: ToolDeclaration) -> ToolSpec:
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
        binding: The answering binding; by default, a nameless backend of this dialect.
        stream: Whether the answer is streamed; otherwise it is one JSON document, whose events are in `late` after
            `close`.
        first_call: Number of the first canonical id to mint.
        turn: Number of the turn, for the message.
    """
    return codec.decode(dialect, binding, stream=stream, first_call=first_call, turn=turn)
