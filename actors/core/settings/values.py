"""The values of settings that requests and asks share.

`actors.core.settings.table` defines the range and the wire names of each setting. The structs here give them static
types; a test compares the names.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.data.record import StoredRecord


class ToolChoice(StoredRecord, frozen=True):
    """The tool choice that forces one tool: `tool_choice=ToolChoice("search")`.

    Args:
        tool: The tool's name in the session.
    """

    tool: str


ChoiceWord: TypeAlias = Literal["auto", "none", "required"]
ToolChoiceSetting: TypeAlias = ChoiceWord | ToolChoice
Mode: TypeAlias = Literal["default", "adaptive", "manual", "off"]
AskMode: TypeAlias = Literal["adaptive", "off"]
"""Thinking modes of one ask. A budget belongs to the backend, because replayed reasoning depends on it (ANT-40)."""
Verbosity: TypeAlias = Literal["low", "medium", "high"]
Display: TypeAlias = Literal["summarized", "omitted"]


class RequestSettings(
    Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
):
    """Settings that a request sends as they are, or omits. None and an empty tuple leave the provider's default.

    Written as a map without the defaults, so a new setting changes no record that does not use it.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    effort: str | None = None
    display: Display | None = None
    verbosity: Verbosity | None = None
    parallel_tool_calls: bool | None = None
    logprobs: int | None = None
    service_tier: str | None = None
    user: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
