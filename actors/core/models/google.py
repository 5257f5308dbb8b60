"""Facts about Google's models: one row for each generation. The first row that matches a model's name applies.

The last row describes the newest generation, and matches every other name of the family.
"""

from actors.core.data.record import replace
from actors.core.models.facts import ModelFacts, ModelRow

_GEMINI_1 = ModelFacts(
    efforts=(),
    thinking=(),
    reasoning="own",
    budgets=True,
    cache_minimum=1024,
    image_count=3600,
)
_GEMINI_2 = replace(
    _GEMINI_1, thinking=("adaptive", "enabled", "disabled"), thinks_by_default=True, display=True
)
_GEMINI_2_PRO = replace(_GEMINI_2, thinking=("adaptive", "enabled"))
_GEMINI_3 = replace(
    _GEMINI_2_PRO,
    efforts=("low", "high"),
    default_effort="high",
    reasoning="host",
    native_ids=True,  # Vertex AI accepts call ids for these models (GEM-09)
    budgets=False,
    cache_minimum=4096,
)
_GEMINI_3_1 = replace(_GEMINI_3, efforts=("low", "medium", "high"))
_GEMINI_3_FLASH = replace(_GEMINI_3, efforts=("minimal", "low", "medium", "high"))
_GEMINI_4 = replace(_GEMINI_3_1, thinking=("adaptive",), cache_minimum=6144)


ROWS: tuple[ModelRow, ...] = (
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
        sample=("gemini-2.5-flash", "gemini-2.0-flash"),
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
        sample=("gemini-3-flash-preview", "gemini-3.8-flash"),
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
)
