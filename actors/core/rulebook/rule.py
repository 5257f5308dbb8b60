"""Define one requirement of a provider, and the reasons why the judge cannot enforce some requirements."""

import re
from typing import Literal, TypeAlias

from msgspec import Struct

FaultClass: TypeAlias = Literal["rendering", "projection", "canonical", "overflow", "config"]

MODEL = "depends on the model"
SECRET = "needs the provider's key"  # noqa: S105  a reason, not a password
TOKENS = "needs the provider's token count"
PROVIDER_MODELS = "only the provider knows its models"

_MARKS = re.compile("[«»⟦⟧]")
_VARIABLE = re.compile("⟦.*?⟧")


class Rule(Struct, frozen=True):
    """One requirement.

    Args:
        id: Stable id, such as `ANT-07`.
        fault_class: The class of the fault that breaks the rule.
        evidence: The source: `seen` in a real response, `documented`, `second hand` from other software, or `derived`
            from other rules.
        demand: The requirement, in one line.
        told: The provider's error message, if it is known. The text in «» identifies this refusal; parts of it in ⟦⟧
            vary with the request.
        unseen: The reason why the judge cannot enforce the rule; empty for an enforced rule.
        instead_of: Rules, separated by commas, that this rule replaces in citations of its dialects. A word after a
            rule restricts the replacement to one case of that rule.
    """

    id: str
    fault_class: FaultClass
    evidence: Literal["seen", "documented", "second hand", "derived"]
    demand: str
    told: str = ""
    unseen: str = ""
    instead_of: str = ""

    @property
    def is_judged(self) -> bool:
        """True if a request body shows whether the rule is kept."""
        return not self.unseen

    @property
    def refusal(self) -> str:
        """The provider's error message without the marks."""
        return _MARKS.sub("", self.told)

    @property
    def words(self) -> str:
        """A pattern that identifies this refusal; empty if no text is specific to it."""
        piece = self.told.partition("«")[2].partition("»")[0]
        return _VARIABLE.sub(".*?", re.escape(piece))
