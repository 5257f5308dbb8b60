"""Facts about Anthropic's models: one row for each generation. The first row that matches a model's name applies.

The last row describes the newest generation, and matches every other name of the family.
"""

from actors.core.data.record import replace
from actors.core.models.facts import CLAUDE_KEYS, ModelFacts, ModelRow

_CLAUDE_3 = ModelFacts(
    efforts=(),
    thinking=(),
    schema_output=False,
    cache="none",  # Bedrock rejects cache marks for these models, which are retired
    service_tier=True,
    property_keys=CLAUDE_KEYS,
    image_side=8000,
    many_images_side=2000,
    image_count=100,
)
_HAIKU_3_5 = replace(_CLAUDE_3, cache="host", cache_minimum=2048)
_CLAUDE_3_7 = replace(
    _HAIKU_3_5,
    thinking=("enabled", "disabled"),  # adaptive thinking is rejected (ANT-46)
    sampling="without_thinking",
    forced_choice="without_thinking",  # no tool can be forced while the model thinks (ANT-48)
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
    sampling="never",  # sampling settings are rejected (ANT-56)
    efforts=("low", "medium", "high", "xhigh", "max"),
    thinking=("adaptive", "disabled"),  # manual thinking is rejected (ANT-45)
)
_CLAUDE_5 = replace(_CLAUDE_4_7, thinks_by_default=True, cache_minimum=1024)
_CLAUDE_5_5 = replace(
    _CLAUDE_5,
    thinking=("adaptive",),  # thinking cannot be turned off (ANT-47)
    forced_choice="never",  # a forced tool is rejected (ANT-48)
    cache_minimum=512,
)
_SONNET_5_5 = replace(_CLAUDE_5_5, thinking=("adaptive", "between_tools"))


def _claude_pattern(generations: str, families: str = "opus|sonnet|haiku") -> str:
    """Return a regular expression for Claude models. Names may be written as `opus-4-5`, `opus-4.5` or `4-5-opus`."""
    return rf"claude-(?:(?:{families})-(?:{generations})|(?:{generations})-(?:{families}))(?:-(?!\d).*)?"


ROWS: tuple[ModelRow, ...] = (
    ModelRow(
        maker="anthropic",
        models=r"claude-(?:v?[12]\b|instant).*|claude-3(?:[-.]5)?-(?:opus|sonnet).*|claude-3-haiku.*",
        facts=_CLAUDE_3,
        source="Anthropic documentation",
        sample=(
            "claude-3-haiku-20240307",
            "anthropic.claude-v2:1",
            "claude-3-5-sonnet-20241022",
            "anthropic/claude-3.5-sonnet",
        ),
        cautious=frozenset({"cache"}),
    ),
    ModelRow(
        maker="anthropic",
        models=r"claude-3[-.]5-haiku.*",
        facts=_HAIKU_3_5,
        source="Anthropic documentation",
        sample=("claude-3-5-haiku-latest", "anthropic/claude-3.5-haiku"),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"3[-.]7"),
        facts=_CLAUDE_3_7,
        source="ANT-46, ANT-48",
        sample=("claude-3-7-sonnet-20250219",),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"4(?:[-.]0)?"),
        facts=_CLAUDE_3_7,
        source="ANT-46, ANT-48",
        sample=("claude-sonnet-4-20250514", "claude-opus-4-0"),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"4[-.]1"),
        facts=_CLAUDE_3_7,
        source="ANT-46, ANT-48",
        sample=("claude-opus-4-1",),
        cautious=frozenset({"schema_output"}),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"4[-.]5", "sonnet"),
        facts=replace(_CLAUDE_4_5, cache_minimum=1024),
        source="ANT-46, ANT-48",
        sample=("claude-sonnet-4-5",),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"4[-.]5", "haiku"),
        facts=_CLAUDE_4_5,
        source="ANT-46, ANT-48",
        sample=("claude-haiku-4-5@20251001",),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"4[-.]5", "opus"),
        facts=_OPUS_4_5,
        source="ANT-46, ANT-48, ANT-49",
        sample=("claude-opus-4-5-20251101", "us.anthropic.claude-opus-4-5-20251101-v1:0"),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"4[-.]6"),
        facts=_CLAUDE_4_6,
        source="ANT-48, ANT-49",
        sample=("claude-opus-4-6", "claude-sonnet-4.6"),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"4[-.][78]"),
        facts=_CLAUDE_4_7,
        source="ANT-45, ANT-48, ANT-56",
        sample=("claude-opus-4-7", "claude-opus-4-8"),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"5(?:[-.]0)?", "opus|sonnet"),
        facts=_CLAUDE_5,
        source="ANT-45, ANT-48, ANT-56",
        sample=("claude-sonnet-5", "claude-opus-5"),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"5[-.]5", "sonnet"),
        facts=_SONNET_5_5,
        source="ANT-47, ANT-48: migration guide for Sonnet 5.5",
        sample=("claude-sonnet-5-5",),
    ),
    ModelRow(
        maker="anthropic",
        models=r"claude-(?:fable|mythos)-(?:5|preview)|claude-mythos",
        facts=_CLAUDE_5_5,
        source="ANT-47, ANT-48",
        sample=("claude-fable-5", "claude-mythos-5"),
        cautious=frozenset({"forced_choice"}),
    ),
    ModelRow(
        maker="anthropic",
        models=_claude_pattern(r"5[-.]5", "haiku"),
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
)
