"""Define the settings of one ask. They override the settings of the backend until the ask ends.

In:  the keyword arguments of an ask.
Out: the settings as the log stores them with the message, so that a turn that is resumed after a restart keeps them.

`actors.core.settings.table` defines each setting. `actors.adapters.settings` adapts the settings of asks and backends
to a dialect.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypedDict

from msgspec.structs import fields

from actors.core.data.jsonio import Json
from actors.core.schemas.repair import RepairMode
from actors.core.settings.table import out_of_range, setting_names, stored_value
from actors.core.settings.values import (
    AskMode,
    Display,
    RequestSettings,
    ToolChoice,
    ToolChoiceSetting,
    Verbosity,
    show_value,
)
from actors.errors import ConfigError, nearest


class AskSettings(TypedDict, total=False):
    """The settings of one ask. A setting that is absent or None has the value of the backend or the runtime.

    Requests contain the settings from `max_tokens` to `metadata`. If the provider or the model does not accept one of
    them, the setting is omitted and reported as a loss. The runtime enforces the other settings.

    Args:
        max_tokens: The maximum number of tokens in the answer of one request, at least 1.
        temperature: The sampling temperature, at least 0. A higher temperature makes answers more random.
        top_p: The share of the probability, from 0 to 1, that the most likely tokens must reach together. Only these
            tokens are sampled.
        top_k: The number of most likely tokens that are sampled, at least 1.
        frequency_penalty: From -2 to 2. A positive value makes a token less likely each time it occurs.
        presence_penalty: From -2 to 2. A positive value makes a token less likely once it has occurred.
        seed: The seed of the sampling, from 0 to 2147483647. Providers do not guarantee equal answers for equal seeds.
        stop: At most 4 strings. The answer ends before the first of them that the model writes.
        tool_choice: `auto` (the model decides), `none` (no calls), `required` (at least one call), or
            `ToolChoice("NAME")` for a call of this tool. A forced tool applies only to the first request of the ask;
            once the model has called the tool, it may answer.
        parallel_tool_calls: Whether one message may contain several tool calls.
        thinking: Whether the model decides how long to think (`adaptive`) or does not think (`off`).
        effort: The level of reasoning effort, such as `low` or `high`, or the provider's own name of a level.
        display: Whether the answer contains the reasoning as a summary (`summarized`), or does not contain it
            (`omitted`).
        verbosity: How long and detailed the answer is.
        logprobs: The number of most likely alternatives per token, from 0 to 20, for which the provider returns log
            probabilities.
        service_tier: The provider's name of a service tier, which affects price and latency.
        user: An id of the end user that helps the provider to detect abuse; at most 256 characters.
        metadata: Names and values that the provider attaches to the request: at most 16 names, each with a string of at
            most 512 characters.
        first_byte_timeout: Seconds from the last byte of a request to the first byte of its answer.
        idle_timeout: Seconds between two chunks of an answer.
        timeout: Seconds for the complete ask. After this time, the ask fails, and all its calls are closed.
        max_rounds: The maximum number of requests in one turn.
        token_limit: The number of tokens, of requests and answers together, after which the ask sends no further
            request and ends.
        max_corrections: How often the model may correct invalid calls in one turn.
        repair: How to treat small errors in arguments and answers, such as a string in place of a number. `unambiguous`
            repairs an error if exactly one interpretation fits the schema; `strict` rejects it.
    """

    max_tokens: int
    temperature: float
    top_p: float
    top_k: int
    frequency_penalty: float
    presence_penalty: float
    seed: int
    stop: tuple[str, ...]
    tool_choice: ToolChoiceSetting
    parallel_tool_calls: bool
    thinking: AskMode
    effort: str
    display: Display
    verbosity: Verbosity
    logprobs: int
    service_tier: str
    user: str
    metadata: Mapping[str, str]
    first_byte_timeout: float
    idle_timeout: float
    timeout: float
    max_rounds: int
    token_limit: int
    max_corrections: int
    repair: RepairMode


class StoredAskSettings(RequestSettings, frozen=True, kw_only=True):
    """The settings of one ask, as the log stores them. None means the value of the backend or the runtime.

    The log stores them as a map that leaves out absent settings.

    Args:
        tool_choice: Whether the model may call tools (`auto`), must call one (`required`), or must not (`none`); or the
            tool that it must call. A forced tool applies only to the first request.
        thinking: The thinking mode of all requests.
        first_byte_timeout: Seconds from the last byte of a request to the first byte of its answer.
        idle_timeout: Seconds between two chunks of an answer.
        timeout: Seconds for the complete ask.
        max_rounds: The maximum number of requests in one turn.
        token_limit: The number of tokens, of requests and answers together, after which the ask sends no further
            request.
        max_corrections: How often the model may correct invalid calls in one turn.
        output: The JSON Schema of the answer; always the schema of an object.
        repair: How to treat small errors in arguments and answers, such as a string in place of a number. `unambiguous`
            repairs an error if exactly one interpretation fits the schema; `strict` rejects it.
    """

    tool_choice: ToolChoiceSetting | None = None
    thinking: AskMode | None = None
    first_byte_timeout: float | None = None
    idle_timeout: float | None = None
    timeout: float | None = None
    max_rounds: int | None = None
    token_limit: int | None = None
    max_corrections: int | None = None
    output: Json | None = None
    repair: RepairMode | None = None

    @property
    def of_request(self) -> dict[str, Any]:  # Any: each setting has its own type
        """The settings that apply to every request of the ask, by name. A tool choice is not one of them."""
        changes = {name: value for name in _OF_REQUEST if (value := getattr(self, name)) not in (None, ())}
        # The backend's thinking budget belongs to its mode `manual`. This ask sets another mode, so drop the budget.
        return changes | {"thinking_tokens": None} if "thinking" in changes else changes


_OF_REQUEST = (*(field.name for field in fields(RequestSettings)), "thinking", "output")
"""Names of the settings that apply to every request, unlike a tool choice, which applies only to the first request."""


def parse_settings(settings: Mapping[str, object], output: Json | None = None) -> StoredAskSettings | None:
    """Check an ask's settings, and return them in their stored form, together with the schema of the answer.

    Return None if there are neither settings nor a schema.

    Raises:
        ConfigError: A name is unknown, or a value is out of range.
    """
    if not settings and output is None:
        return None
    for name, value in settings.items():
        if name not in _NAMES:
            raise ConfigError(f"An ask has no setting {name!r}; {_suggest_setting(name)}")
        if (allowed := out_of_range(name, value)) is not None:
            raise ConfigError(f"{name} is {show_value(value)}, but must be {allowed}")
    return StoredAskSettings(
        **{name: stored_value(name, value) for name, value in settings.items()}, output=output
    )


_NAMES = setting_names("ask")


def _suggest_setting(name: str) -> str:
    close = nearest(name, _NAMES)
    return f"did you mean {close!r}?" if close else f"the settings are {', '.join(_NAMES)}"


def forced_instruction(choice: ToolChoiceSetting) -> str:
    """Return the instruction to call a tool, for a model that does not support a forced tool choice."""
    if isinstance(choice, ToolChoice):
        return f"Call the tool {choice.tool!r} now, before you answer in words."
    return "Call one of your tools now, before you answer in words."


def check_forced_tool(choice: ToolChoiceSetting | None, tools: Collection[str]) -> None:
    """Raise an error if a tool choice forces a tool that is not one of `tools`.

    Raises:
        ConfigError: `tools` does not contain the forced tool.
    """
    if isinstance(choice, ToolChoice) and choice.tool not in tools:
        close = nearest(choice.tool, tools)
        known = f"its tools are {', '.join(tools)}" if tools else "it has no tools"
        hint = f"did you mean {close!r}?" if close else known
        raise ConfigError(
            f"tool_choice forces the tool {choice.tool[:80]!r}, which this session does not have; {hint}"
        )
