"""Define the settings that requests and asks have in common, as static types.

`actors.core.settings.table` defines the range and the wire names of each setting. A test checks that both modules
define the same settings.
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
"""The setting `tool_choice`: `auto`, `none`, `required`, or a `ToolChoice`."""
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
        effort: The level of reasoning effort, such as `low` or `high`, or the provider's own name of a level.
        display: Whether the answer contains the reasoning as a summary (`summarized`), or does not contain it
            (`omitted`).
        verbosity: How long and detailed the answer is.
        parallel_tool_calls: Whether one message may contain several tool calls.
        logprobs: The number of most likely alternatives per token, from 0 to 20, for which the provider returns log
            probabilities.
        service_tier: The provider's name of a service tier, which affects price and latency.
        user: An id of the end user that helps the provider to detect abuse; at most 256 characters.
        metadata: Names and values that the provider attaches to the request: at most 16 pairs, with values of at most
            512 characters.
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
