"""Define every setting in one table: name, range, default, and the request field in each wire family.

In:  the name of a setting, and a value from a caller or a configuration file.
Out: the value as it is stored, or a description of the range if the value is outside of it; and the wire fields.

Validation, defaults, encoders, losses, refused parameters and the reference page read this table. If a family has no
wire name for a setting, the setting is omitted and reported as a loss. The judge and the strict servers do not import
this table, because they check the requests that result from it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from actors.core.models.facts import EFFORTS
from actors.core.models.rules import Family
from actors.core.schemas.repair import MODES
from actors.core.settings.values import (
    AskMode,
    ChoiceWord,
    Display,
    Range,
    ToolChoice,
    Verbosity,
    number_range,
    positive_range,
    text_range,
    whole_range,
    word_range,
)
from actors.errors import nearest

Scope: TypeAlias = Literal["ask", "backend"]
"""Where a setting may be set: in the arguments of an ask, or in a `[backends.NAME]` table."""

MAX_STOPS: Final = 4
"""The maximum number of stop sequences, which is the limit of the strictest provider."""
_MAX_PAIRS, _MAX_KEY, _MAX_VALUE = 16, 64, 512  # the limits that OpenAI documents for `metadata`


class Setting(Struct, frozen=True, kw_only=True):
    """One setting of asks or backends.

    Args:
        range: The values that the setting accepts.
        scopes: The places where the setting may be set: an ask, a backend or both.
        default: The value if it is not set.
        wire: The request field that contains the value, by wire family; nested keys are joined by dots.
        constants: Additional fields that a family requires with the setting, and their values.
        coded: Families whose encoders contain code for the field, because the field depends on other settings.
        is_sampling: True if models without sampling settings reject the setting (`ModelFacts.sampling`).
        fact: The field of `ModelFacts` that shows whether a model accepts the setting; empty if every model does.
    """

    range: Range
    scopes: frozenset[Scope] = frozenset({"ask", "backend"})
    default: Any = None  # Any: each setting has its own type
    wire: Mapping[Family, str] = {}
    constants: Mapping[Family, Mapping[str, bool]] = {}
    coded: frozenset[Family] = frozenset()
    is_sampling: bool = False
    fact: str = ""


def out_of_range(name: str, value: object) -> str | None:
    """Return a description of the accepted values if `value` is not accepted; None if it is.

    The value None is always accepted.
    """
    if value is None or (requirement := SETTINGS[name].range.unmet_requirement(value)) is None:
        return None
    close = nearest(value, EFFORTS) if name == "effort" and type(value) is str else None
    return f"{requirement}, or None" + (f"; did you mean {close!r}?" if close else "")


def stored_value(name: str, value: Any) -> Any:  # Any: each setting has its own type
    """Convert an accepted value of a setting to its stored form; None becomes the default."""
    setting = SETTINGS[name]
    return setting.default if value is None else setting.range.store(value)


def setting_names(scope: Scope) -> tuple[str, ...]:
    """Return the names of the settings with this scope."""
    return tuple([name for name, setting in SETTINGS.items() if scope in setting.scopes])


def _are_stop_sequences(value: Any) -> bool:  # Any: the caller's argument is not validated yet
    texts: Sequence[object] = value
    if not isinstance(value, tuple | list):
        return False
    return len(texts) <= MAX_STOPS and all(type(text) is str and text.strip() for text in texts)


def _is_tool_choice(value: object) -> bool:
    if isinstance(value, ToolChoice):
        return type(value.tool) is str and bool(value.tool)
    return type(value) is str and value in get_args(ChoiceWord)


def _is_effort(value: object) -> bool:
    """Return True for a known effort level, or for another word that does not look like a misspelled level."""
    if type(value) is not str or not value.strip():
        return False
    return value in EFFORTS or nearest(value, EFFORTS) is None


def _as_pairs(
    value: Any,
) -> Iterable[tuple[object, object]] | None:  # Any: the caller's argument is not validated yet
    mapping: Mapping[object, object] = value
    if isinstance(value, Mapping):
        return mapping.items()
    pairs: tuple[tuple[object, object], ...] = value
    is_stored = type(value) is tuple and all(type(pair) is tuple and len(pair) == 2 for pair in pairs)
    return pairs if is_stored else None


def _is_metadata(value: object) -> bool:
    pairs = _as_pairs(value)
    return pairs is not None and len([*pairs]) <= _MAX_PAIRS and all(_is_pair(*pair) for pair in pairs)


def _is_pair(key: object, value: object) -> bool:
    return type(key) is str and 0 < len(key) <= _MAX_KEY and type(value) is str and len(value) <= _MAX_VALUE


_POSITIVE = whole_range("a whole number of at least 1")
_SECONDS = positive_range("a number of seconds above 0")
_ALL: frozenset[Family] = frozenset(get_args(Family))
_ASK: frozenset[Scope] = frozenset({"ask"})
_EFFORT_WORDS = f"one of {', '.join(EFFORTS)}, or the provider's own word"
_CHOICE_WORDS = f"one of {', '.join(get_args(ChoiceWord))}, ToolChoice('NAME')"
_PENALTY = number_range("a number from -2 to 2", -2, 2)

SETTINGS: Final[Mapping[str, Setting]] = {
    "max_tokens": Setting(
        range=_POSITIVE,
        coded=_ALL,
        wire={
            "openai_chat": "max_tokens",
            "responses": "max_output_tokens",
            "anthropic": "max_tokens",
            "gemini": "generationConfig.maxOutputTokens",
            "converse": "inferenceConfig.maxTokens",
        },
    ),
    "temperature": Setting(
        range=number_range("a finite number of at least 0", 0),
        is_sampling=True,
        wire={
            "openai_chat": "temperature",
            "responses": "temperature",
            "anthropic": "temperature",
            "gemini": "generationConfig.temperature",
            "converse": "inferenceConfig.temperature",
        },
    ),
    "top_p": Setting(
        range=number_range("a number from 0 to 1", 0, 1),
        is_sampling=True,
        wire={
            "openai_chat": "top_p",
            "responses": "top_p",
            "anthropic": "top_p",
            "gemini": "generationConfig.topP",
            "converse": "inferenceConfig.topP",
        },
    ),
    "top_k": Setting(
        range=_POSITIVE,
        is_sampling=True,
        wire={
            "openai_chat": "top_k",
            "anthropic": "top_k",
            "gemini": "generationConfig.topK",
            "converse": "additionalModelRequestFields.top_k",
        },
    ),
    "frequency_penalty": Setting(
        range=_PENALTY,
        is_sampling=True,
        wire={"openai_chat": "frequency_penalty", "gemini": "generationConfig.frequencyPenalty"},
    ),
    "presence_penalty": Setting(
        range=_PENALTY,
        is_sampling=True,
        wire={"openai_chat": "presence_penalty", "gemini": "generationConfig.presencePenalty"},
    ),
    "seed": Setting(
        range=whole_range("a whole number from 0 to 2147483647", 0, 2**31 - 1),
        wire={"openai_chat": "seed", "gemini": "generationConfig.seed"},
    ),
    "stop": Setting(
        range=Range(f"at most {MAX_STOPS} strings that are not blank", _are_stop_sequences, tuple),
        default=(),
        wire={
            "openai_chat": "stop",
            "anthropic": "stop_sequences",
            "gemini": "generationConfig.stopSequences",
            "converse": "inferenceConfig.stopSequences",
        },
    ),
    "tool_choice": Setting(
        range=Range(_CHOICE_WORDS, _is_tool_choice),
        scopes=_ASK,
        coded=_ALL,
        wire={
            "openai_chat": "tool_choice",
            "responses": "tool_choice",
            "anthropic": "tool_choice",
            "gemini": "toolConfig.functionCallingConfig",
            "converse": "toolConfig.toolChoice",
        },
    ),
    "parallel_tool_calls": Setting(
        range=Range("True or False", lambda value: type(value) is bool),
        coded=frozenset({"anthropic"}),
        wire={
            "openai_chat": "parallel_tool_calls",
            "responses": "parallel_tool_calls",
            "anthropic": "tool_choice.disable_parallel_tool_use",
        },
    ),
    "thinking": Setting(
        range=word_range(get_args(AskMode)),
        scopes=_ASK,
        coded=_ALL,
        wire={
            "openai_chat": "thinking",
            "responses": "reasoning.effort",
            "anthropic": "thinking",
            "gemini": "generationConfig.thinkingConfig",
            "converse": "additionalModelRequestFields.thinking",
        },
    ),
    "effort": Setting(
        range=Range(_EFFORT_WORDS, _is_effort),
        scopes=_ASK,
        coded=_ALL,
        wire={
            "openai_chat": "reasoning_effort",
            "responses": "reasoning.effort",
            "anthropic": "output_config.effort",
            "gemini": "generationConfig.thinkingConfig.thinkingLevel",
            "converse": "outputConfig.effort",
        },
    ),
    "display": Setting(
        range=word_range(get_args(Display)),
        coded=_ALL,
        fact="display",
        wire={
            "responses": "reasoning.summary",
            "anthropic": "thinking.display",
            "gemini": "generationConfig.thinkingConfig.includeThoughts",
            "converse": "additionalModelRequestFields.thinking.display",
        },
    ),
    "verbosity": Setting(
        range=word_range(get_args(Verbosity)),
        fact="verbosity",
        wire={"openai_chat": "verbosity", "responses": "text.verbosity"},
    ),
    "logprobs": Setting(
        range=whole_range("a whole number from 0 to 20", 0, 20),
        is_sampling=True,
        wire={
            "openai_chat": "top_logprobs",
            "responses": "top_logprobs",
            "gemini": "generationConfig.logprobs",
        },
        constants={"openai_chat": {"logprobs": True}, "gemini": {"generationConfig.responseLogprobs": True}},
    ),
    "service_tier": Setting(
        range=text_range("a string of at most 64 characters that is not blank", 64),
        fact="service_tier",
        wire={
            "openai_chat": "service_tier",
            "responses": "service_tier",
            "anthropic": "service_tier",
            "converse": "serviceTier.type",
        },
    ),
    "user": Setting(
        range=text_range("a string of at most 256 characters that is not blank", 256),
        wire={"openai_chat": "user", "responses": "user", "anthropic": "metadata.user_id"},
    ),
    "metadata": Setting(
        range=Range(
            f"a mapping of at most {_MAX_PAIRS} names to strings of at most {_MAX_VALUE} characters",
            _is_metadata,
            lambda value: (*(_as_pairs(value) or ()),),
        ),
        default=(),
        wire={"openai_chat": "metadata", "responses": "metadata", "converse": "requestMetadata"},
    ),
    "first_byte_timeout": Setting(range=_SECONDS, scopes=_ASK),
    "idle_timeout": Setting(range=_SECONDS, scopes=_ASK),
    "timeout": Setting(range=_SECONDS, scopes=_ASK),
    "max_rounds": Setting(range=_POSITIVE, scopes=_ASK),
    "token_limit": Setting(range=_POSITIVE, scopes=_ASK),
    "max_corrections": Setting(range=whole_range("a whole number of at least 0", 0), scopes=_ASK),
    "repair": Setting(range=word_range(MODES), scopes=_ASK),
    "thinking_tokens": Setting(range=_POSITIVE, scopes=frozenset(), coded=_ALL),
}
"""All settings, by the name that `AskSettings`, `[backends.NAME]` tables and losses use."""

REQUEST_SETTINGS: Final = tuple([name for name, setting in SETTINGS.items() if setting.wire])
"""The names of the settings that requests send."""
SAMPLING: Final = frozenset([name for name, setting in SETTINGS.items() if setting.is_sampling])
