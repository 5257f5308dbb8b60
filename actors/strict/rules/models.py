"""List facts about models for the strict servers, one row per generation. The first row that matches a model's name
applies.

The servers enforce these facts for known models, so that a client can be tested with gpt-5.6 or Opus 5.5 before it uses
the real models. No row matches a bare name such as `gpt` or `claude`, or a name of an unknown family.

This table is independent: it shares no code and no pattern with the table that the encoders read, and a test compares
the two. Where sources disagree, the row contains the values that a real host accepts.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

When: TypeAlias = Literal["always", "without_thinking", "never"]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The facts about one generation of models.

    Args:
        maker: The maker of the models.
        names: The prefixes of the models' names; a prefix that ends in `$` matches only the complete name.
        tools: When Chat Completions accepts function tools: with `any` effort, with no effort or the effort `none`
            (`no_effort`), only with the effort `none` (`effort_none`), or `never`.
        sampling: When sampling settings are accepted.
        efforts: The accepted effort levels; empty if the setting does not exist, None if any level is accepted.
        effort: The default effort level; empty if unknown.
        thinking: The accepted values of `thinking.type`; None if any value is accepted.
        thinks_by_default: Whether the model thinks when the request does not mention thinking.
        forced: When a forced tool choice is accepted.
        stops: Whether stop sequences are accepted.
        schema_output: Whether a JSON Schema for the answer is accepted.
        cache: The field that requests a longer-lived prompt cache; empty if there is none.
        cache_minimum: The minimum number of tokens of a cached prompt; 0 if unknown.
        levels: Whether thinking has levels instead of a token budget (Gemini 3 and later).
        prefill: Whether a conversation may end with an assistant message (Claude before 4.6).
        sampling_pair: Whether `temperature` and `top_p` are accepted together (Claude before Opus 4.1).
        mid_system: Whether system messages are accepted between turns (Claude since 4.7 or 4.8).
        call_ids: Whether Vertex AI accepts ids of calls (Gemini since 3).
    """

    maker: str
    names: tuple[str, ...]
    tools: Literal["any", "no_effort", "effort_none", "never"] = "any"
    sampling: When = "always"
    efforts: tuple[str, ...] | None = None
    effort: str = ""
    thinking: tuple[str, ...] | None = None
    thinks_by_default: bool = False
    forced: When = "always"
    stops: bool = True
    schema_output: bool = True
    cache: Literal["", "retention", "options"] = ""
    cache_minimum: int = 0
    levels: bool = False
    prefill: bool = False
    sampling_pair: bool = False
    mid_system: bool = False
    call_ids: bool = True

    def for_names(self, *names: str) -> "ServedModel":
        """Return a copy of this row that applies to models with the given names."""
        return replace(self, names=names)


_GPT_4O = ServedModel("openai", ("gpt-4o", "chatgpt-", "gpt-4.5"), efforts=(), cache_minimum=1024)
_GPT_4_1 = replace(_GPT_4O, names=("gpt-4.1",), cache="retention")
_GPT_4 = replace(_GPT_4O, names=("gpt-3", "gpt-4$", "gpt-4-"), schema_output=False)
_O1_MINI = replace(
    _GPT_4O, names=("o1-mini",), sampling="never", thinks_by_default=True, stops=False, schema_output=False
)
_O = replace(
    _O1_MINI,
    names=("o1", "o3", "o4-mini", "codex-mini"),
    efforts=("low", "medium", "high"),
    effort="medium",
    schema_output=True,
)
_GPT_5_CHAT = _GPT_4O.for_names("gpt-5-chat")
_GPT_5 = replace(
    _O,
    names=("gpt-5$", "gpt-5-mini", "gpt-5-nano", "gpt-5-"),
    efforts=("minimal", "low", "medium", "high"),
    stops=True,
    cache="retention",
)
_GPT_5_LATEST = replace(
    _GPT_5,
    names=("gpt-5.1-chat", "gpt-5.2-chat", "gpt-5.3-chat", "gpt-5.4-chat", "gpt-chat"),
    efforts=("medium",),
    sampling="always",
)
_CODEX = replace(
    _GPT_5,
    names=("gpt-5-codex", "gpt-5.1-codex$", "gpt-5.1-codex-mini"),
    tools="never",
    efforts=("low", "medium", "high"),
)
_CODEX_2 = replace(
    _CODEX,
    names=("gpt-5.1-codex-max", "gpt-5.2-codex", "gpt-5.3-codex"),
    efforts=("low", "medium", "high", "xhigh"),
)
_PRO = replace(_CODEX, names=("gpt-5-pro",), efforts=("high",), effort="high")
_PRO_2 = replace(
    _PRO,
    names=("gpt-5.2-pro", "gpt-5.3-pro", "gpt-5.4-pro", "gpt-5.5-pro"),
    efforts=("medium", "high", "xhigh"),
    effort="medium",
)
_GPT_5_1 = replace(
    _GPT_5,
    names=("gpt-5.1",),
    sampling="without_thinking",
    efforts=("none", "low", "medium", "high"),
    effort="none",
    thinks_by_default=False,
)
_GPT_5_2 = replace(_GPT_5_1, names=("gpt-5.2", "gpt-5.3"), efforts=("none", "low", "medium", "high", "xhigh"))
_GPT_5_4 = replace(_GPT_5_2, names=("gpt-5.4", "gpt-5.5"), tools="no_effort")
_GPT_5_6 = replace(
    _GPT_5_4,
    names=("gpt-5.6", "gpt-6-sol"),
    tools="effort_none",
    effort="medium",
    thinks_by_default=True,
    cache="options",
)
_GPT_6 = replace(
    _GPT_5_6,
    names=("gpt-5.", "gpt-6", "gpt-7", "gpt-8", "gpt-9", "o2", "o5", "o6", "o7", "o8", "o9", "codex"),
    tools="never",
    sampling="never",
    efforts=("low", "medium", "high", "xhigh", "max"),
    stops=False,
)

_CLAUDE_3 = ServedModel(
    "anthropic",
    (
        *("claude-v", "claude-1", "claude-2", "claude-instant"),
        *("claude-3-opus", "claude-3-sonnet", "claude-3-haiku", "claude-3-5-sonnet"),
    ),
    efforts=(),
    thinking=(),
    schema_output=False,
    prefill=True,
    sampling_pair=True,
)
_HAIKU_3_5 = replace(_CLAUDE_3, names=("claude-3-5-haiku",), cache_minimum=2048)
_CLAUDE_3_7 = replace(
    _CLAUDE_3,
    names=(
        "claude-3-7",
        "claude-opus-4$",
        "claude-sonnet-4$",
        "claude-4-opus",
        "claude-4-sonnet",
        "claude-opus-4-0",
    ),
    sampling="without_thinking",
    thinking=("enabled", "disabled"),
    forced="without_thinking",
    cache_minimum=1024,
)
_CLAUDE_4_1 = replace(
    _CLAUDE_3_7, names=("claude-sonnet-4-0", "claude-opus-4-1"), schema_output=True, sampling_pair=False
)
_CLAUDE_4_5 = replace(_CLAUDE_4_1, names=("claude-sonnet-4-5",))
_HAIKU_4_5 = replace(_CLAUDE_4_5, names=("claude-haiku-4-5",), cache_minimum=4096)
_OPUS_4_5 = replace(_HAIKU_4_5, names=("claude-opus-4-5",), efforts=("low", "medium", "high"), effort="high")
_CLAUDE_4_6 = replace(
    _OPUS_4_5,
    names=("claude-opus-4-6", "claude-sonnet-4-6"),
    efforts=("low", "medium", "high", "max"),
    thinking=("adaptive", "enabled", "disabled"),
    prefill=False,
)
_CLAUDE_4_7 = replace(
    _CLAUDE_4_6,
    names=("claude-opus-4-7", "claude-opus-4-8"),
    sampling="never",
    efforts=("low", "medium", "high", "xhigh", "max"),
    thinking=("adaptive", "disabled"),
    mid_system=True,
)
_CLAUDE_5 = replace(
    _CLAUDE_4_7,
    names=("claude-sonnet-5$", "claude-opus-5$", "claude-sonnet-5-0", "claude-opus-5-0"),
    thinks_by_default=True,
    cache_minimum=1024,
)
_FABLE_5 = replace(
    _CLAUDE_5,
    names=("claude-fable-5$", "claude-mythos-5$", "claude-mythos$"),
    thinking=("adaptive",),
    cache_minimum=512,
)
_HAIKU_5_5 = replace(_FABLE_5, names=("claude-haiku-5-5",), thinking=("adaptive", "disabled"))
_SONNET_5_5 = replace(
    _FABLE_5, names=("claude-sonnet-5-5",), thinking=("adaptive", "between_tools"), forced="never"
)
_CLAUDE_5_5 = replace(_FABLE_5, names=("claude-",), forced="never")

_GEMINI_1 = ServedModel(
    "google",
    ("gemini-1", "gemini-pro-1", "gemini-flash-1"),
    efforts=(),
    thinking=(),
    cache_minimum=1024,
    call_ids=False,
)
_GEMINI_2_PRO = replace(
    _GEMINI_1,
    names=("gemini-2.5-pro", "gemini-2.0-pro"),
    thinking=("adaptive", "enabled"),
    thinks_by_default=True,
)
_GEMINI_2 = replace(_GEMINI_2_PRO, names=("gemini-2",), thinking=("adaptive", "enabled", "disabled"))
_GEMINI_3 = replace(
    _GEMINI_2_PRO,
    names=("gemini-3-pro",),
    efforts=("low", "high"),
    effort="high",
    cache_minimum=4096,
    levels=True,
    call_ids=True,
)
_GEMINI_3_FLASH = replace(
    _GEMINI_3,
    names=tuple(f"gemini-3{minor}-flash" for minor in ("", *(f".{digit}" for digit in range(10)))),
    efforts=("minimal", "low", "medium", "high"),
)
_GEMINI_3_1 = replace(_GEMINI_3, names=("gemini-3",), efforts=("low", "medium", "high"))
_GEMINI_4 = replace(_GEMINI_3_1, names=("gemini-",), thinking=("adaptive",), cache_minimum=6144)

_MOONSHOT = ServedModel("kimi", ("moonshot-",), efforts=(), thinking=())
_KIMI_K2 = ServedModel(
    "kimi",
    ("kimi-k2",),
    sampling="never",
    efforts=(),
    thinking=("enabled", "disabled"),
    thinks_by_default=True,
    forced="without_thinking",
)
_KIMI_THINKING = replace(_KIMI_K2, names=("kimi-k2-thinking",), thinking=(), forced="never")
_KIMI_K3 = replace(_KIMI_THINKING, names=("kimi$", "kimi-"), efforts=("low", "high", "max"), effort="max")
_DEEPSEEK_V3 = ServedModel(
    "deepseek",
    ("deepseek-v3",),
    thinking=("enabled", "disabled"),
    thinks_by_default=True,
    forced="without_thinking",
)
_DEEPSEEK_V4 = replace(_DEEPSEEK_V3, names=("deepseek-",), effort="high")  # the host accepts any effort level
_GLM_4 = ServedModel(
    "glm",
    ("glm-1", "glm-2", "glm-3", "glm-4"),
    efforts=(),
    thinking=("enabled", "disabled"),
    thinks_by_default=True,
)
_GLM_5 = _GLM_4.for_names("glm-5$", "glm-5.0", "glm-5.1", "glm-5-")
_GLM_5_2 = replace(_GLM_5, names=("glm-5.2",), efforts=("high", "max"), effort="high")
_GLM_5_3 = replace(_GLM_5_2, names=("glm-",), efforts=("low", "high", "max"), thinking=("enabled",))
_MINIMAX_M2 = ServedModel(
    "minimax",
    ("minimax-text", "minimax-0", "minimax-m1", "minimax-m2", "m2-"),
    efforts=(),
    thinking=("disabled",),
    thinks_by_default=True,
)
_MINIMAX_M3 = replace(_MINIMAX_M2, names=("minimax-",), thinking=("adaptive", "disabled"))
_NOVA = ServedModel("amazon", ("nova-",), efforts=(), thinking=(), schema_output=False)

SERVED: tuple[ServedModel, ...] = (
    *(_GPT_4O, _GPT_4_1, _GPT_4, _O1_MINI, _O, _GPT_5_CHAT, _GPT_5_LATEST, _PRO, _CODEX, _CODEX_2, _PRO_2),
    *(_GPT_5_1, _GPT_5_2, _GPT_5_4, _GPT_5_6, _GPT_5, _GPT_6),
    *(_CLAUDE_3, _HAIKU_3_5, _CLAUDE_3_7, _CLAUDE_4_1, _CLAUDE_4_5, _HAIKU_4_5, _OPUS_4_5, _CLAUDE_4_6),
    *(_CLAUDE_4_7, _CLAUDE_5, _FABLE_5, _HAIKU_5_5, _SONNET_5_5, _CLAUDE_5_5),
    *(_GEMINI_1, _GEMINI_2_PRO, _GEMINI_2, _GEMINI_3, _GEMINI_3_FLASH, _GEMINI_3_1, _GEMINI_4),
    *(_MOONSHOT, _KIMI_THINKING, _KIMI_K2, _KIMI_K3, _DEEPSEEK_V3, _DEEPSEEK_V4),
    *(_GLM_4, _GLM_5, _GLM_5_2, _GLM_5_3, _MINIMAX_M2, _MINIMAX_M3, _NOVA),
)
"""All rows. The first row that matches a model's name applies."""

_REMOVED_PATTERNS = (
    r"^ft:",
    r"^.*/",
    r"^~",
    r"^(?:[a-z][a-z-]*\.)+(?=[a-z])",
    r"[@:\[].*$",
    r"(?<=\d)-v\d+$",
    r"-20\d{2}-?\d{2}-?\d{2}.*$",
)
_REMOVED_LAST = (r"-latest$", r"-preview$")


@lru_cache(maxsize=1024)
def served_model(name: str) -> ServedModel | None:
    """Return the row for a model; None for a bare name such as `gpt`, and for an unknown family."""
    plain = name.lower()
    for cut in (*_REMOVED_PATTERNS, *_REMOVED_LAST):
        plain = re.sub(cut, "", plain)
    if plain.startswith("claude-"):
        plain = plain.replace(".", "-")
    return next((row for row in SERVED if any(_name_matches(plain, each) for each in row.names)), None)


def _name_matches(name: str, prefix: str) -> bool:
    return name == prefix[:-1] if prefix.endswith("$") else name.startswith(prefix)
