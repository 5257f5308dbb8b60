"""Facts about models with open weights, on their makers' hosts, and about Amazon's Nova.

The first row that matches a model's name applies. The last row of each maker describes its newest generation.
"""

from actors.core.data.record import replace
from actors.core.models.facts import ModelFacts, ModelRow

_MOONSHOT = ModelFacts(efforts=(), thinking=())
_KIMI_K2 = ModelFacts(
    sampling="never",  # sampling settings are rejected (KIM-09)
    efforts=(),
    thinking=("enabled", "disabled"),
    thinks_by_default=True,
    forced_choice="never",  # a forced tool is rejected (KIM-10)
    reasoning="with_calls",  # a message with calls needs reasoning (KIM-03)
)
_KIMI_THINKING = replace(_KIMI_K2, thinking=())
_KIMI_K3 = replace(_KIMI_THINKING, efforts=("low", "high", "max"), default_effort="max")
_DEEPSEEK_V3 = ModelFacts(
    efforts=(),
    thinking=("enabled", "disabled"),
    thinks_by_default=True,
    forced_choice="without_thinking",  # no tool can be forced while the model thinks (DSK-08)
    reasoning="every",  # every message needs reasoning (DSK-05)
)
_DEEPSEEK_V4 = replace(_DEEPSEEK_V3, efforts=("high", "max"), default_effort="high")
_GLM_4 = ModelFacts(efforts=(), thinking=("enabled", "disabled"), thinks_by_default=True)
_GLM_5 = replace(_GLM_4, reasoning="own")
_GLM_5_2 = replace(_GLM_5, efforts=("high", "max"), default_effort="high")
_GLM_5_3 = replace(_GLM_5_2, efforts=("low", "high", "max"), thinking=("enabled",))
_MINIMAX_M2 = ModelFacts(
    efforts=(),
    thinking=("disabled",),
    thinks_by_default=True,  # on Chat Completions, the thinking is part of the text, which is sent back
)
_MINIMAX_M3 = replace(_MINIMAX_M2, thinking=("adaptive", "disabled"))
_NOVA = ModelFacts(efforts=(), thinking=(), schema_output=False, cache="none")


ROWS: tuple[ModelRow, ...] = (
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
        sample=("kimi-k2.6", "kimi-k2.7-code"),
        cautious=frozenset({"forced_choice"}),
    ),
    ModelRow(
        maker="kimi",
        models=r"kimi(?:-.*)?",
        facts=_KIMI_K3,
        source="KIM-03, KIM-09, KIM-10; models.dev#4090, #4721",
        sample=("kimi-k3", "kimi-k3.1-pro", "kimi-latest"),
    ),
    ModelRow(
        maker="deepseek",
        models=r"deepseek-v3.*",
        facts=_DEEPSEEK_V3,
        source="DSK-05, DSK-08",
        sample=("deepseek-v3.2",),
        cautious=frozenset({"reasoning", "efforts"}),
    ),
    ModelRow(
        maker="deepseek",
        models=r"deepseek-.*",
        facts=_DEEPSEEK_V4,
        source="DSK-05, DSK-08; openclaw#73417, kimi-cli#2141",
        sample=("deepseek-v4-pro", "deepseek-chat"),
        cautious=frozenset({"reasoning", "efforts"}),
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
        sample=("glm-5", "glm-5.1"),
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
        sample=("glm-5.3", "glm-5.3-flash"),
    ),
    ModelRow(
        maker="minimax",
        models=r"minimax-(?:text|0|m[12]).*|m2-.*",
        facts=_MINIMAX_M2,
        source="reported",
        sample=("minimax-m2.7", "MiniMax-Text-01"),
    ),
    ModelRow(
        maker="minimax",
        models=r"minimax-.*",
        facts=_MINIMAX_M3,
        source="hermes-agent#42560, #66694; cuplivo#721",
        sample=("minimax-m3", "minimax-m3.1-flash"),
    ),
    ModelRow(
        maker="amazon",
        models=r"nova-.*",
        facts=_NOVA,
        source="AWS documentation",
        sample=("amazon.nova-pro-v1:0", "us.amazon.nova-2-lite-v1:0"),
    ),
)
