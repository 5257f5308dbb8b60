"""Profiles of the family `anthropic`."""

from actors.core.concerns import Ids
from actors.core.dialect import (
    AnthropicCaching,
    AnthropicDialect,
    AnthropicReasoning,
    AnthropicRequest,
    BlockTurns,
    PartMedia,
)

ANTHROPIC = AnthropicDialect(
    name="anthropic",
    ids=Ids(
        style="anthropic",
        pattern=r"[a-zA-Z0-9_-]{1,64}",  # ANT-07; 64 is the safe choice, no cap is stated
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",  # ANT-08
    ),
    turns=BlockTurns(),  # ANT-24
    media=PartMedia(max_bytes=5 * 1024 * 1024, max_count=100),  # ANT-54
    reasoning=AnthropicReasoning(
        binding="prefix",  # ANT-44: treated as bound everywhere, which older models accept too
        followed=True,  # ANT-52
    ),
    caching=AnthropicCaching(marks="block", moving=True, long="ttl"),
    request=AnthropicRequest(forced_choice="not_when_thinking", max_temperature=1.0, overflow_rule="ANT-36"),
)
