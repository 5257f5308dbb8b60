"""Define the record of one requirement, and the reasons why some requirements cannot be checked."""

import re
from typing import Literal, TypeAlias

from msgspec import Struct

FaultClass: TypeAlias = Literal["rendering", "projection", "canonical", "overflow", "config"]

MODEL = "depends on the model"
SECRET = "needs the provider's key"  # noqa: S105  an explanation, not a password
TOKENS = "needs the provider's token count"
PROVIDER_MODELS = "only the provider knows its models"

_MARKS = re.compile("[«»⟦⟧]")
_VARIABLE = re.compile("⟦.*?⟧")


class Rule(Struct, frozen=True):
    """One requirement of a provider on a request.

    Args:
        id: Stable id, such as `ANT-07`.
        fault_class: The class of faults against this rule.
        evidence: The source: `seen` in a real response, `documented`, `second hand` from other software, or `derived`
            from other rules.
        demand: The requirement, in one line.
        error_text: The provider's error message, if known. The text in «» identifies this refusal; its parts in ⟦⟧ vary
            with the request.
        unseen: The reason why we cannot check the rule in a request body; empty for a rule that we check.
        instead_of: Ids of other rules, separated by commas. In the dialects to which this rule applies, faults cite
            this rule in place of the others. A word after an id limits the replacement to one case of that rule.
    """

    id: str
    fault_class: FaultClass
    evidence: Literal["seen", "documented", "second hand", "derived"]
    demand: str
    error_text: str = ""
    unseen: str = ""
    instead_of: str = ""

    @property
    def is_checked(self) -> bool:
        """True if the rule can be checked in a request body."""
        return not self.unseen

    @property
    def refusal(self) -> str:
        """The provider's error message, without the marks «» and ⟦⟧."""
        return _MARKS.sub("", self.error_text)

    @property
    def refusal_pattern(self) -> str:
        """A regular expression that matches the provider's error text if a request breaks this rule.

        The result is empty if no text is specific to this rule.
        """
        piece = self.error_text.partition("«")[2].partition("»")[0]
        return _VARIABLE.sub(".*?", re.escape(piece))
