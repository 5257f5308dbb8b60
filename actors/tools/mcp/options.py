"""Define the options of an MCP server, the limits of its messages, and the requests that it may send to the host.

`actors.mcp` accepts these options. `Elicitation` and `Sampling` are the arguments of the host's functions. This module
does not import the SDK.

The transports limit the size of a message before it is parsed into objects. The SDK parses with pydantic, which took
28 s for 300,000 blocks and blocked all other sessions in that time. Counting the blocks in the bytes takes
milliseconds.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeAlias, TypedDict, cast

from msgspec import DecodeError, Raw
from msgspec.json import decode

from actors.core.data.jsonio import JsonValue
from actors.core.values.content import Message
from actors.errors import AnswerTooLarge, ConfigError, ToolDefinitionError
from actors.tools.tool import Approval
from actors.tools.toolset import ToolsetOpener, ToolSource


@dataclass(frozen=True)
class McpLimits:
    """The limits of one message from a server.

    Args:
        max_bytes: Maximum bytes of a line on standard output, of an answer's body, or of an event in a stream.
        max_blocks: Maximum number of content blocks in a result.
        max_values: Approximate maximum number of JSON values.
    """

    max_bytes: int = 8 * 1024 * 1024
    max_blocks: int = 1000
    max_values: int = 100_000

    def excess_error(self, data: bytes) -> AnswerTooLarge | None:
        """Return the error for a message that exceeds a limit, or None if the message is within all limits."""
        if len(data) > self.max_bytes:
            return self.too_long_error(len(data))
        if data.count(b"{") > self.max_blocks and (blocks := _block_count(data)) > self.max_blocks:
            return too_large_error("max_blocks", blocks, self.max_blocks)
        if data.count(b",") > self.max_values and (values := self._value_count(data)) > self.max_values:
            return too_large_error("max_values", values, self.max_values)
        return None

    def too_long_error(self, size: int) -> AnswerTooLarge:
        """Return the error for a message of at least `size` bytes."""
        return too_large_error("max_bytes", size, self.max_bytes)

    def _value_count(self, data: bytes) -> int:
        """Return the approximate number of JSON values in a message: the number of commas outside of strings.

        If there are many strings, only the strings are counted, because removing 700,000 short strings with a regular
        expression took 3 s.
        """
        plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
        # A value has at most four quotation marks: two around its key, and two around a string.
        if (quotes := plain.count(b'"')) > 4 * self.max_values:
            return quotes // 4
        return b"".join(plain.split(b'"')[::2]).count(b",") + 1


def too_large_error(setting: str, value: int, limit: int) -> AnswerTooLarge:
    """Return the error for an answer whose `value` exceeds `limit`. `setting` is the name of the limit."""
    unit = setting.removeprefix("max_")
    message = (
        f"The answer of the server has {value:,} {unit}, more than {setting}={limit:,} allows; "
        f"request less data, or raise {setting}"
    )
    return AnswerTooLarge(message, setting=setting, value=value, limit=limit)


def _block_count(data: bytes) -> int:
    """Return the number of content blocks of a result without parsing them; 0 for other messages."""
    try:
        result = decode(decode(data, type=dict[str, Raw])["result"], type=dict[str, Raw])
        return len(decode(result["content"], type=list[Raw]))
    except (DecodeError, KeyError, RecursionError):
        return 0


@dataclass(frozen=True)
class Elicitation:
    """A server's request for input from the user during a call.

    Args:
        server: The server's name.
        message: The server's message for the user.
        schema: A flat JSON Schema of the answer; empty if the user should open `url` instead.
        url: The address that the user should open; "" if the answer has a `schema`.
    """

    server: str
    message: str
    schema: Mapping[str, JsonValue]
    url: str = ""


ElicitationAnswer: TypeAlias = "Mapping[str, JsonValue] | bool | None"
"""An answer that fits the schema, or True if the user opens the `url`. None or False declines the request."""
Elicit: TypeAlias = Callable[[Elicitation], "Awaitable[ElicitationAnswer] | ElicitationAnswer"]
"""A function that answers a request for user input. It may be async."""


@dataclass(frozen=True)
class Sampling:
    """A server's request for an answer from one of the host's models.

    Args:
        server: The server's name.
        messages: The conversation that the model should continue.
        system: The requested system prompt, or None.
        max_tokens: Maximum number of tokens in the answer.
    """

    server: str
    messages: tuple[Message, ...]
    system: str | None
    max_tokens: int


Sample: TypeAlias = Callable[[Sampling], "Awaitable[str | None] | str | None"]
"""A function that returns the text of the model's answer, or None to decline the request."""


class McpOptions(TypedDict, total=False):
    """Options of a server in addition to its address or command.

    Args:
        only: The tools to use, by the server's names; all by default. Names that the server does not have are ignored.
        approval: The approval for all tools, or by tool name, where `*` stands for the other tools. By default, tools
            that the server declares as read-only run without approval, and all other tools need approval.
        timeout: Seconds that one call may take.
        elicit: A function that answers the server's requests for user input. Without this function, the host tells the
            server that it does not support such requests.
        sample: A function that answers the server's requests for a model's answer. Without this function, the host
            tells the server that it does not support such requests.
        max_bytes: Maximum bytes of one message (a line, a body or an event); 8 MiB by default.
        max_blocks: Maximum number of content blocks in one result; 1,000 by default.
        max_values: Approximate maximum number of JSON values in one message; 100,000 by default. A message above a
            limit is not parsed, and its call fails with `AnswerTooLarge`.
        shared, opening, waiting, closing, within_turn: As in `ToolSource`.
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
    """The validated options of one server. The fields without a description are those of `McpOptions`.

    Args:
        name: The server's name in errors and logs.
        listing: Maximum seconds for reading the list of tools.
        limits: The limits of each message.
    """

    name: str
    only: frozenset[str] | None = None
    approval: Approval | Mapping[str, Approval] | None = None
    timeout: float | None = None
    elicit: Elicit | None = None
    sample: Sample | None = None
    listing: float = 30.0
    limits: McpLimits = field(default_factory=McpLimits)


OTHER_TOOLS = "*"
"""The key in `approval=` for all tools without their own entry."""
_SOURCE_OPTIONS = ("shared", "opening", "waiting", "closing", "within_turn")
_LIMIT_OPTIONS = ("max_bytes", "max_blocks", "max_values")
_APPROVALS = ("allow", "ask", "deny")


def check_options(name: str, options: McpOptions) -> tuple[Callable[[ToolsetOpener], ToolSource], McpServer]:
    """Validate the options of a server. Return a function that creates its toolset, and the validated options.

    Raises:
        ConfigError: The SDK is not installed.
        ToolDefinitionError: An option is invalid.
    """
    if find_spec("mcp") is None:
        raise ConfigError('MCP servers need the extra mcp; install it: pip install "llm-actors[mcp]"')
    given = dict(options)
    lifetime: dict[str, Any] = {
        key: given.pop(key) for key in _SOURCE_OPTIONS if key in given
    }  # Any: the fields of `ToolSource` have different types
    limits = {key: given.pop(key) for key in _LIMIT_OPTIONS if key in given}
    unknown = given.keys() - {"only", "approval", "timeout", "elicit", "sample"}
    if unknown:
        raise ToolDefinitionError(
            f"MCP server {name!r} has an unknown option {min(unknown)!r}; see McpOptions"
        )
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
        **cast("dict[str, Any]", given),  # Any: the names were checked above
    )
    return lambda opening: ToolSource(opening, name, **lifetime), server


def _check_approval(name: str, approval: Any) -> None:  # Any: callers may pass any value
    """Raise `ToolDefinitionError` if an approval, or one of the approvals by tool name, is invalid."""
    by_tool: Mapping[str, object] = approval
    words = by_tool.values() if isinstance(approval, Mapping) else () if approval is None else (by_tool,)
    for word in words:
        if word not in _APPROVALS:
            raise ToolDefinitionError(
                f"MCP server {name!r} has approval {word!r}; use one of {', '.join(_APPROVALS)}"
            )


def _check_limits(name: str, limits: Mapping[str, object]) -> None:
    """Raise `ToolDefinitionError` if a limit is not a positive integer."""
    for key, value in limits.items():
        if type(value) is not int or value < 1:
            raise ToolDefinitionError(f"MCP server {name!r} has {key}={value!r}; use a whole number above 0")
