"""Attribute: put every block into the mouth it came from.

In:  messages in which any block may stand under any speaker.
Out: messages in which tool calls are the model's, tool results are the tools', and nothing else is; in the
     order in which the blocks stood, each with the place it came from.

A tool call found in a tool's message belongs to the model (REQ-915-047), a result found in a model's or a
human's message belongs to the tools. A message that mixes them is split where the speaker changes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, get_args

from actors.core.content import (
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
from actors.core.diagnostics import Notes

Placed: TypeAlias = tuple[str, Message]
"""A message, and where it stood."""

SAID_BY: dict[type[Block], tuple[Speaker, ...]] = {
    Text: ("human", "model"),
    Thinking: ("human", "model"),
    ToolCall: ("model",),
    ToolResult: ("tool",),
    Media: ("human", "model"),
    Code: ("human", "model"),
    Native: ("human", "model"),
}
"""Who can have said a block."""
_FOREIGN = {
    speaker: frozenset(kind for kind, speakers in SAID_BY.items() if speaker not in speakers)
    for speaker in get_args(Speaker)
}


def attributed(messages: Sequence[Message], places: Iterable[str], notes: Notes) -> Iterator[Placed]:
    """Yield `messages` with each block under its own speaker. Attributing twice is attributing once."""
    for place, message in zip(places, messages, strict=True):
        if message.speaker not in _FOREIGN:
            notes.found("unknown_speaker", "canonical")
            notes.remarks.add(place, "speaker %s taken as the human", f"{message.speaker!r:.40}")
            message = Message("human", message.blocks, message.turn, message.origin)
        if is_attributed(message):
            yield place, message
        else:
            yield from ((place, part) for part in _split(message, notes))


def is_attributed(message: Message) -> bool:
    """Say whether the message holds what its speaker can say, and nothing else."""
    foreign = _FOREIGN.get(message.speaker)
    return foreign is not None and foreign.isdisjoint(map(type, message.blocks))


def _owner(block: Block, speaker: Speaker) -> Speaker:
    kind = type(block)
    if kind is ToolCall:
        return "model"
    if kind is ToolResult:
        return "tool"
    return "model" if speaker == "model" else "human"


def _split(message: Message, notes: Notes) -> list[Message]:
    parts: list[tuple[Speaker, list[Block]]] = []
    for block in message.blocks:
        owner = _owner(block, message.speaker)
        if owner != message.speaker:
            _note(block, notes)
        if parts and parts[-1][0] == owner:
            parts[-1][1].append(block)
        else:
            parts.append((owner, [block]))
    return [Message(owner, blocks, message.turn, message.origin) for owner, blocks in parts]


def _note(block: Block, notes: Notes) -> None:
    if isinstance(block, ToolCall):
        notes.found("misplaced_call", "canonical", block.id)
    elif isinstance(block, ToolResult):
        notes.found("misplaced_result", "canonical", block.call_id)
