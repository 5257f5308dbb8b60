"""One demand of a provider, and the reasons for which the judge cannot see some."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

FaultClass: TypeAlias = Literal["rendering", "projection", "canonical", "overflow", "config"]

MODEL = "depends on the model"
SECRET = "needs the provider's key"  # noqa: S105  a reason, not a password
TOKENS = "needs the provider's token count"
PROVIDER_MODELS = "only the provider knows its models"


@dataclass(frozen=True, slots=True)
class Rule:
    """One demand.

    Args:
        id: Stable id, such as `ANT-07`.
        fault_class: Where the cause lies when it is broken.
        evidence: How it is known: `seen` in a real answer, `documented`, `second hand` from other software,
            or `derived` from the other rules.
        demand: What must hold, in one line.
        refusal: What the provider answers, in its own words, where they are known.
        unseen: Why the judge cannot see it; empty for a rule that is judged.
    """

    id: str
    fault_class: FaultClass
    evidence: Literal["seen", "documented", "second hand", "derived"]
    demand: str
    refusal: str = ""
    unseen: str = ""

    @property
    def judged(self) -> bool:
        """Whether a request body shows if the rule is kept."""
        return not self.unseen
