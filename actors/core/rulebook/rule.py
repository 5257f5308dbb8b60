"""One demand of a provider, and the reasons for which the judge cannot see some."""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

FaultClass: TypeAlias = Literal["rendering", "projection", "canonical", "overflow", "config"]

MODEL = "depends on the model"
SECRET = "needs the provider's key"  # noqa: S105  a reason, not a password
TOKENS = "needs the provider's token count"
PROVIDER_MODELS = "only the provider knows its models"

_MARKS = re.compile("[«»⟦⟧]")
_VARIABLE = re.compile("⟦.*?⟧")


@dataclass(frozen=True, slots=True)
class Rule:
    """One demand.

    Args:
        id: Stable id, such as `ANT-07`.
        fault_class: Where the cause lies when it is broken.
        evidence: How it is known: `seen` in a real answer, `documented`, `second hand` from other software,
            or `derived` from the other rules.
        demand: What must hold, in one line.
        told: What the provider answers, in its own words, where they are known. What stands in «» tells this refusal
            from others, but for the parts in ⟦⟧, which are about the request.
        unseen: Why the judge cannot see it; empty for a rule that is judged.
    """

    id: str
    fault_class: FaultClass
    evidence: Literal["seen", "documented", "second hand", "derived"]
    demand: str
    told: str = ""
    unseen: str = ""

    @property
    def judged(self) -> bool:
        """Whether a request body shows if the rule is kept."""
        return not self.unseen

    @property
    def refusal(self) -> str:
        """What the provider answers, as it says it."""
        return _MARKS.sub("", self.told)

    @property
    def words(self) -> str:
        """The pattern that finds this refusal among others; empty if it is not told from them by words of its own."""
        piece = self.told.partition("«")[2].partition("»")[0]
        return _VARIABLE.sub(".*?", re.escape(piece))
