"""Define the settings of a request, and the request itself, which is built from settings and a transcript.

`Settings` are fixed when a turn begins. The body of a `Request` consists of segments, which the transport sends without
joining them.
"""

from collections.abc import Mapping
from typing import get_args

from msgspec import Struct
from msgspec.structs import fields

from actors.core.data.jsonio import Json, quote
from actors.core.data.persistent import Segments
from actors.core.dialects.dialect import Cache
from actors.core.settings.table import out_of_range
from actors.core.settings.values import Mode, RequestSettings, ToolChoiceSetting
from actors.errors import ConfigError

TEXT = Json(b'{"type":"text"}')
_FREE_TEXT_SCHEMA = Json(
    b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'
)


class ToolSpec(Struct, frozen=True):
    """A tool as it is declared to a model.

    Args:
        name: The name of the tool, prefixed by its namespace if it has one (`crm__lookup`).
        description: The description for the model.
        parameters: JSON Schema of the arguments, encoded.
        form: The format of the text, if the tool takes free text, as in OpenAI Responses (`{"type":"text"}`, or a
            grammar). Hosts that support only functions receive the text as an argument, which `parameters` describes.
        namespace: The group of tools that the tool belongs to, if any.
    """

    name: str
    description: str
    parameters: Json
    form: Json | None = None
    namespace: str = ""

    @staticmethod
    def free_form(name: str, description: str, form: Json = TEXT, namespace: str = "") -> "ToolSpec":
        """Return a tool that takes free text instead of arguments."""
        return ToolSpec(name, description, _FREE_TEXT_SCHEMA, form, namespace)


class Settings(RequestSettings, frozen=True, kw_only=True):
    """The settings of a request. The settings table (`actors.core.settings.table`) describes the inherited fields.

    Args:
        model: The provider's name of the model.
        system: System prompt, or None.
        tools: Tools to declare. Their order must not change, because they are part of the cached prefix.
        tool_choice: `none` declares the tools but forbids calls, so that the cached prefix does not change. `required`
            forces a call of any tool, and a `ToolChoice` forces a call of one tool.
        thinking: If the dialect has a switch for reasoning, `adaptive` requests reasoning and `off` requests none.
            `manual` requests a token budget, if the model supports budgets (ANT-45, ANT-46).
        budgeted: Whether the transcript was rendered for a model with a thinking budget (ANT-40). If not, a model that
            supports only budgets is not asked to think.
        thinking_tokens: The budget of `manual`, at least 1. `None` means the dialect's default.
        upstream: The only upstream provider that may serve the request, by the gateway's name for it. If empty, the
            gateway chooses.
        cache: How to use the host's prompt cache. `off` requests no caching, and `long` requests the longest lifetime.
        output: JSON Schema of the answer, which is an object. `None` allows any answer.
        stream: Whether the answer is streamed.
        omitted: Parameters to omit because the provider rejected them, by name (`actors.adapters.settings`).

    Raises:
        ConfigError: No provider accepts a value, or a budget is set without `manual`.
    """

    model: str
    system: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoiceSetting = "auto"
    thinking: Mode = "default"
    budgeted: bool = False
    thinking_tokens: int | None = None
    upstream: str = ""
    cache: Cache = "default"
    output: Json | None = None
    stream: bool = True
    omitted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        budget = self.thinking_tokens
        for name, taken in _ALLOWED.items():
            if (value := getattr(self, name)) not in taken:
                raise ConfigError(f"{name} is {value!r}; it takes one of {', '.join(taken)}")
        for name in _RANGED:
            if (takes := out_of_range(name, value := getattr(self, name))) is not None:
                raise ConfigError(f"{name} is {value!r}; it takes {takes}")
        if budget is not None and self.thinking != "manual":
            raise ConfigError(
                f"thinking_tokens is {budget}, but thinking is {self.thinking!r}; set thinking='manual' to use a budget"
            )


_RANGED = (*(field.name for field in fields(RequestSettings)), "tool_choice", "thinking_tokens")
_ALLOWED = {
    "thinking": get_args(Mode),
    "cache": get_args(Cache),
}


class Request(Struct, frozen=True):
    """A request body as segments, with its path and headers.

    Args:
        path: Path relative to the endpoint.
        headers: Headers of the dialect, without credentials.
        losses: Names of requested settings that the dialect does not accept.
        names: Tools with a changed name. Maps the name that the provider knows to the tool's own name.
        keys: Properties with a changed key. Maps each tool's own name to a mapping from the key that the provider knows
            to the tool's own key.
        assumed: Default values for fields that the dialect requires and the settings lack, as text (`max_tokens 8192`).
        tools: The names by which the provider knows the declared tools.
        omitted: The `losses` that were omitted because the provider rejected them earlier.
    """

    path: str
    headers: tuple[tuple[str, str], ...]
    segments: Segments
    losses: tuple[str, ...] = ()
    names: Mapping[str, str] = {}
    keys: Mapping[str, Mapping[str, str]] = {}
    assumed: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    omitted: tuple[str, ...] = ()

    def continuation_body(self, token: str) -> Segments:
        """Return this body with a token that requests the rest of an answer that generateContent paused."""
        first, *others = self.segments
        return Segments.of(b'{"continuationToken":%b,' % quote(token) + first[1:], *others)

    @property
    def body(self) -> bytes:
        """The complete body, joined. This copies the body, so the transport uses `segments` instead."""
        return b"".join(self.segments)
