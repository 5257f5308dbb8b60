"""Profiles of the family `converse`: AWS Bedrock, whatever model is behind it."""

from actors.core.concerns import Ids
from actors.core.dialect import (
    ConverseCaching,
    ConverseDialect,
    ConverseMedia,
    ConverseReasoning,
    ConverseRequest,
    ConverseTurns,
)

BEDROCK = ConverseDialect(
    name="bedrock",
    ids=Ids(
        style="bedrock",
        pattern=r"[a-zA-Z0-9_.:-]{1,64}",  # BED-08
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # BED-08
    ),
    turns=ConverseTurns(empty_result="(The tool returned nothing.)"),  # BED-04, BED-06, BED-07
    media=ConverseMedia(
        max_bytes=3_750_000 * 4 // 3,  # documented for images; documents may have 4.5 MB
        max_count=20,  # BED-17; some models take more by now, some fewer
        max_documents=5,  # BED-16
    ),
    reasoning=ConverseReasoning(
        binding="prefix",  # signatures are those of the model behind it
        followed=True,  # ANT-52, by BED-10
    ),
    # Claude's, from 3.5 Haiku and 3.7 on; requests with marks to a model without a cache are refused.
    caching=ConverseCaching(
        marks="point",
        models=r".*anthropic\.claude-(?!v\d|instant|3-haiku|3-opus|3-sonnet|3-5-sonnet).*",
        long="ttl",
    ),
    request=ConverseRequest(forced_choice="not_when_thinking", max_temperature=1.0, overflow_rule="BED-12"),
)
