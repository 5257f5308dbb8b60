"""Profiles of the family `openai_chat`: OpenAI itself, and who speaks like it."""

from actors.core.concerns import Ids
from actors.core.dialect import ChatCaching, ChatDialect, ChatMedia, ChatReasoning, ChatRequest, ChatTurns

OPENAI_CHAT = ChatDialect(
    name="openai_chat",
    ids=Ids(
        style="openai",
        pattern=r"[A-Za-z0-9_-]{1,40}",  # 40 by OAC-03; the character set is what we choose to emit
        max_len=40,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # OAC-10
    ),
    turns=ChatTurns(max_string=1_048_576),  # OAC-14
    media=ChatMedia(user_files=True, max_count=500),  # documented for images; newer models take more
    reasoning=ChatReasoning(switch="effort"),
    caching=ChatCaching(keyed=True, long="retention"),
    request=ChatRequest(
        custom_tools=True,
        max_tokens_field="max_completion_tokens",
        max_tools=128,  # OAC-09
        overflow_rule="OAC-15",
    ),
)
