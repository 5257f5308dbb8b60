"""The table of model facts: one row for each generation, in the order in which they are tried.

The last row of a maker is its newest generation, and matches every other name of the family. Where sources disagree,
the value is the one that all accept (`ModelRow.cautious`). Sources: rules of the rulebook, the providers' documentation
and SDKs of autumn 2026, and probes published in public issues.
"""

from actors.core.form import replace
from actors.core.models.facts import CLAUDE_KEYS, ModelFacts
from actors.core.models.lookup import ModelRow

# ---- OpenAI

_GPT_3 = ModelFacts(
    efforts=(), thinking=(), schema_output=False, cache="automatic", cache_minimum=1024, image_count=500
)
_GPT_4O = replace(_GPT_3, schema_output=True, service_tier=True)
_GPT_4_1 = replace(_GPT_4O, cache="retention")
_O = replace(
    _GPT_4O,
    sampling="never",  # OAC-18
    efforts=("low", "medium", "high"),
    default_effort="medium",
    thinks=True,
    stops=False,
)
_O1_MINI = replace(_O, efforts=(), default_effort="", schema_output=False)
_GPT_5 = replace(_O, efforts=("minimal", "low", "medium", "high"), cache="retention", verbosity=True)
_GPT_5_CODEX = replace(_GPT_5, chat_tools="never", efforts=("low", "medium", "high"))  # OAC-21
_GPT_5_PRO = replace(_GPT_5_CODEX, efforts=("high",), default_effort="high")
_GPT_5_CHAT = replace(_GPT_5, efforts=("medium",))
_GPT_5_1 = replace(_GPT_5, efforts=("none", "low", "medium", "high"), default_effort="none", thinks=False)
_GPT_5_2 = replace(_GPT_5_1, efforts=("none", "low", "medium", "high", "xhigh"))
_GPT_5_2_CODEX = replace(_GPT_5_CODEX, efforts=("low", "medium", "high", "xhigh"))
_GPT_5_2_PRO = replace(_GPT_5_PRO, efforts=("medium", "high", "xhigh"), default_effort="medium")
_GPT_5_4 = replace(_GPT_5_2, chat_tools="without_effort")  # OAC-20
_GPT_5_6 = replace(
    _GPT_5_2,
    chat_tools="effort_none",  # OAC-20
    default_effort="medium",
    thinks=True,
    cache="options",
)
_GPT_6_ASTRA = replace(_GPT_5_6, chat_tools="never", efforts=("low", "medium", "high", "xhigh", "max"))

# ---- Anthropic

_CLAUDE_3 = ModelFacts(
    efforts=(),
    thinking=(),
    schema_output=False,
    cache="none",  # Bedrock rejects marks for these; the models are retired
    property_keys=CLAUDE_KEYS,
    image_side=8000,
    many_images_side=2000,
    image_count=100,
)
_HAIKU_3_5 = replace(_CLAUDE_3, cache="host", cache_minimum=2048)
_CLAUDE_3_7 = replace(
    _HAIKU_3_5,
    thinking=("enabled", "disabled"),  # ANT-46
    sampling="without_thinking",
    forced_choice="without_thinking",  # ANT-48
    cache_minimum=1024,
    display=True,
)
_CLAUDE_4_5 = replace(_CLAUDE_3_7, schema_output=True, cache_minimum=4096)
_OPUS_4_5 = replace(_CLAUDE_4_5, efforts=("low", "medium", "high"), default_effort="high")
_CLAUDE_4_6 = replace(
    _OPUS_4_5,
    efforts=("low", "medium", "high", "max"),
    thinking=("adaptive", "enabled", "disabled"),
)
_CLAUDE_4_7 = replace(
    _CLAUDE_4_6,
    sampling="never",  # ANT-56
    efforts=("low", "medium", "high", "xhigh", "max"),
    thinking=("adaptive", "disabled"),  # ANT-45
)
_CLAUDE_5 = replace(_CLAUDE_4_7, thinks=True, cache_minimum=1024)
_CLAUDE_5_5 = replace(
    _CLAUDE_5,
    thinking=("adaptive",),  # ANT-47
    forced_choice="never",  # ANT-48
    cache_minimum=512,
)
_SONNET_5_5 = replace(_CLAUDE_5_5, thinking=("adaptive", "between_tools"))

# ---- Google

_GEMINI_1 = ModelFacts(
    efforts=(),
    thinking=(),
    reasoning="own",
    budgets=True,
    cache_minimum=1024,
    image_count=3600,
)
_GEMINI_2 = replace(_GEMINI_1, thinking=("adaptive", "enabled", "disabled"), thinks=True)
_GEMINI_2_PRO = replace(_GEMINI_2, thinking=("adaptive", "enabled"))
_GEMINI_3 = replace(
    _GEMINI_2_PRO,
    efforts=("low", "high"),
    default_effort="high",
    reasoning="host",
    native_ids=True,  # GEM-09
    budgets=False,
    cache_minimum=4096,
)
_GEMINI_3_1 = replace(_GEMINI_3, efforts=("low", "medium", "high"))
_GEMINI_3_FLASH = replace(_GEMINI_3, efforts=("minimal", "low", "medium", "high"))
_GEMINI_4 = replace(_GEMINI_3_1, thinking=("adaptive",), cache_minimum=6144)

# ---- Makers of models with open weights, on their own hosts

_MOONSHOT = ModelFacts(efforts=(), thinking=())
_KIMI_K2 = ModelFacts(
    sampling="never",  # KIM-09
    efforts=(),
    thinking=("enabled", "disabled"),
    thinks=True,
    forced_choice="never",  # KIM-10
    reasoning="with_calls",  # KIM-03
)
_KIMI_THINKING = replace(_KIMI_K2, thinking=())
_KIMI_K3 = replace(_KIMI_THINKING, efforts=("low", "high", "max"), default_effort="max")
_DEEPSEEK_V3 = ModelFacts(
    efforts=(),
    thinking=("enabled", "disabled"),
    thinks=True,
    forced_choice="without_thinking",  # DSK-08
    reasoning="every",  # DSK-05
)
_DEEPSEEK_V4 = replace(_DEEPSEEK_V3, efforts=("high", "max"), default_effort="high")
_GLM_4 = ModelFacts(efforts=(), thinking=("enabled", "disabled"), thinks=True)
_GLM_5 = replace(_GLM_4, reasoning="own")
_GLM_5_2 = replace(_GLM_5, efforts=("high", "max"), default_effort="high")
_GLM_5_3 = replace(_GLM_5_2, efforts=("low", "high", "max"), thinking=("enabled",))
_MINIMAX_M2 = ModelFacts(
    efforts=(),
    thinking=("disabled",),
    thinks=True,  # in the OpenAI form; its thinking is part of the text, which goes back
)
_MINIMAX_M3 = replace(_MINIMAX_M2, thinking=("adaptive", "disabled"))

_NOVA = ModelFacts(efforts=(), thinking=(), schema_output=False, cache="none")


def _claude(generations: str, families: str = "opus|sonnet|haiku") -> str:
    """Return a pattern of Claude models, in which `opus-4-5`, `opus-4.5` and `4-5-opus` are the same."""
    return rf"claude-(?:(?:{families})-(?:{generations})|(?:{generations})-(?:{families}))(?:-(?!\d).*)?"


ROWS: tuple[ModelRow, ...] = (
    ModelRow(
        maker="openai",
        models=r"gpt-4o.*|chatgpt-.*|gpt-4[.]5.*",
        facts=_GPT_4O,
        source="OpenAI documentation",
        sample=(
            "gpt-4o",
            "gpt-4o-mini-2024-07-18",
        ),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-4[.]1.*",
        facts=_GPT_4_1,
        source="OpenAI documentation",
        sample=(
            "gpt-4.1",
            "gpt-4.1-mini-2025-04-14",
        ),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-3.*|gpt-4(?:-.*)?",
        facts=_GPT_3,
        source="OpenAI documentation",
        sample=(
            "gpt-4",
            "gpt-4-turbo",
            "gpt-3.5-turbo",
        ),
    ),
    ModelRow(
        maker="openai",
        models=r"o1-(?:mini|preview)",
        facts=_O1_MINI,
        source="OAC-18",
        sample=("o1-mini",),
    ),
    ModelRow(
        maker="openai",
        models=r"o[134](?:-.*)?|codex-mini.*",
        facts=_O,
        source="OAC-18",
        sample=(
            "o1",
            "o3",
            "o4-mini-2025-04-16",
        ),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5-chat",
        facts=_GPT_4O,
        source="OAC-18",
        sample=("gpt-5-chat-latest",),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.]\d-chat|gpt-chat",
        facts=_GPT_5_CHAT,
        source="OpenAI documentation",
        sample=("gpt-5.2-chat-latest",),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5-pro",
        facts=_GPT_5_PRO,
        source="OAC-21",
        sample=("gpt-5-pro-2025-10-06",),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5(?:[.]1)?-codex(?:-mini)?",
        facts=_GPT_5_CODEX,
        source="OAC-21",
        sample=(
            "gpt-5-codex",
            "gpt-5.1-codex-mini",
        ),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5(?:-.*)?",
        facts=_GPT_5,
        source="OAC-18",
        sample=(
            "gpt-5",
            "gpt-5-mini",
            "gpt-5-nano-2025-08-07",
        ),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][1-3]-codex.*",
        facts=_GPT_5_2_CODEX,
        source="OAC-21",
        sample=(
            "gpt-5.1-codex-max",
            "gpt-5.2-codex",
            "gpt-5.3-codex",
        ),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][2-5]-pro",
        facts=_GPT_5_2_PRO,
        source="OAC-21",
        sample=(
            "gpt-5.2-pro",
            "gpt-5.5-pro",
        ),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.]1(?:-.*)?",
        facts=_GPT_5_1,
        source="OAC-18",
        sample=(
            "gpt-5.1",
            "gpt-5.1-2025-11-13",
        ),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][23](?:-.*)?",
        facts=_GPT_5_2,
        source="OAC-18",
        sample=(
            "gpt-5.2",
            "gpt-5.3",
        ),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][45](?:-.*)?",
        facts=_GPT_5_4,
        source="OAC-20: litellm#34569, docker-agent#4165",
        sample=(
            "gpt-5.4",
            "gpt-5.4-mini-2026-03-17",
            "gpt-5.5",
        ),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.]6(?:-.*)?|gpt-6-sol",
        facts=_GPT_5_6,
        source="OAC-20: litellm#34569, livekit#7169, onyx#15008",
        sample=(
            "gpt-5.6",
            "gpt-5.6-sol",
            "openai/gpt-5.6-terra-2026-07-01",
            "gpt-6-sol",
        ),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"(?:gpt-\d|o\d|codex).*",
        facts=_GPT_6_ASTRA,
        source="OAC-20: bolna#1019, docker-agent#4165",
        sample=(
            "gpt-6-astra",
            "gpt-6.1-sol",
        ),
    ),
    ModelRow(
        maker="anthropic",
        models=r"claude-(?:v?[12]\b|instant).*|claude-3(?:-5)?-(?:opus|sonnet).*|claude-3-haiku.*",
        facts=_CLAUDE_3,
        source="Anthropic documentation",
        sample=(
            "claude-3-haiku-20240307",
            "anthropic.claude-v2:1",
            "claude-3-5-sonnet-20241022",
        ),
        cautious=frozenset({"cache"}),
    ),
    ModelRow(
        maker="anthropic",
        models=r"claude-3-5-haiku",
        facts=_HAIKU_3_5,
        source="Anthropic documentation",
        sample=("claude-3-5-haiku-latest",),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"3[-.]7"),
        facts=_CLAUDE_3_7,
        source="ANT-46, ANT-48",
        sample=("claude-3-7-sonnet-20250219",),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"4(?:[-.]0)?"),
        facts=_CLAUDE_3_7,
        source="ANT-46, ANT-48",
        sample=("claude-sonnet-4-20250514", "claude-opus-4-0"),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"4[-.]1"),
        facts=_CLAUDE_3_7,
        source="ANT-46, ANT-48",
        sample=("claude-opus-4-1",),
        cautious=frozenset({"schema_output"}),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"4[-.]5", "sonnet"),
        facts=replace(_CLAUDE_4_5, cache_minimum=1024),
        source="ANT-46, ANT-48",
        sample=("claude-sonnet-4-5",),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"4[-.]5", "haiku"),
        facts=_CLAUDE_4_5,
        source="ANT-46, ANT-48",
        sample=("claude-haiku-4-5@20251001",),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"4[-.]5", "opus"),
        facts=_OPUS_4_5,
        source="ANT-46, ANT-48, ANT-49",
        sample=(
            "claude-opus-4-5-20251101",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
        ),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"4[-.]6"),
        facts=_CLAUDE_4_6,
        source="ANT-48, ANT-49",
        sample=(
            "claude-opus-4-6",
            "claude-sonnet-4.6",
        ),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"4[-.][78]"),
        facts=_CLAUDE_4_7,
        source="ANT-45, ANT-48, ANT-56",
        sample=(
            "claude-opus-4-7",
            "claude-opus-4-8",
        ),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"5(?:[-.]0)?", "opus|sonnet"),
        facts=_CLAUDE_5,
        source="ANT-45, ANT-48, ANT-56",
        sample=(
            "claude-sonnet-5",
            "claude-opus-5",
        ),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"5[-.]5", "sonnet"),
        facts=_SONNET_5_5,
        source="ANT-47, ANT-48: migration guide for Sonnet 5.5",
        sample=("claude-sonnet-5-5",),
    ),
    ModelRow(
        maker="anthropic",
        models=r"claude-(?:fable|mythos)-(?:5|preview)|claude-mythos",
        facts=_CLAUDE_5_5,
        source="ANT-47, ANT-48",
        sample=(
            "claude-fable-5",
            "claude-mythos-5",
        ),
        cautious=frozenset({"forced_choice"}),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude(r"5[-.]5", "haiku"),
        facts=_CLAUDE_5_5,
        source="ANT-47, ANT-48",
        sample=("claude-haiku-5-5",),
        cautious=frozenset({"thinking", "forced_choice"}),
    ),
    ModelRow(
        maker="anthropic",
        models=r"claude-.*",
        facts=_CLAUDE_5_5,
        source="ANT-45, ANT-47, ANT-48, ANT-56",
        sample=(
            "claude-opus-5-5",
            "us.anthropic.claude-opus-5-5-v1:0",
            "claude-opus-5-5@20260901",
            "claude-fable-5-2",
        ),
    ),
    ModelRow(
        maker="google",
        models=r"gemini-(?:(?:pro|flash)-)?1.*",
        facts=_GEMINI_1,
        source="Google documentation",
        sample=("gemini-1.5-pro",),
    ),
    ModelRow(
        maker="google",
        models=r"gemini-2.*pro.*",
        facts=_GEMINI_2_PRO,
        source="Google documentation",
        sample=("gemini-2.5-pro",),
    ),
    ModelRow(
        maker="google",
        models=r"gemini-2.*",
        facts=_GEMINI_2,
        source="Google documentation",
        sample=(
            "gemini-2.5-flash",
            "gemini-2.0-flash",
        ),
    ),
    ModelRow(
        maker="google",
        models=r"gemini-3-pro.*",
        facts=_GEMINI_3,
        source="Google documentation; opencode#50504",
        sample=("gemini-3-pro-preview",),
    ),
    ModelRow(
        maker="google",
        models=r"gemini-3(?:[.]\d)?-flash.*",
        facts=_GEMINI_3_FLASH,
        source="Google documentation; opencode#50504",
        sample=(
            "gemini-3-flash-preview",
            "gemini-3.8-flash",
        ),
    ),
    ModelRow(
        maker="google",
        models=r"gemini-3.*",
        facts=_GEMINI_3_1,
        source="Google documentation; opencode#50504",
        sample=("gemini-3.1-pro-preview",),
    ),
    ModelRow(
        maker="google",
        models=r"gemini-.*",
        facts=_GEMINI_4,
        source="Google documentation",
        sample=("gemini-4-argon",),
    ),
    ModelRow(
        maker="kimi",
        models=r"moonshot-.*",
        facts=_MOONSHOT,
        source="Moonshot documentation",
        sample=("moonshot-v1-8k",),
    ),
    ModelRow(
        maker="kimi",
        models=r"kimi-k2-thinking.*",
        facts=_KIMI_THINKING,
        source="KIM-03, KIM-09, KIM-10",
        sample=("kimi-k2-thinking-turbo",),
    ),
    ModelRow(
        maker="kimi",
        models=r"kimi-k2.*",
        facts=_KIMI_K2,
        source="KIM-03, KIM-09, KIM-10",
        sample=(
            "kimi-k2.6",
            "kimi-k2.7-code",
        ),
        cautious=frozenset({"forced_choice"}),
    ),
    ModelRow(
        maker="kimi",
        models=r"kimi-.*",
        facts=_KIMI_K3,
        source="KIM-03, KIM-09, KIM-10; models.dev#4090, #4721",
        sample=(
            "kimi-k3",
            "kimi-k3.1-pro",
        ),
    ),
    ModelRow(
        maker="deepseek",
        models=r"deepseek-v3.*",
        facts=_DEEPSEEK_V3,
        source="DSK-05, DSK-08",
        sample=("deepseek-v3.2",),
        cautious=frozenset({"reasoning"}),
    ),
    ModelRow(
        maker="deepseek",
        models=r"deepseek-.*",
        facts=_DEEPSEEK_V4,
        source="DSK-05, DSK-08; openclaw#73417, kimi-cli#2141",
        sample=(
            "deepseek-v4-pro",
            "deepseek-chat",
        ),
        cautious=frozenset({"reasoning"}),
    ),
    ModelRow(
        maker="glm",
        models=r"glm-[1-4].*",
        facts=_GLM_4,
        source="Z.ai documentation",
        sample=("glm-4.6",),
    ),
    ModelRow(
        maker="glm",
        models=r"glm-5(?:[.][01])?(?:-.*)?",
        facts=_GLM_5,
        source="recorded traffic",
        sample=(
            "glm-5",
            "glm-5.1",
        ),
    ),
    ModelRow(
        maker="glm",
        models=r"glm-5[.]2.*",
        facts=_GLM_5_2,
        source="glm-for-copilot#40",
        sample=("glm-5.2",),
    ),
    ModelRow(
        maker="glm",
        models=r"glm-.*",
        facts=_GLM_5_3,
        source="reported",
        sample=(
            "glm-5.3",
            "glm-5.3-flash",
        ),
    ),
    ModelRow(
        maker="minimax",
        models=r"minimax-(?:0|m[12]).*|m2-.*",
        facts=_MINIMAX_M2,
        source="reported",
        sample=("minimax-m2.7",),
    ),
    ModelRow(
        maker="minimax",
        models=r"minimax-.*",
        facts=_MINIMAX_M3,
        source="hermes-agent#42560, #66694; cuplivo#721",
        sample=(
            "minimax-m3",
            "minimax-m3.1-flash",
        ),
    ),
    ModelRow(
        maker="amazon",
        models=r"nova-.*",
        facts=_NOVA,
        source="AWS documentation",
        sample=(
            "amazon.nova-pro-v1:0",
            "us.amazon.nova-2-lite-v1:0",
        ),
    ),
)
"""Every row; the first whose pattern matches a model's base name describes it."""
