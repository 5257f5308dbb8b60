"""Move every block to a message of the role that can have written it.

In:  messages in which any block may have any role.
Out: messages in which tool calls are the assistant's, tool results are the tools', and nothing else is; in the order
     of the blocks, each with its original position.

A tool call in a tool message belongs to the assistant (REQ-915-047); a result in an assistant or user message belongs
to the tools. A message that mixes them is split where the role changes.
"""

from collections.abc import Iterable, Iterator
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

Placed: TypeAlias = tuple[str, Message]  # the original position of a message, and the message

SAID_BY: dict[type[Block], tuple[MessageRole, ...]] = {
    Text: ("user", "assistant"),
    Thinking: ("user", "assistant"),
    ToolCall: ("assistant",),
    ToolResult: ("tool",),
    Media: ("user", "assistant"),
    Code: ("user", "assistant"),
    ProviderBlock: ("user", "assistant"),
}
"""The roles that can write a block. A block under another role moves to the first one listed."""


def attribute(placed: Iterable[Placed], remarks: ReportBuilder) -> Iterator[Placed]:
    """Yield messages with each block under its own role. Applying it again changes nothing."""
    for place, message in placed:
        if message.role not in get_args(MessageRole):
            remarks.add_finding("unknown_speaker")
            remarks.add(place, "role %s taken as the user", f"{message.role!r:.40}")
            message = replace(message, role="user")
        for part in [message] if is_attributed(message) else _split_message(message, remarks):
            yield place, part


def is_attributed(message: Message) -> bool:
    """Return True if all blocks of the message are possible for its role."""
    return all(message.role in SAID_BY[type(block)] for block in message.blocks)


def _owner(block: Block, role: MessageRole) -> MessageRole:
    said_by = SAID_BY[type(block)]
    return role if role in said_by else said_by[0]


def _split_message(message: Message, remarks: ReportBuilder) -> list[Message]:
    for block in message.blocks:
        if isinstance(block, ToolCall) and message.role != "assistant":
            remarks.add_finding("misplaced_call", block.id)
        elif isinstance(block, ToolResult) and message.role != "tool":
            remarks.add_finding("misplaced_result", block.call_id)
    parts = groupby(message.blocks, lambda block: _owner(block, message.role))
    return [replace(message, role=role, blocks=tuple(blocks)) for role, blocks in parts]
