"""Define a row of the table of models: a family of names, and the facts about its models."""

from typing import Literal, TypeAlias

from actors.core.models.facts import ModelFacts
from actors.core.models.rules import Demands

Maker: TypeAlias = Literal["openai", "anthropic", "google", "kimi", "deepseek", "glm", "minimax", "amazon"]


class ModelRow(Demands):
    """One row of the table.

    Args:
        maker: The maker of the models.
        models: Names of the models, as a regular expression that must match the whole base name.
        facts: The features that they accept.
        source: The source of the facts: a rule, a document, or an issue.
        sample: Names that the row describes, for tests and for the reference page.
        cautious: Fields in which sources disagree, so that the value is the one that all accept; a real host may
            accept more.
    """

    maker: Maker
    models: str
    facts: ModelFacts
    source: str
    sample: tuple[str, ...]
    cautious: frozenset[str] = frozenset()
