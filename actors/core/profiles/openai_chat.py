"""Profiles of the family `openai_chat`: OpenAI itself, and who speaks like it."""

from actors.core.caching import Caching
from actors.core.dialect import Dialect
from actors.core.profiles.overflow import OVERFLOW

OPENAI_CHAT = Dialect(
    name="openai_chat",
    family="openai_chat",
    id_style="openai",
    id_pattern=r"[A-Za-z0-9_-]{1,40}",  # 40 by OAC-03; the character set is what we choose to emit
    id_max_len=40,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # OAC-10
    arguments="text",
    result_carrier="tool_message",
    result_error_flag="text",
    user_files=True,
    max_media=500,  # documented for images; newer models take more
    alternation="none",
    max_tokens_field="max_completion_tokens",
    max_tools=128,  # OAC-09
    thinking_switch="effort",
    thinking_carrier="none",
    thinking_binding="none",
    max_string=1_048_576,  # OAC-14
    caching=Caching(keyed=True, long="retention"),
    overflow_patterns=OVERFLOW,
    overflow_rule="OAC-15",
)
