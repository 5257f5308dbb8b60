"""One demand of a provider, and the reasons for which the judge cannot see some."""

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
    """One demand.

    Args:
        id: Stable id, such as `ANT-07`.
        fault_class: Where the cause lies when it is broken.
        evidence: How it is known: `seen` in a real answer, `documented`, `second hand` from other software,
            or `derived` from the other rules.
        demand: What must hold, in one line.
        told: The provider's answer in its own words, where they are known. The words in «» tell this refusal
            from others; those in ⟦⟧ inside them vary with the request.
        unseen: Why the judge cannot see it; empty for a rule that is judged.
        instead_of: The rules in whose place it is cited, of every dialect or of its vendor's family, separated by
            commas. A word behind a rule limits that to one case of it.
    """

    id: str
    fault_class: FaultClass
    evidence: Literal["seen", "documented", "second hand", "derived"]
    demand: str
    told: str = ""
    unseen: str = ""
    instead_of: str = ""

    @property
    def judged(self) -> bool:
        """Whether a request body shows if the rule is kept."""
        return not self.unseen

    @property
    def refusal(self) -> str:
        """The provider's answer without the marks."""
        return _MARKS.sub("", self.told)

    @property
    def words(self) -> str:
        """The pattern that finds this refusal among others; empty if no words of its own tell it apart."""
        piece = self.told.partition("«")[2].partition("»")[0]
        return _VARIABLE.sub(".*?", re.escape(piece))
