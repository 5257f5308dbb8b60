"""Define the record of the request features that one model accepts.

The defaults describe a model of which nothing is known: every setting is passed on as the host takes it. Rule ids such
as ANT-45 are explained in docs/reference/rulebook.md.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from actors.core.models.rules import Demands
from actors.core.schemas.property_keys import PLAIN_KEYS

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Every effort level that a provider names, from the least to the most."""

CLAUDE_KEYS = PLAIN_KEYS
"""Keys of properties that Claude accepts (ANT-57)."""

Permission: TypeAlias = Literal["always", "without_thinking", "never"]
"""When a model accepts a setting: in every request, only in one that does not let it think, or in none."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]

Overrides: TypeAlias = Mapping[str, Any]
"""Fields of `ModelFacts` that replace those of the built-in table, as a `[models."PROVIDER:GLOB"]` table holds them."""


class ModelFacts(Demands):
    """The request features that one model accepts, and its defaults.

    Args:
        chat_tools: When Chat Completions accepts function tools: at any effort (`always`), without an explicit effort
            other than `none` (`without_effort`), only with the explicit effort `none` (`effort_none`), or `never`.
            The Responses API accepts them in any case.
        sampling: When `temperature` and `top_p` are accepted. A rejected one is omitted and reported as a loss.
        efforts: Effort levels accepted, from the least to the most; empty if there is no such setting, None if they
            are not known and any word is passed on. Another level is replaced by the nearest accepted one.
        default_effort: The effort of a request that names none; empty if it is not known.
        thinking: Values of `thinking.type` accepted: `adaptive`, `enabled` (with a budget where the host has budgets),
            `disabled`, `between_tools`.
        thinks: Whether the model thinks when the request does not mention thinking.
        forced_choice: When a forced tool choice is accepted.
        named_choice: Whether one tool may be forced by its name; otherwise any tool is forced, and the loss reported.
        stops: Whether stop sequences are accepted.
        schema_output: Whether a JSON Schema for the answer is accepted.
        cache: How a longer-lived prompt cache is requested: as the host does (`host`), by `prompt_cache_retention`,
            by `prompt_cache_options`, or not at all (`automatic`). `none` also forbids cache marks.
        cache_minimum: Tokens that a prefix must have to be cached; 0 if it is not known.
        image_side: Most pixels of one side of an image; None if no limit is known.
        many_images: Images up to which `image_side` holds; a request with more must keep to `many_images_side`.
        many_images_side: Most pixels of one side in a request with more than `many_images` images.
        image_bytes: Most bytes of one image as base64; None if the host's limit holds.
        image_count: Most images of one request; None if the host's limit holds.
        reasoning: Which assistant messages go back with reasoning: as the host says (`host`), those that have it
            (`own`), those with calls too (`with_calls`), or `every` one, with a placeholder where it has none.
        native_ids: Whether an id that the model gave a call goes back to it also where the host says no (GEM-09).
        property_keys: What the key of every property in a tool's schema must match in full; other keys are renamed, and
            renamed back in calls (ANT-57). None if any key is accepted.
        budgets: Whether thinking is limited by a budget of tokens (Gemini before generation 3).
        display: Whether the request may say how thinking is shown.
        verbosity: Whether the request may say how long the answer should be.
        service_tier: Whether the request may choose a service tier.
    """

    chat_tools: Literal["always", "without_effort", "effort_none", "never"] = "always"
    sampling: Permission = "always"
    efforts: tuple[str, ...] | None = None
    default_effort: str = ""
    thinking: tuple[Literal["adaptive", "enabled", "disabled", "between_tools"], ...] = (
        "adaptive",
        "enabled",
        "disabled",
    )
    thinks: bool = False
    forced_choice: Permission = "always"
    named_choice: bool = True
    stops: bool = True
    schema_output: bool = True
    cache: Literal["host", "retention", "options", "automatic", "none"] = "host"
    cache_minimum: _Count = 0
    image_side: _Limit | None = None
    many_images: _Count = 20
    many_images_side: _Limit | None = None
    image_bytes: _Limit | None = None
    image_count: _Limit | None = None
    reasoning: Literal["host", "own", "with_calls", "every"] = "host"
    native_ids: bool = False
    property_keys: str | None = None
    budgets: bool = False
    display: bool = False
    verbosity: bool = False
    service_tier: bool = False


def merge(facts: ModelFacts, overrides: Overrides) -> ModelFacts:
    """Return facts with some fields replaced.

    Raises:
        msgspec.ValidationError: A field has a value of the wrong type or outside its choices.
        KeyError: There is no such field.
    """
    known = msgspec.structs.asdict(facts)
    if unknown := overrides.keys() - known.keys():
        raise KeyError(min(unknown))
    return msgspec.convert(known | dict(overrides), ModelFacts)
