"""What a request says besides the transcript, and the request that comes of it.

`Settings` are resolved from a binding when a turn begins and stay frozen for it. A `Request` is immutable
segments with a known total length, handed to the transport as they are; nothing joins them on the way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from actors.core.jsonio import Json
from actors.errors import ConfigError

ToolChoice: TypeAlias = Literal["auto", "none", "required"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is its JSON Schema, encoded."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a request says besides the transcript.

    Args:
        model: The provider's name of the model.
        system: System prompt, or None.
        tools: Tools to declare, in a fixed order: it is part of the prefix.
        tool_choice: `none` declares the tools and forbids their use, so that the prefix stands.
        max_tokens: Most tokens of the answer, at least 1; None leaves it to the dialect.
        temperature: Sampling temperature, from 0, or None to leave it out.
        thinking: `adaptive` asks for reasoning and `off` for none, where the dialect has a switch for it;
            `manual` asks for a budget of tokens, where the model is of the kind that wants one (ANT-45, ANT-46).
        thinking_tokens: That budget.
        effort: How hard to think, in the provider's word (`low`, `high`), or None to leave it out.
        stream: Whether the answer comes as events.

    Raises:
        ConfigError: `max_tokens` or `temperature` is a number no provider takes.
    """

    model: str
    system: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: Literal["default", "adaptive", "manual", "off"] = "default"
    thinking_tokens: int | None = None
    effort: str | None = None
    stream: bool = True

    def __post_init__(self) -> None:
        most, heat = self.max_tokens, self.temperature
        if most is not None and (type(most) is not int or most < 1):
            raise ConfigError(f"max_tokens is {most!r}; it takes a whole number from 1, or None")
        if heat is not None and (type(heat) not in (int, float) or not 0 <= heat < float("inf")):
            raise ConfigError(f"temperature is {heat!r}; it takes a finite number from 0, or None")


@dataclass(frozen=True, slots=True)
class Request:
    """A request body as segments, and where it goes.

    Args:
        path: Path below the endpoint.
        headers: Headers the dialect asks for, without credentials.
        segments: The body, in order.
        losses: Settings that were asked for and that the dialect does not take, by name.
        names: Tools that the provider knows by another name: that name to the tool's own.
    """

    path: str
    headers: tuple[tuple[str, str], ...]
    segments: tuple[bytes, ...]
    losses: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Bytes of the whole body."""
        return sum(map(len, self.segments))

    @property
    def body(self) -> bytes:
        """The whole body, joined. Not for the hot path."""
        return b"".join(self.segments)
