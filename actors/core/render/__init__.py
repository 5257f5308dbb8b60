"""A normal history and its ledger to what one provider is sent: a pure function, one walk over groups.

    walk        the loop: what was said, its results behind it, roles and fillers
    choose      one completion a call: sealed, else real, else synthetic with its reason; late results as words
    sealed      reasoning and a provider's own parts only to who made them
    order       calls apart or last, reasoning only where its prefix stands or the dialect demands some
    attach      attachments where they may stand, as many as a request holds

Ids and names come from `actors.core.transcript.projection`; bytes are the family's writer's
(`actors.core.transcript.transcript`). The walk sees only the messages past the lane's cursor, and the lane's
`RenderState`; a full render is the tail of an empty lane.
"""

from actors.core.render.attach import media_name, names_since
from actors.core.render.sealed import RenderTarget, ThinkingPolicy
from actors.core.render.walk import STRIDE, RenderWalk

__all__ = ["STRIDE", "RenderTarget", "RenderWalk", "ThinkingPolicy", "media_name", "names_since"]
