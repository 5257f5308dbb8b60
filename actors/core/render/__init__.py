"""Render a normal history and its ledger for one provider: a pure function that passes once over the messages.

    walk        the loop over messages: each message, the results of its calls, roles and fillers
    choose      the completion of each call: sealed, else real, else synthetic with its reason; late results as text
    sealed      reasoning and provider-specific parts, returned only to the provider that produced them
    order       split or reorder calls; keep reasoning whose prefix is unchanged; add required reasoning
    attach      attachments where the dialect allows them, within the limits of a request

Ids and names come from `actors.core.transcript.transcript`, bytes from the family's writer
(`actors.core.transcript.transcript`). The loop sees only the messages after the lane's cursor, and the lane's
`RenderState`; a full render starts from an empty lane.
"""

from actors.core.render.attach import attachment_names_since, media_name
from actors.core.render.sealed import RenderTarget, ThinkingPolicy
from actors.core.render.walk import STRIDE, RenderWalk

__all__ = ["STRIDE", "RenderTarget", "RenderWalk", "ThinkingPolicy", "attachment_names_since", "media_name"]
