"""Profiles of the family `responses`: OpenAI Responses, stateless.

Everything is sent inline with `store: false`. Calls and results pair by `call_id`; item ids are never sent. So no item
has an id while the one behind it has none (OAR-03, OAR-04), and nothing is looked up that was not stored (OAR-05).
"""

from actors.core.concerns import Ids
from actors.core.dialect import (
    PartMedia,
    ResponsesCaching,
    ResponsesDialect,
    ResponsesReasoning,
    ResponsesRequest,
    ResponsesTurns,
)

OPENAI_RESPONSES = ResponsesDialect(
    name="openai_responses",
    ids=Ids(
        style="openai",
        pattern=r"[A-Za-z0-9_-]{1,64}",  # 64 by OAR-08; the character set is what we choose to emit
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",
    ),
    turns=ResponsesTurns(calls_last=True, max_string=10_485_760),  # OAR-14
    media=PartMedia(max_count=500),  # documented for images; newer models take more
    reasoning=ResponsesReasoning(
        binding="prefix",  # OAR-09: the newest models bind it to the whole prefix, and older ones accept that
        first=False,
    ),
    caching=ResponsesCaching(keyed=True, long="retention"),
    request=ResponsesRequest(overflow_rule="OAR-13"),
)
