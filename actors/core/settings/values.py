"""Define the settings that requests and asks have in common, as static types.

`actors.core.settings.table` defines the range and the wire names of each setting. A test checks that both modules have
the same names.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.data.record import StoredRecord


class ToolChoice(StoredRecord, frozen=True):
    """A tool choice that forces the model to call one tool: `tool_choice=ToolChoice("search")`.

    Args:
        tool: The tool's name in the session.
    """

    tool: str


ChoiceWord: TypeAlias = Literal["auto", "none", "required"]
ToolChoiceSetting: TypeAlias = ChoiceWord | ToolChoice
Mode: TypeAlias = Literal["default", "adaptive", "manual", "off"]
AskMode: TypeAlias = Literal["adaptive", "off"]
"""Thinking modes that an ask can set. Only the backend can set a thinking budget, because replayed reasoning depends on
the budget (ANT-40).
"""
Verbosity: TypeAlias = Literal["low", "medium", "high"]
Display: TypeAlias = Literal["summarized", "omitted"]


class RequestSettings(
    Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
):
    """Settings that a request sends unchanged, or omits. None and an empty tuple mean the provider's default.

    The log stores them as a map without default values, so a new setting does not change the records of other settings.
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
