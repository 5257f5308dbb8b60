"""Combine the rows of all makers into the model-facts table.

The first row that matches a model's name describes the model. Where sources disagree, the table contains a value that
all sources accept (`ModelRow.cautious`). The sources are the rules of the rulebook, the providers' documentation and
SDKs of autumn 2026, and probes published in public issues.
"""

from actors.core.models import anthropic, google, open_weights, openai
from actors.core.models.facts import ModelRow

ROWS: tuple[ModelRow, ...] = (*openai.ROWS, *anthropic.ROWS, *google.ROWS, *open_weights.ROWS)
"""All rows. The first row whose pattern matches a model's base name describes the model."""
