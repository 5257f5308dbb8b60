"""Define the settings of one ask, which replace those of the backend until the ask ends.

In:  the keyword arguments of an ask.
Out: the settings as the log stores them with the message, so that a turn resumed after a restart keeps them.

`actors.core.settings.table` defines each setting. `actors.adapters.settings` adapts the settings of asks and backends
to a dialect.
"""

from collections.abc import Collection, Mapping
from typing import Any, TypedDict

from msgspec.structs import fields

from actors.core.data.jsonio import Json
from actors.core.schemas.repair import RepairMode
from actors.core.settings.table import names, out_of_range, stored_value
from actors.core.settings.values import (
    AskMode,
    Display,
    RequestSettings,
    ToolChoice,
    ToolChoiceSetting,
    Verbosity,
)
from actors.errors import ConfigError, nearest


class AskSettings(TypedDict, total=False):
    """The settings of one ask. A setting that is absent or None has the value of the backend or the runtime.

    Sent with each request, and reported as a loss where the provider has no such field: `max_tokens`, `temperature`,
    `top_p`, `top_k`, `frequency_penalty`, `presence_penalty`, `seed`, `stop` (at most 4 texts that end the answer),
    `thinking`, `effort`, `display` (whether the reasoning is summarized or omitted), `verbosity`,
    `parallel_tool_calls`, `logprobs` (alternatives per token, at most 20), `service_tier`, `user`, `metadata`.

    `tool_choice` is `auto`, `none`, `required`, or `ToolChoice("NAME")` for one tool. A forced tool holds for the first
    request of the ask: after a call, the model is free to answer.

    `first_byte_timeout` and `idle_timeout` bound each request, and `timeout` the ask, in seconds: it fails when they
    have passed, with every call closed. `max_rounds` bounds the requests of a turn. `token_limit` ends the ask before
    the next request once that many tokens were used. `max_corrections` is how often the model may correct invalid
    calls. `repair="strict"` rejects arguments and answers with a slip, such as a text for a number, even if exactly
    one reading of them fits the schema.
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


class Asked(RequestSettings, frozen=True, kw_only=True):
    """The settings of one ask as the log stores them; None leaves a setting to the backend or the runtime.

    Stored as a map without absent settings. `output` is the JSON Schema of the answer, which is always an object.
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
        """The settings of every request, by the names of `actors.adapters.request.Settings`."""
        changes = {name: value for name in _OF_REQUEST if (value := getattr(self, name)) not in (None, ())}
        # The backend's budget belongs to the mode `manual`, which this ask replaces.
        return changes | {"thinking_tokens": None} if "thinking" in changes else changes


_OF_REQUEST = (*(field.name for field in fields(RequestSettings)), "thinking", "output")
"""The settings of every request. A tool choice applies only to the first request."""


def parse_settings(given: Mapping[str, object], output: Json | None = None) -> Asked | None:
    """Return settings and the schema of the answer in their stored form; None if both are absent.

    Raises:
        ConfigError: A name is unknown, or a value is out of range.
    """
    if not given and output is None:
        return None
    for name, value in given.items():
        if name not in _NAMES:
            raise ConfigError(f"An ask has no setting {name!r}; {_suggestion(name)}")
        if (takes := out_of_range(name, value)) is not None:
            raise ConfigError(f"{name} is {value!r}; it takes {takes}")
    return Asked(**{name: stored_value(name, value) for name, value in given.items()}, output=output)


_NAMES = names("ask")


def _suggestion(name: str) -> str:
    close = nearest(name, _NAMES)
    return f"did you mean {close!r}?" if close else f"there are {', '.join(_NAMES)}"


def forced_instruction(choice: ToolChoiceSetting) -> str:
    """Return the instruction to call a tool, for a model that accepts no forced tool choice."""
    if isinstance(choice, ToolChoice):
        return f"Call the tool {choice.tool!r} now, before you answer in words."
    return "Call one of your tools now, before you answer in words."


def check_choice(choice: ToolChoiceSetting | None, tools: Collection[str]) -> None:
    """Reject a tool choice that forces a tool outside of these.

    Raises:
        ConfigError: There is no such tool.
    """
    if isinstance(choice, ToolChoice) and choice.tool not in tools:
        close = nearest(choice.tool, tools)
        hint = f"did you mean {close!r}?" if close else f"there are {', '.join(tools) or 'no tools'}"
        raise ConfigError(
            f"tool_choice forces {choice.tool[:80]!r}, which is not a tool of this session; {hint}"
        )
