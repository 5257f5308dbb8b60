"""What a request says besides the transcript, and the request that comes of it.

`Settings` are resolved from a binding when a turn begins and stay frozen for it. A `Request` is immutable
segments with a known total length, handed to the transport as they are; nothing joins them on the way.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.core.jsonio import Json

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
        max_tokens: Most tokens of the answer; None leaves it to the dialect.
        temperature: Sampling temperature, or None to leave it out.
        thinking: `adaptive` asks for reasoning where the dialect has a switch for it.
        stream: Whether the answer comes as events.
    """

    model: str
    system: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: Literal["default", "adaptive"] = "default"
    stream: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """A request body as segments, and where it goes.

    Args:
        path: Path below the endpoint.
        headers: Headers the dialect asks for, without credentials.
        segments: The body, in order.
    """

    path: str
    headers: tuple[tuple[str, str], ...]
    segments: tuple[bytes, ...]

    @property
    def length(self) -> int:
        """Bytes of the whole body."""
        return sum(map(len, self.segments))

    @property
    def body(self) -> bytes:
        """The whole body, joined. Not for the hot path."""
        return b"".join(self.segments)
