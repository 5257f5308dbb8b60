"""List the known requirements of providers on a request, each as a `Rule`.

Code, tests and error messages cite rules by their stable ids. docs/reference/rulebook.md is generated from this
package. `ALL-*` rules apply to every dialect. The independent check (`actors.core.check`) enforces the rules that can
be checked in a request body; the other rules depend on a key, a model's limits or a header.
"""

from actors.core.dialects.dialect import Dialect
from actors.core.rulebook import anthropic, converse, gemini
from actors.core.rulebook.openai import CHAT_RULES, RESPONSES_RULES
from actors.core.rulebook.rule import SHARED_RULES, FaultClass, Rule
from actors.errors import CanonicalFault, Fault, ProjectionFault, RenderingFault

__all__ = ["FAULTS", "PREFIXES", "REASONING", "RULES", "FaultClass", "Rule", "rule_id"]

FAULTS: dict[FaultClass, type[Fault]] = {
    "rendering": RenderingFault,
    "projection": ProjectionFault,
    "canonical": CanonicalFault,
    "config": ProjectionFault,
}
"""The error type of each fault class. A setting that a model does not accept (`config`) is a fault of the encoder,
never of the transcript. An overflow is not a fault, so it has no error type."""

_LISTS = (SHARED_RULES, CHAT_RULES, anthropic.RULES, RESPONSES_RULES, gemini.RULES, converse.RULES)
RULES: dict[str, Rule] = {rule.id: rule for rules in _LISTS for rule in rules}
"""All rules by id, in the order of the rulebook."""

PREFIXES: dict[str, tuple[str, ...]] = {
    "openai_chat": ("ALL-", "OAC-", "MIS-", "KIM-", "DSK-", "CMP-"),
    "anthropic": ("ALL-", "ANT-"),
    "responses": ("ALL-", "OAR-"),
    "gemini": ("ALL-", "GEM-"),
    "converse": ("ALL-", "BED-"),
}
"""The prefixes of the rule ids that apply to a wire family: those of every dialect, of the family, of its vendors."""

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
    """Return the id under which violations of `rule` are reported for a dialect.

    The result is the id of the vendor's version of the rule, else of the family's version, else `rule` itself. `case`
    selects a version for one case of the rule, as the words in `Rule.instead_of` do; empty for the general version.
    """
    for prefix in (PREFIXES[dialect.family][1], f"{dialect.rules}-"):
        rules = _INSTEAD.get(prefix, {})
        rule = rules.get(f"{rule} {case}") or rules.get(rule, rule)
    return rule
