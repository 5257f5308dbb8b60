"""Facts about OpenAI's models: one row for each generation. The first row that matches a model's name applies.

The last row describes the newest generation, and matches every other name of the family.
"""

from actors.core.data.record import replace
from actors.core.models.facts import ModelFacts, ModelRow

_GPT_3 = ModelFacts(
    efforts=(), thinking=(), schema_output=False, cache="automatic", cache_minimum=1024, image_count=500
)
_GPT_4O = replace(_GPT_3, schema_output=True, service_tier=True)
_GPT_4_1 = replace(_GPT_4O, cache="retention")
_O = replace(
    _GPT_4O,
    sampling="never",  # reasoning models reject sampling settings (OAC-18)
    efforts=("low", "medium", "high"),
    default_effort="medium",
    thinks_by_default=True,
    stops=False,
    display=True,
)
_O1_MINI = replace(_O, efforts=(), default_effort="", schema_output=False)
_GPT_5 = replace(_O, efforts=("minimal", "low", "medium", "high"), cache="retention", verbosity=True)
# available only on Responses (OAC-21)
_GPT_5_CODEX = replace(_GPT_5, chat_tools="never", efforts=("low", "medium", "high"))
_GPT_5_PRO = replace(_GPT_5_CODEX, efforts=("high",), default_effort="high")
_GPT_5_CHAT = replace(_GPT_5, efforts=("medium",))
_GPT_5_1 = replace(
    _GPT_5, efforts=("none", "low", "medium", "high"), default_effort="none", thinks_by_default=False
)
_GPT_5_2 = replace(_GPT_5_1, efforts=("none", "low", "medium", "high", "xhigh"))
_GPT_5_2_CODEX = replace(_GPT_5_CODEX, efforts=("low", "medium", "high", "xhigh"))
_GPT_5_2_PRO = replace(_GPT_5_PRO, efforts=("medium", "high", "xhigh"), default_effort="medium")
_GPT_5_4 = replace(_GPT_5_2, chat_tools="without_effort")  # required by OAC-20
_GPT_5_6 = replace(
    _GPT_5_2,
    chat_tools="effort_none",  # tools need the effort `none` on Chat Completions (OAC-20)
    default_effort="medium",
    thinks_by_default=True,
    cache="options",
)
_GPT_6_ASTRA = replace(_GPT_5_6, chat_tools="never", efforts=("low", "medium", "high", "xhigh", "max"))


ROWS: tuple[ModelRow, ...] = (
    ModelRow(
        maker="openai",
        models=r"gpt-4o.*|chatgpt-.*|gpt-4[.]5.*",
        facts=_GPT_4O,
        source="OpenAI documentation",
        sample=("gpt-4o", "gpt-4o-mini-2024-07-18"),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-4[.]1.*",
        facts=_GPT_4_1,
        source="OpenAI documentation",
        sample=("gpt-4.1", "gpt-4.1-mini-2025-04-14"),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-3.*|gpt-4(?:-.*)?",
        facts=_GPT_3,
        source="OpenAI documentation",
        sample=("gpt-4", "gpt-4-turbo", "gpt-3.5-turbo"),
    ),
    ModelRow(
        maker="openai",
        models=r"o1-mini",
        facts=_O1_MINI,
        source="OAC-18",
        sample=("o1-mini",),
    ),
    ModelRow(
        maker="openai",
        models=r"o[134](?:-.*)?|codex-mini.*",
        facts=_O,
        source="OAC-18",
        sample=("o1", "o3", "o4-mini-2025-04-16"),
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
        sample=("gpt-5-codex", "gpt-5.1-codex-mini"),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5(?:-.*)?",
        facts=_GPT_5,
        source="OAC-18",
        sample=("gpt-5", "gpt-5-mini", "gpt-5-nano-2025-08-07"),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][1-3]-codex.*",
        facts=_GPT_5_2_CODEX,
        source="OAC-21",
        sample=("gpt-5.1-codex-max", "gpt-5.2-codex", "gpt-5.3-codex"),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][2-5]-pro",
        facts=_GPT_5_2_PRO,
        source="OAC-21",
        sample=("gpt-5.2-pro", "gpt-5.5-pro"),
        cautious=frozenset({"stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.]1(?:-.*)?",
        facts=_GPT_5_1,
        source="OAC-18",
        sample=("gpt-5.1", "gpt-5.1-2025-11-13"),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][23](?:-.*)?",
        facts=_GPT_5_2,
        source="OAC-18",
        sample=("gpt-5.2", "gpt-5.3"),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.][45](?:-.*)?",
        facts=_GPT_5_4,
        source="OAC-20: litellm#34569, docker-agent#4165",
        sample=("gpt-5.4", "gpt-5.4-mini-2026-03-17", "gpt-5.5"),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"gpt-5[.]6(?:-.*)?|gpt-6-sol",
        facts=_GPT_5_6,
        source="OAC-20: litellm#34569, livekit#7169, onyx#15008",
        sample=("gpt-5.6", "gpt-5.6-sol", "openai/gpt-5.6-terra-2026-07-01", "gpt-6-sol"),
        cautious=frozenset({"sampling", "stops"}),
    ),
    ModelRow(
        maker="openai",
        models=r"(?:gpt-\d|o\d|codex).*",
        facts=_GPT_6_ASTRA,
        source="OAC-20: bolna#1019, docker-agent#4165",
        sample=("gpt-6-astra", "gpt-6.1-sol"),
    ),
)
