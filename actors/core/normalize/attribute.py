"""Attribute: put every block into the mouth it came from.

In:  messages in which any block may stand under any speaker.
Out: messages in which tool calls are the model's, tool results are the tools', and nothing else is; in the
     order in which the blocks stood, each with the place it came from.

A tool call found in a tool's message belongs to the model (REQ-915-047), a result found in a model's or a
human's message belongs to the tools. A message that mixes them is split where the speaker changes.
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
    Native,
    Speaker,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.intake import Remarks

Placed: TypeAlias = tuple[str, Message]  # where a message stood, and the message

SAID_BY: dict[type[Block], tuple[Speaker, ...]] = {
    Text: ("human", "model"),
    Thinking: ("human", "model"),
    ToolCall: ("model",),
    ToolResult: ("tool",),
    Media: ("human", "model"),
    Code: ("human", "model"),
    Native: ("human", "model"),
}
"""Who can have said a block. One that is found under another speaker is the first one's."""


def attributed(placed: Iterable[Placed], remarks: Remarks) -> Iterator[Placed]:
    """Yield messages with each block under its own speaker. Attributing twice is attributing once."""
    for place, message in placed:
        if message.speaker not in get_args(Speaker):
            remarks.found("unknown_speaker")
            remarks.add(place, "speaker %s taken as the human", f"{message.speaker!r:.40}")
            message = replace(message, speaker="human")
        for part in [message] if is_attributed(message) else _split(message, remarks):
            yield place, part


def is_attributed(message: Message) -> bool:
    """Say whether the message holds what its speaker can say, and nothing else."""
    return all(message.speaker in SAID_BY[type(block)] for block in message.blocks)


def _owner(block: Block, speaker: Speaker) -> Speaker:
    said_by = SAID_BY[type(block)]
    return speaker if speaker in said_by else said_by[0]


def _split(message: Message, remarks: Remarks) -> list[Message]:
    for block in message.blocks:
        if isinstance(block, ToolCall) and message.speaker != "model":
            remarks.found("misplaced_call", block.id)
        elif isinstance(block, ToolResult) and message.speaker != "tool":
            remarks.found("misplaced_result", block.call_id)
    parts = groupby(message.blocks, lambda block: _owner(block, message.speaker))
    return [replace(message, speaker=speaker, blocks=tuple(blocks)) for speaker, blocks in parts]
