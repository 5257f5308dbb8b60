"""What providers demand of a request, as data: one `Rule` for each demand that is known.

Ids are stable and cited by code, tests, diagnostics and docs/reference/rulebook.md, which is generated
from here. `ALL-*` is what every dialect demands and its family's own list does not name; each other module
holds one provider's list. The judge (`actors.core.check`) enforces the rules marked as judged; the others
depend on what no request body shows: a key, a model's limits, a header.
"""

from actors.core.rulebook import (
    anthropic,
    compatible,
    converse,
    deepseek,
    gemini,
    kimi,
    mistral,
    openai_chat,
    responses,
    shared,
)
from actors.core.rulebook.rule import FaultClass, Rule
from actors.errors import CanonicalFault, Fault, ProjectionFault, RenderingFault

__all__ = ["FAULTS", "PREFIXES", "REASONING", "RULES", "FaultClass", "Rule", "rules_of"]

FAULTS: dict[FaultClass, type[Fault]] = {
    "rendering": RenderingFault,
    "projection": ProjectionFault,
    "canonical": CanonicalFault,
}
"""The error of each fault class. An overflow or a configuration error is no fault of a transcript."""

_LISTS = (
    shared.RULES,
    openai_chat.RULES,
    mistral.RULES,
    kimi.RULES,
    deepseek.RULES,
    compatible.RULES,
    anthropic.RULES,
    responses.RULES,
    gemini.RULES,
    converse.RULES,
)
RULES: dict[str, Rule] = {rule.id: rule for rules in _LISTS for rule in rules}
"""Every rule by its id, in the order of the rulebook."""

PREFIXES: dict[str, tuple[str, ...]] = {
    "openai_chat": ("ALL-", "OAC-", "MIS-", "KIM-", "DSK-", "CMP-"),
    "anthropic": ("ALL-", "ANT-"),
    "responses": ("ALL-", "OAR-"),
    "gemini": ("ALL-", "GEM-"),
    "converse": ("ALL-", "BED-"),
}
"""The rules of each wire family, by the beginning of their ids."""

REASONING = frozenset(
    {
        *("ANT-39", "ANT-40", "ANT-41", "ANT-42", "ANT-43", "ANT-44", "ANT-52"),
        *("GEM-05", "GEM-06"),
        *("OAR-03", "OAR-04", "OAR-05", "OAR-07", "OAR-09"),
    }
)
"""Rules that a transcript without anybody's sealed reasoning cannot break."""


def rules_of(family: str) -> list[Rule]:
    """Return the rules of a wire family, in the order of the rulebook. Raises KeyError for an unknown one."""
    return [rule for rule in RULES.values() if rule.id.startswith(PREFIXES[family])]
