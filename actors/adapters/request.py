"""Define the settings of a request besides its transcript, and the request built from them.

`Settings` are resolved from a binding when a turn begins and stay frozen during it. A `Request` consists of segments,
which go to the transport without being joined.
"""

from collections.abc import Mapping
from typing import get_args

from msgspec import Struct
from msgspec.structs import fields

from actors.core.data.jsonio import Json, quote
from actors.core.data.segments import Segments
from actors.core.dialects.dialect import Cache
from actors.core.settings.table import out_of_range
from actors.core.settings.values import Mode, RequestSettings, ToolChoiceSetting
from actors.errors import ConfigError

TEXT = Json(b'{"type":"text"}')
_FREE = Json(
    b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'
)


class ToolSpec(Struct, frozen=True):
    """A tool as it is declared to a model.

    Args:
        name: The name of the tool, prefixed by its namespace if it has one (`crm__lookup`).
        parameters: JSON Schema of its arguments, encoded.
        form: For a tool that takes free text: the format of the text in the form of Responses (`{"type":"text"}`, or
            a grammar). Hosts with functions only receive the text as an argument, which `parameters` describe.
        namespace: The group of tools that it belongs to, if any.
    """

    name: str
    description: str
    parameters: Json
    form: Json | None = None
    namespace: str = ""

    @staticmethod
    def free_form(name: str, description: str, form: Json = TEXT, namespace: str = "") -> "ToolSpec":
        """Return a tool that takes free text."""
        return ToolSpec(name, description, _FREE, form, namespace)


class Settings(RequestSettings, frozen=True, kw_only=True):
    """Everything that a request holds in addition to the transcript. The base is described by the table of settings.

    Args:
        model: The provider's name of the model.
        system: System prompt, or None.
        tools: Tools to declare, in a fixed order: it is part of the prefix.
        tool_choice: `none` declares the tools and forbids their use, so that the prefix stands; `required` forces any,
            and `ToolChoice` one of them.
        thinking: `adaptive` asks for reasoning and `off` for none, where the dialect has a switch for it;
            `manual` asks for a budget of tokens, where the model is of the kind that wants one (ANT-45, ANT-46).
        budgeted: Whether the transcript was rendered for a model with a thinking budget (ANT-40). Without it, a model
            that thinks by budgets alone is not asked to think.
        thinking_tokens: The budget of `manual`, at least 1; None leaves it to the dialect.
        upstream: The one upstream of a gateway that may serve, in the gateway's word; empty leaves the choice to it.
        cache: What is asked of the host's prompt cache: `off` nothing, `long` the longest life it has.
        output: JSON Schema of the answer, an object; None where any will do.
        stream: Whether the answer comes as events.
        omitted: Parameters to leave out because the provider refused them, by name (`actors.adapters.settings`).

    Raises:
        ConfigError: A value that no provider takes, or a budget without `manual`.
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
        for name, taken in _TAKEN.items():
            if (value := getattr(self, name)) not in taken:
                raise ConfigError(f"{name} is {value!r}; it takes one of {', '.join(taken)}")
        for name in _RANGED:
            if (takes := out_of_range(name, value := getattr(self, name))) is not None:
                raise ConfigError(f"{name} is {value!r}; it takes {takes}")
        if budget is not None and self.thinking != "manual":
            raise ConfigError(
                f"thinking_tokens is {budget} and thinking {self.thinking!r}; only 'manual' has a budget"
            )


_RANGED = (*(field.name for field in fields(RequestSettings)), "tool_choice", "thinking_tokens")
_TAKEN = {
    "thinking": get_args(Mode),
    "cache": get_args(Cache),
}


class Request(Struct, frozen=True):
    """A request body as segments, with its path and headers.

    Args:
        path: Path below the endpoint.
        headers: Headers of the dialect, without credentials.
        losses: Requested settings that the dialect does not accept, by name.
        names: Tools that the provider knows by another name: that name to the tool's own.
        keys: Properties that the provider knows by another key: by each tool's own name, that key to the tool's own.
        assumed: Values that the dialect requires and the settings lack, as text (`max_tokens 8192`).
        tools: The declared tools by the names that the provider knows.
        omitted: The losses that are omitted because the provider rejected them.
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

    def continued(self, token: str) -> Segments:
        """Return the body that continues an answer that generateContent paused: the same body with its token."""
        first, *others = self.segments
        return Segments.of(b'{"continuationToken":%b,' % quote(token) + first[1:], *others)

    @property
    def body(self) -> bytes:
        """The complete body, joined. Not for the hot path."""
        return b"".join(self.segments)
