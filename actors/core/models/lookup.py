"""Find the row of the table that describes a model.

In:  a model's name in its provider's spelling, and the makers whose models the host serves.
Out: the first row that matches, or None for a model of an unknown family.

A new name of a known family matches the row of the family's newest generation, because providers add restrictions more
often than they lift them.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from actors.core.models.facts import Maker, ModelRow

# such as `us.anthropic.`; a dot before a digit is a version
_PREFIX = re.compile(r"(?:[a-z][a-z0-9-]*\.)+(?=[a-z])")
_SUFFIX = re.compile(
    r"(?:[@:\[].*|(?<!claude)-v\d+:\d+|(?<=\d)-v\d+|-20\d\d-?\d\d-?\d\d(?!\d).*|-(?:latest|preview))+$"
)


@lru_cache(maxsize=1024)
def base_name(model: str) -> str:
    """Return a model's name in lower case, without a gateway, region, date, tag or version suffix.

    A suffix after the date, as in `claude-sonnet-4-5-20250929-thinking`, is removed with the date.

    For example, `openai/gpt-5.6-sol-2026-07-01` becomes `gpt-5.6-sol`. Both
    `us.anthropic.claude-opus-5-5-20260901-v1:0` and `claude-opus-5-5@20260901` become `claude-opus-5-5`.
    """
    name = model.strip().lower().removeprefix("ft:").rpartition("/")[2].lstrip("~")
    return _SUFFIX.sub("", _PREFIX.sub("", name, count=1))


@lru_cache(maxsize=1024)
def find_row(model: str, makers: Collection[Maker]) -> ModelRow | None:
    """Return the row that describes a model on a host, or None if the model's family is unknown.

    Args:
        model: The model's name, as its provider spells it.
        makers: The makers whose models the host serves.
    """
    # imported here, so that the table is built only when it is needed
    from actors.core.models.table import (
        ROWS,
    )

    name = base_name(model)
    rows = (row for row in ROWS if row.maker in makers)
    return next((row for row in rows if re.fullmatch(row.models, name)), None)
