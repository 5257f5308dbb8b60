"""Pass 6, apart: where a message may hold one call only, each call goes with its own result.

In:  placed messages.
Out: the same blocks; a model message with several calls is cut behind each call but the last, and each part is
     followed by the result of its call.

Some chat templates raise at a second call in one message (CMP-02), whoever made it. The model is shown that the tools
were called one after the other.
"""

from actors.core.content import Block, Message, ToolCall
from actors.core.dialect import Dialect


def apart(tail: list[Message], dialect: Dialect) -> list[Message]:
    """Return `tail` with one call a message, where the dialect wants that. Parting twice is parting once."""
    if dialect.calls_together:
        return tail
    parted: list[Message] = []
    for message in tail:
        if message.speaker == "tool" and len(message.results) > 1:
            group = parted.pop()  # placed: what was called stands directly before what came of it
            for blocks, result in zip(_cut(group), message.results, strict=True):
                parted.append(Message("model", blocks, group.turn, group.origin))
                parted.append(Message("tool", (result,), message.turn, message.origin))
        else:
            parted.append(message)
    return parted


def _cut(group: Message) -> list[list[Block]]:
    """Return a message's blocks, cut behind each call but the last."""
    parts: list[list[Block]] = [[]]
    left = len(group.calls)
    for block in group.blocks:
        parts[-1].append(block)
        left -= type(block) is ToolCall
        if left and type(block) is ToolCall:
            parts.append([])
    return parts
