"""Reasoning that must come back: who checks that a call turn still has it.

Kimi and DeepSeek refuse an assistant message with calls that lacks `reasoning_content` while thinking is on.
Their hosts check that the field is there; copies and relays want text in it, so the strict mode does too.
"""

from actors.testing.rules.base import Json
from actors.testing.rules.host import RequestContext, thinks


def check_present(request: Json, context: RequestContext) -> None:
    """Refuse a call turn without reasoning, if the host has a rule for it and thinking is on."""
    rule = context.host.reasoning
    if rule is None or not thinks(request, context.model):
        return
    messages: list[Json] = request["messages"]
    turns = [at for at, message in enumerate(messages) if message.get("tool_calls")]
    if context.mode == "hosted" and context.host.reasoning_scope == "open":
        turns = turns[-1:] if messages[-1]["role"] == "tool" else []
    for at in turns:
        text = messages[at].get("reasoning_content")
        if not isinstance(text, str) or (context.mode == "strict" and not text.strip()):
            raise context.host.rules[rule].refused(f"messages[{at}].reasoning_content", at=at)
