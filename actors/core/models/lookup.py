"""Find the row of the table that describes a model.

In:  a model's name in its provider's spelling, and the makers of models that the host serves.
Out: the first row that matches, or None for a model of an unknown family.

A name that no generation claims, but that belongs to a maker's family, gets the row of the newest generation of that
family (`ModelRow.newest`): providers add restrictions more often than they lift them.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from actors.core.models.row import Maker, ModelRow

_PREFIX = re.compile(r"(?:[a-z][a-z0-9-]*\.)+(?=[a-z])")  # `us.anthropic.`; a dot before a digit is a version
_SUFFIX = re.compile(
    r"(?:[@:\[].*|(?<!claude)-v\d+:\d+|(?<=\d)-v\d+|-20\d\d-?\d\d-?\d\d(?!\d).*|-(?:latest|preview))+$"
)


@lru_cache(maxsize=1024)
def base_name(model: str) -> str:
    """Return a model's name in lower case without a gateway's prefix, a region, a date, a tag or a version suffix.

    A relay's suffix after a date, as in `claude-sonnet-4-5-20250929-thinking`, is removed with the date.

    `openai/gpt-5.6-sol-2026-07-01` is `gpt-5.6-sol`, `us.anthropic.claude-opus-5-5-20260901-v1:0` is
    `claude-opus-5-5`, and `claude-opus-5-5@20260901` too.
    """
    name = model.strip().lower().removeprefix("ft:").rpartition("/")[2].lstrip("~")
    return _SUFFIX.sub("", _PREFIX.sub("", name, count=1))


@lru_cache(maxsize=1024)
def find_row(model: str, makers: Collection[Maker]) -> ModelRow | None:
    """Return the row that describes a model on a host; None for a model of no known family.

    Args:
        model: The model's name, as its provider spells it.
        makers: The makers of models that the host serves.
    """
    from actors.core.models.table import ROWS  # the table is built when the first model is looked up

    name = base_name(model)
    rows = (row for row in ROWS if row.maker in makers)
    return next((row for row in rows if re.fullmatch(row.models, name)), None)
