"""Move every block to a message whose role may contain the block.

In:  messages in which any block may have any role.
Out: messages in which only assistant messages contain tool calls, and only tool messages contain tool results. The
     order of the blocks is unchanged, and each message has the position of the message from which it came.

A tool call in a tool message belongs to the assistant (REQ-915-047); a result in an assistant or user message belongs
to the tools. A message with blocks of several roles is split where the role changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TypeAlias, get_args

from actors.core.data.record import replace
from actors.core.values.content import (
    Block,
    Code,
    Media,
    Message,
    MessageRole,
    ProviderBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.intake import ReportBuilder

PositionedMessage: TypeAlias = tuple[str, Message]  # the original position of a message, and the message

SAID_BY: dict[type[Block], tuple[MessageRole, ...]] = {
    Text: ("user", "assistant"),
    Thinking: ("user", "assistant"),
    ToolCall: ("assistant",),
    ToolResult: ("tool",),
    Media: ("user", "assistant"),
    Code: ("user", "assistant"),
    ProviderBlock: ("user", "assistant"),
}
"""The roles that can write a block. A block in a message of another role is moved to the first role listed."""
_ROLES = get_args(MessageRole)
_BLOCKS: Mapping[str, frozenset[type[Block]]] = {
    role: frozenset(kind for kind, roles in SAID_BY.items() if role in roles) for role in _ROLES
}
"""The blocks that a role can write."""


def attribute(messages: Iterable[PositionedMessage], remarks: ReportBuilder) -> Iterator[PositionedMessage]:
    """Yield messages whose role fits each of their blocks. A message that is already correct is unchanged."""
    for place, message in messages:
        if message.role not in _ROLES:
            remarks.add_finding("unknown_speaker")
            remarks.add(place, "unknown role %s replaced by user", f"{message.role!r:.40}")
            message = replace(message, role="user")
        for part in [message] if is_attributed(message) else _split_message(message, remarks):
            yield place, part


def is_attributed(message: Message) -> bool:
    """Return True if the message's role may contain every block of the message."""
    return message.role in _BLOCKS and _BLOCKS[message.role].issuperset(map(type, message.blocks))


def _author_role(block: Block, role: MessageRole) -> MessageRole:
    said_by = SAID_BY[type(block)]
    return role if role in said_by else said_by[0]


def _split_message(message: Message, remarks: ReportBuilder) -> list[Message]:
    for block in message.blocks:
        if isinstance(block, ToolCall) and message.role != "assistant":
            remarks.add_finding("misplaced_call", block.id)
        elif isinstance(block, ToolResult) and message.role != "tool":
            remarks.add_finding("misplaced_result", block.call_id)
    parts = groupby(message.blocks, lambda block: _author_role(block, message.role))
    return [replace(message, role=role, blocks=tuple(blocks)) for role, blocks in parts]
