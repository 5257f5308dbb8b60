"""List the known requirements of providers on a request: one `Rule` for each.

Code, tests, diagnostics and docs/reference/rulebook.md, which is generated from this package, cite rules by their
stable ids. `ALL-*` rules apply to every dialect. The judge (`actors.core.check`) enforces the rules that a request body
can show; the others depend on a key, a model's limits or a header.
"""

from actors.core.dialects.dialect import Dialect
from actors.core.rulebook import anthropic, converse, gemini, openai_chat, responses, shared
from actors.core.rulebook.rule import FaultClass, Rule
from actors.errors import CanonicalFault, Fault, ProjectionFault, RenderingFault

__all__ = ["FAULTS", "PREFIXES", "REASONING", "RULES", "FaultClass", "Rule", "rule_id"]

FAULTS: dict[FaultClass, type[Fault]] = {
    "rendering": RenderingFault,
    "projection": ProjectionFault,
    "canonical": CanonicalFault,
    "config": ProjectionFault,
}
"""The error of each fault class. A setting that a model does not accept is a fault of the encoder, never of the
transcript. An overflow is no fault."""

_LISTS = (shared, openai_chat, anthropic, responses, gemini, converse)
RULES: dict[str, Rule] = {rule.id: rule for module in _LISTS for rule in module.RULES}
"""Every rule by its id, in the order of the rulebook."""

PREFIXES: dict[str, tuple[str, ...]] = {
    "openai_chat": ("ALL-", "OAC-", "MIS-", "KIM-", "DSK-", "CMP-"),
    "anthropic": ("ALL-", "ANT-"),
    "responses": ("ALL-", "OAR-"),
    "gemini": ("ALL-", "GEM-"),
    "converse": ("ALL-", "BED-"),
}
"""The prefixes of the rule ids of each wire family: for every dialect, for the family, for its vendors."""

REASONING = frozenset(
    {
        *("ANT-39", "ANT-40", "ANT-41", "ANT-42", "ANT-43", "ANT-44", "ANT-52"),
        *("GEM-05", "GEM-06"),
        *("OAR-03", "OAR-04", "OAR-05", "OAR-07", "OAR-09"),
    }
)
"""Rules that only a transcript with sealed reasoning can break."""

_INSTEAD: dict[str, dict[str, str]] = {}
for _rule in RULES.values():
    _INSTEAD.setdefault(_rule.id[:4], {}).update(dict.fromkeys(_rule.instead_of.split(", "), _rule.id))


def rule_id(dialect: Dialect, rule: str, case: str = "") -> str:
    """Return the id of the dialect's version of `rule`: its vendor's, else its family's, else `rule` itself."""
    for prefix in (PREFIXES[dialect.family][1], f"{dialect.rules}-"):
        rules = _INSTEAD.get(prefix, {})
        rule = rules.get(f"{rule} {case}") or rules.get(rule, rule)
    return rule
