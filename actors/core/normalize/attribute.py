"""Attribute: put every block into the mouth it came from.

In:  messages in which any block may stand under any role.
Out: messages in which tool calls are the model's, tool results are the tools', and nothing else is; in the
     order in which the blocks stood, each with the place it came from.

A tool call found in a tool's message belongs to the model (REQ-915-047), a result found in a model's or a
human's message belongs to the tools. A message that mixes them is split where the role changes.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeAlias, get_args

from actors.core.data.form import replace
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

Placed: TypeAlias = tuple[str, Message]  # where a message stood, and the message

SAID_BY: dict[type[Block], tuple[MessageRole, ...]] = {
    Text: ("user", "assistant"),
    Thinking: ("user", "assistant"),
    ToolCall: ("assistant",),
    ToolResult: ("tool",),
    Media: ("user", "assistant"),
    Code: ("user", "assistant"),
    ProviderBlock: ("user", "assistant"),
}
"""Who can have said a block. One that is found under another role is the first one's."""


def attributed(placed: Iterable[Placed], remarks: ReportBuilder) -> Iterator[Placed]:
    """Yield messages with each block under its own role. Attributing twice is attributing once."""
    for place, message in placed:
        if message.role not in get_args(MessageRole):
            remarks.found("unknown_speaker")
            remarks.add(place, "role %s taken as the user", f"{message.role!r:.40}")
            message = replace(message, role="user")
        for part in [message] if is_attributed(message) else _split(message, remarks):
            yield place, part


def is_attributed(message: Message) -> bool:
    """Say whether the message holds what its role can say, and nothing else."""
    return all(message.role in SAID_BY[type(block)] for block in message.blocks)


def _owner(block: Block, role: MessageRole) -> MessageRole:
    said_by = SAID_BY[type(block)]
    return role if role in said_by else said_by[0]


def _split(message: Message, remarks: ReportBuilder) -> list[Message]:
    for block in message.blocks:
        if isinstance(block, ToolCall) and message.role != "assistant":
            remarks.found("misplaced_call", block.id)
        elif isinstance(block, ToolResult) and message.role != "tool":
            remarks.found("misplaced_result", block.call_id)
    parts = groupby(message.blocks, lambda block: _owner(block, message.role))
    return [replace(message, role=role, blocks=tuple(blocks)) for role, blocks in parts]
