"""Prompt caches: how a host is asked to keep a prefix, as data.

Some hosts keep nothing unless a request marks the ends of the prefixes that are worth keeping. Others keep every
prefix, each on the machine that served it, and want to be told which conversation a request belongs to. What a request
says of either stands around the lane and never in it: marks move, and what was sent stays as it is.
"""

from functools import lru_cache
from typing import Literal, TypeAlias

from actors.core.models.concerns import Demands
from actors.core.models.facts import ModelFacts
from actors.core.values.identity import Binding, content_name

Cache: TypeAlias = Literal["off", "default", "long"]
"""What is asked of a prompt cache: nothing, to keep prefixes as long as it usually does, or as long as it can."""


class Caching(Demands):
    """How one host's prompt cache is asked for. The default asks for nothing.

    Args:
        marks: How the end of a prefix that is to be kept is marked: by `cache_control` on its last block, by a
            `cachePoint` behind it (`point`), or by `cache_control` on the last part of a message's content (`part`).
        moving: Whether one mark for the whole request, beside its messages, stands for one on its last block.
        keyed: Whether a request names its lane (`prompt_cache_key`), and so comes to the machine that has it.
        long: How a longer life is asked for: by a `ttl` on each mark, or by the field that the model accepts
            (`prompt_cache_retention`, `prompt_cache_options`).
    """

    marks: Literal["none", "block", "point", "part"] = "none"
    moving: bool = False
    keyed: bool = False
    long: Literal["none", "ttl", "retention"] = "none"

    def accepted(self, cache: Cache, model: ModelFacts) -> Cache:
        """Return how far a request may go in what it asks of the cache of this host, for one of its models."""
        has_marks = self.marks != "none" and model.cache == "host"
        if cache == "off" or not (has_marks or self.keyed):
            return "off"
        return "default" if self.long == "none" or model.cache == "automatic" else cache


@lru_cache(maxsize=16)
def lane_key(session: str, binding: Binding) -> str:
    """Return the name of a session's lane for a binding, the same in every process: 32 characters that tell nothing."""
    parts = (session, binding.dialect, binding.endpoint, binding.account, binding.model, binding.upstream)
    return content_name("\0".join((*parts, binding.backend)))[:32]
