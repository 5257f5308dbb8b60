"""Define the record of one requirement, and list the rules that apply to every dialect.

Some requirements cannot be checked; the record gives the reason. If a family has its own version of a rule, violations
are reported under the id of that version.
"""

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
        unchecked_reason: The reason why we cannot check the rule in a request body; empty for a rule that we check.
        instead_of: Ids of general rules of which this rule is a version, separated by commas. In the dialects to which
            this rule applies, violations of those rules are reported under this rule's id. If a word follows an id,
            this holds only for one case of that rule.
    """

    id: str
    fault_class: FaultClass
    evidence: Literal["seen", "documented", "second hand", "derived"]
    demand: str
    error_text: str = ""
    unchecked_reason: str = ""
    instead_of: str = ""

    @property
    def is_checked(self) -> bool:
        """True if the rule can be checked in a request body."""
        return not self.unchecked_reason

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


SHARED_RULES = (
    Rule("ALL-01", "projection", "derived",
         "A request is one strict JSON object, without duplicate keys, NaN or trailing data."),
    Rule("ALL-02", "projection", "documented",
         "Every required field is present, and every field has an accepted type and value."),
    Rule("ALL-03", "projection", "derived",
         "A tool call id is not empty and matches the dialect's pattern completely."),
    Rule("ALL-04", "projection", "derived",
         "A tool call id is used for only one call, within the dialect's `ids.unique_scope`."),
    Rule("ALL-05", "rendering", "derived",
         "A transcript ends with a role in the dialect's `turns.last_roles`, never with a prefill."),
    Rule("ALL-06", "projection", "seen",
         "The arguments of a call are an object, sent as JSON or as a JSON string, as the dialect requires."),
    Rule("ALL-07", "projection", "second hand",
         "A request has no unknown key, nor has any object inside its messages or tools."),
    Rule("ALL-08", "rendering", "documented",
         "A block is in a message whose role permits the block: calls are in assistant messages, results in the "
         "dialect's `turns.result_carrier`."),
    Rule("ALL-09", "rendering", "derived",
         "A transcript begins with a role in the dialect's `turns.first_roles`."),
    Rule("ALL-10", "projection", "documented",
         "Media occur only in messages and results for which the dialect permits them."),
    Rule("ALL-11", "projection", "documented",
         "No list of parts, text part or assistant message is empty. An assistant message without tool calls has "
         "content."),
    Rule("ALL-12", "canonical", "derived",
         "Text contains no lone surrogate."),
    Rule("ALL-13", "projection", "derived",
         "The declared tool names are distinct."),
    Rule("ALL-14", "projection", "second hand",
         "A request with a tool choice declares tools, and the choice names a declared tool."),
    Rule("ALL-15", "projection", "documented",
         "A request has no more attachments than the dialect's `media.max_count` and `media.max_documents`."),
    Rule("ALL-16", "config", "derived",
         "The model accepts every setting of the request ([models](models.md))."),
)  # fmt: skip
