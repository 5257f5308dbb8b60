"""The pure functions of the package: transcripts in, valid requests out, without a runtime, a network or a clock.

    history, ledger = from_wire(messages, "openai")
    rendered = render(history, ledger, dialect("anthropic"))
    body = encode(rendered, model="claude-sonnet-5")
    assert check(body, dialect("anthropic")) == []

`decode` reads a provider's answer. The classes here are the values that these functions take and return.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from actors.adapters.adapter import adapter
from actors.adapters.codec import decode
from actors.adapters.importing import read_transcript
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.check import check
from actors.core.data.jsonio import Json, dump
from actors.core.dialects.dialect import (
    AnthropicDialect,
    Cache,
    ChatDialect,
    ConverseDialect,
    Dialect,
    GeminiDialect,
    Profile,
    ResponsesDialect,
)
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History, from_transcript
from actors.core.lanes.lane import Lane, Rendered, advance, empty_lane
from actors.core.lanes.preview import Preview
from actors.core.lanes.reproduction import RedactedRequest
from actors.core.ledger import Ledger
from actors.core.log.events import ToolCallRecord
from actors.core.render import RenderTarget, ThinkingPolicy
from actors.core.settings.asking import check_choice
from actors.core.settings.values import ToolChoiceSetting
from actors.core.transcript.diagnostics import Report
from actors.core.values.content import ProviderBlock, ProviderState
from actors.core.values.identity import Binding
from actors.core.values.intake import Finding, ImportReport
from actors.errors import TranscriptError
from actors.tools import Tool

__all__ = [
    "AnthropicDialect",
    "ChatDialect",
    "ConverseDialect",
    "Dialect",
    "Finding",
    "GeminiDialect",
    "History",
    "ImportReport",
    "Lane",
    "Ledger",
    "Preview",
    "Profile",
    "ProviderBlock",
    "ProviderState",
    "RedactedRequest",
    "Rendered",
    "Report",
    "Request",
    "ResponsesDialect",
    "ThinkingPolicy",
    "ToolCallRecord",
    "ToolSpec",
    "check",
    "decode",
    "dialect",
    "encode",
    "from_wire",
    "render",
]

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
    check_choice(tool_choice, [tool.name for tool in declared])
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
    facts = rendered.facts._replace(lane=cache_key)
    request = adapter(rendered.dialect).request(rendered.segments, settings, facts)
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
