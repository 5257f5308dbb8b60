"""What may be said of an MCP server, and what it may ask its host."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeAlias, TypedDict, cast

from actors.core.data.jsonio import JsonValue
from actors.core.values.content import Message
from actors.errors import ConfigError, ToolDefinitionError
from actors.tools import Approval
from actors.tools.mcp.limits import McpLimits
from actors.tools.toolsets.source import Opening, ToolSource


@dataclass(frozen=True)
class Elicitation:
    """A server asks the user something, in the midst of a call.

    Args:
        server: Which.
        message: What it wants to know, in its words.
        schema: A JSON Schema of the answer, flat; empty if the user is sent to `url` instead.
        url: Where the user is to go; empty if an answer is asked for here.
    """

    server: str
    message: str
    schema: Mapping[str, JsonValue]
    url: str = ""


Answered: TypeAlias = "Mapping[str, JsonValue] | bool | None"
"""An answer that fits the schema; for a `url`, whether the user goes there. None or False declines."""
Elicit: TypeAlias = Callable[[Elicitation], "Awaitable[Answered] | Answered"]


@dataclass(frozen=True)
class Sampling:
    """A server asks for an answer of the host's model.

    Args:
        server: Which.
        messages: The conversation to answer.
        system: The system prompt it would like; None for none.
        max_tokens: How long the answer may be.
    """

    server: str
    messages: tuple[Message, ...]
    system: str | None
    max_tokens: int


Sample: TypeAlias = Callable[[Sampling], "Awaitable[str | None] | str | None"]
"""Returns the answer's text; None declines."""


class McpOptions(TypedDict, total=False):
    """What may be said of a server beside where it is.

    Args:
        only: Tools to offer, by the server's names; all by default. One that the server does not have is no error.
        approval: What happens before a call runs, for all of them, or by name, where `*` stands for the others. Without
            it a tool that says it only reads runs, and the others are asked about.
        timeout: Seconds one call may take.
        elicit: Answers what the server asks the user. Without it the server is told that nobody can be asked.
        sample: Answers what the server asks a model. Without it the server is told that there is none.
        max_bytes: Bytes that one message of the server may have: a line, a body, an event. 8 MiB by default.
        max_blocks: Blocks that the content of one result may have; 1,000 by default.
        max_values: JSON values that one message may have, about; 100,000 by default. A message above a limit is not
            read, and its call fails with `AnswerTooLarge`.
        shared, opening, waiting, closing, within_turn: As of `ToolSource`.
    """

    only: Collection[str]
    approval: Approval | Mapping[str, Approval]
    timeout: float
    elicit: Elicit
    sample: Sample
    max_bytes: int
    max_blocks: int
    max_values: int
    shared: bool
    opening: float
    waiting: float
    closing: float
    within_turn: bool


@dataclass(frozen=True)
class McpServer:
    """How one server's tools are offered. Fields as of `McpOptions`; `listing` is the seconds a list may take.

    `limits` are those of its messages.
    """

    name: str
    only: frozenset[str] | None = None
    approval: Approval | Mapping[str, Approval] | None = None
    timeout: float | None = None
    elicit: Elicit | None = None
    sample: Sample | None = None
    listing: float = 30.0
    limits: McpLimits = field(default_factory=McpLimits)


REST = "*"
"""Stands for all tools that are not named."""
_OF_SOURCE = ("shared", "opening", "waiting", "closing", "within_turn")
_OF_LIMITS = ("max_bytes", "max_blocks", "max_values")
_WORDS = ("allow", "ask", "deny")


def options_of(name: str, options: McpOptions) -> tuple[Callable[[Opening], ToolSource], McpServer]:
    """Return what makes the server's toolset of how it is opened, and how its tools are offered.

    Raises:
        ConfigError: The SDK is not installed.
        ToolDefinitionError: An option cannot be used.
    """
    if find_spec("mcp") is None:
        raise ConfigError('MCP servers need the extra mcp; install it: pip install "llm-actors[mcp]"')
    given = dict(options)
    lifetime: dict[str, Any] = {
        key: given.pop(key) for key in _OF_SOURCE if key in given
    }  # Any: fields of it
    limits = {key: given.pop(key) for key in _OF_LIMITS if key in given}
    unknown = given.keys() - {"only", "approval", "timeout", "elicit", "sample"}
    if unknown:
        raise ToolDefinitionError(f"MCP server {name!r} has an unknown option {min(unknown)!r}")
    _check_approval(name, given.get("approval"))
    _check_limits(name, limits)
    if "only" in given:
        if isinstance(given["only"], str):
            raise ToolDefinitionError(
                f"MCP server {name!r}: only= takes a list of names, not {given['only']!r}"
            )
        given["only"] = frozenset(cast("Collection[str]", given["only"]))
    server = McpServer(
        name,
        listing=lifetime.get("opening", 30.0),
        limits=McpLimits(**cast("dict[str, int]", limits)),
        **cast("dict[str, Any]", given),  # Any: checked
    )
    return lambda opening: ToolSource(opening, name, **lifetime), server


def _check_approval(name: str, approval: object) -> None:
    words = approval.values() if isinstance(approval, Mapping) else () if approval is None else (approval,)
    for word in words:
        if word not in _WORDS:
            raise ToolDefinitionError(
                f"MCP server {name!r} has approval {word!r}; it takes {', '.join(_WORDS)}"
            )


def _check_limits(name: str, limits: Mapping[str, object]) -> None:
    for key, value in limits.items():
        if type(value) is not int or value < 1:
            raise ToolDefinitionError(
                f"MCP server {name!r} has {key}={value!r}; it takes a whole number above 0"
            )
