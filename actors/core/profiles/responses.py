"""Profiles of the family `responses`: OpenAI Responses, stateless.

Everything is sent inline with `store: false`. Calls and results pair by `call_id`; item ids are never sent, but for
the id inside an encrypted reasoning item, which goes back as it came and to nobody but its maker.
"""

from actors.core.caching import Caching
from actors.core.dialect import Dialect
from actors.core.profiles.overflow import OVERFLOW

OPENAI_RESPONSES = Dialect(
    name="openai_responses",
    family="responses",
    id_style="openai",
    id_pattern=r"[A-Za-z0-9_-]{1,64}",  # 64 by OAR-08; the character set is what we choose to emit
    id_max_len=64,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",
    arguments="text",
    calls_last=True,  # OAR-14
    result_carrier="item",
    result_error_flag="text",
    result_media=frozenset({"image", "document"}),
    user_media=frozenset({"image", "document"}),
    media_types=frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}),
    max_media=500,  # documented for images; newer models take more
    alternation="none",
    max_tokens_field="max_output_tokens",
    stream_usage=False,  # the last event of a stream has the figures unasked
    thinking_carrier="reasoning_item",
    thinking_binding="prefix",  # OAR-09: the newest models bind it to the whole prefix, and older ones accept that
    thinking_first=False,
    thinking_followed=True,  # OAR-03
    thinking_once=True,  # OAR-07
    thinking_switch="reasoning",
    max_string=10_485_760,
    caching=Caching(keyed=True, long="retention"),
    overflow_patterns=OVERFLOW,
    overflow_rule="OAR-13",
)
