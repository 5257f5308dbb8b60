"""Profiles of the family `anthropic`."""

from actors.core.caching import Caching
from actors.core.dialect import Dialect
from actors.core.profiles.overflow import OVERFLOW

ANTHROPIC = Dialect(
    name="anthropic",
    family="anthropic",
    id_style="anthropic",
    id_pattern=r"[a-zA-Z0-9_-]{1,64}",  # ANT-07; 64 is the safe choice, no cap is stated
    id_max_len=64,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",  # ANT-08
    result_carrier="user_block",
    result_error_flag="is_error",
    result_media=frozenset({"image", "document"}),
    user_media=frozenset({"image", "document"}),
    media_types=frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}),
    media_bytes=5 * 1024 * 1024,
    max_media=100,  # ANT-54
    first_roles=frozenset({"user"}),  # ANT-24
    last_roles=frozenset({"user"}),  # ANT-27
    alternation="merge_same",
    thinking_carrier="anthropic_blocks",
    thinking_followed=True,  # ANT-52
    thinking_switch="anthropic",
    forced_choice="not_when_thinking",
    max_temperature=1.0,
    thinking_binding="prefix",  # ANT-44: treated as bound everywhere, which older models accept too
    max_tokens_default=8192,  # the field is required
    caching=Caching(marks="block", moving=True, long="ttl"),
    overflow_patterns=OVERFLOW,
    overflow_rule="ANT-36",
)
