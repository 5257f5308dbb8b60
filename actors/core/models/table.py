"""The table of model facts: the rows of all makers.

The first row that matches a model's name describes it. Where sources disagree, the value is the one that all accept
(`ModelRow.cautious`). Sources: rules of the rulebook, the providers' documentation and SDKs of autumn 2026, and probes
published in public issues.
"""

from actors.core.models import anthropic, google, open_weights, openai
from actors.core.models.row import ModelRow

ROWS: tuple[ModelRow, ...] = (*openai.ROWS, *anthropic.ROWS, *google.ROWS, *open_weights.ROWS)
"""Every row; the first whose pattern matches a model's base name describes it."""
