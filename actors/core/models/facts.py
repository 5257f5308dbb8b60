"""Define the record of the request features that one model accepts, and a row of the table of models.

The defaults describe an unknown model: every setting is passed on to the host. Rule ids such as ANT-45 are explained in
docs/reference/rulebook.md.

A row of the table gives the facts about the models whose names match a pattern.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from actors.core.models.rules import KeywordOnlyRecord
from actors.core.schemas.property_keys import PLAIN_KEYS

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""All effort levels of all providers, from the lowest to the highest."""
CLAUDE_KEYS = PLAIN_KEYS
"""A regular expression for the property keys that Claude accepts in a tool's schema (ANT-57)."""
Permission: TypeAlias = Literal["always", "without_thinking", "never"]
"""When a model accepts a setting: in every request, only in requests without thinking, or never."""
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_Limit: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Overrides: TypeAlias = Mapping[str, Any]
"""Values for fields of `ModelFacts` that replace the built-in facts, as in a `[models."PROVIDER:GLOB"]` table."""
Maker: TypeAlias = Literal["openai", "anthropic", "google", "kimi", "deepseek", "glm", "minimax", "amazon"]


class ModelFacts(KeywordOnlyRecord):
    """The request features that one model accepts, and the model's defaults.

    Args:
        chat_tools: When Chat Completions accepts function tools: at any effort (`always`), without an explicit effort
            other than `none` (`without_effort`), only with the explicit effort `none` (`effort_none`), or `never`. The
            Responses API always accepts them.
        sampling: When `temperature` and `top_p` are accepted: `always`, only in requests `without_thinking`, or
            `never`. A setting that is not accepted is omitted and reported as a loss.
        efforts: The accepted effort levels, from the lowest to the highest. Any other level is replaced by the nearest
            accepted level. If it is empty, the model has no effort setting. If it is unknown (None), any level is
            sent.
        default_effort: The effort of a request without the setting.
        thinking: The accepted values of `thinking.type`: `adaptive`, `enabled` (with a token budget, if the host has
            budgets), `disabled`, `between_tools` (only between tool calls). If it is empty, the setting is not sent.
        thinks_by_default: Whether the model thinks if the request does not mention thinking.
        forced_choice: When a forced tool choice is accepted: `always`, only in requests `without_thinking`, or `never`.
        named_choice: Whether a tool choice may name the tool; otherwise the model must call a tool, but chooses which
            one, and the loss is reported.
        stops: Whether stop sequences are accepted.
        schema_output: Whether a JSON Schema for the answer is accepted.
        cache: How a longer-lived prompt cache is requested: as the host documents (`host`), by `prompt_cache_retention`
            (`retention`), by `prompt_cache_options` (`options`), or not at all (`automatic`). `none` also forbids cache
            marks.
        cache_minimum: The minimum number of tokens of a cached prefix.
        image_side: The maximum size of an image's longer side, in pixels.
        many_images: The maximum number of images in a request for which `image_side` applies. In a request with more
            images, `many_images_side` applies.
        many_images_side: The maximum size of an image's longer side in a request with more than `many_images` images,
            in pixels.
        image_bytes: The maximum size of an image as base64, in bytes. If it is unknown, the host's limit applies.
        image_count: The maximum number of images in a request. If it is unknown, the host's limit applies.
        reasoning: The assistant messages that are sent back with reasoning: those for which the host requires it
            (`host`), those that have reasoning (`own`), those with reasoning or calls (`with_calls`), or `every`
            message. If such a message has no reasoning, a placeholder is sent.
        native_ids: Whether the model's own call ids are sent back to it, even if the host's profile forbids this
            (GEM-09).
        property_keys: A regular expression that must match each property key in a tool's schema completely. A key that
            does not match is renamed in the schema, and renamed back in calls (ANT-57). If it is unknown, any key is
            sent.
        budgets: Whether thinking is limited by a token budget (Gemini before generation 3).
        display: Whether the request may set how thinking is displayed.
        verbosity: Whether the request may set the length of the answer.
        service_tier: Whether the request may set a service tier.
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
    thinks_by_default: bool = False
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


def override_facts(facts: ModelFacts, overrides: Overrides) -> ModelFacts:
    """Return `facts` with the fields in `overrides` replaced.

    Raises:
        msgspec.ValidationError: A value has the wrong type or is not one of the field's choices.
        KeyError: `ModelFacts` has no field of this name.
    """
    known = msgspec.structs.asdict(facts)
    if unknown := overrides.keys() - known.keys():
        raise KeyError(min(unknown))
    return msgspec.convert(known | dict(overrides), ModelFacts)


class ModelRow(KeywordOnlyRecord):
    """A row of the model-facts table.

    Args:
        maker: The maker of the models.
        models: A regular expression that must match a model's complete base name.
        facts: The features that the models accept.
        source: The source of the facts: a rule, a document, or an issue.
        sample: Model names that the row describes, for tests and for the reference page.
        cautious: Fields about which sources disagree. Their value is one that all sources accept; a real host may
            accept more.
    """

    maker: Maker
    models: str
    facts: ModelFacts
    source: str
    sample: tuple[str, ...]
    cautious: frozenset[str] = frozenset()
