"""Define a row of the model-facts table: a pattern for model names, and the facts about these models."""

from typing import Literal, TypeAlias

from actors.core.models.facts import ModelFacts
from actors.core.models.rules import KeywordOnlyRecord

Maker: TypeAlias = Literal["openai", "anthropic", "google", "kimi", "deepseek", "glm", "minimax", "amazon"]


class ModelRow(KeywordOnlyRecord):
    """A row of the model-facts table.

    Args:
        maker: The maker of the models.
        models: A regular expression that must match a model's complete base name.
        facts: The features that the models accept.
        source: The source of the facts: a rule, a document, or an issue.
        sample: Model names that the row describes, for tests and for the reference page.
        cautious: Fields about which sources disagree. Their value is one that all sources accept; a real host may
            accept more.
    """

    maker: Maker
    models: str
    facts: ModelFacts
    source: str
    sample: tuple[str, ...]
    cautious: frozenset[str] = frozenset()
