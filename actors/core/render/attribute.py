"""Pass 1, attribute: put every block into the mouth it came from.

In:  messages in which any block may stand under any speaker.
Out: messages in which tool calls are the model's, tool results are the tools', and nothing else is; in the
     order in which the blocks stood.

A tool call found in a tool's message belongs to the model (REQ-915-047), a result found in a model's or a
human's message belongs to the tools. A message that mixes them is split where the speaker changes.
"""

from actors.core.content import Block, Code, Media, Message, Speaker, Text, Thinking, ToolCall, ToolResult
from actors.core.diagnostics import Notes


def attribute(tail: list[Message], notes: Notes) -> list[Message]:
    """Return `tail` with each block under its own speaker. Attributing twice is attributing once."""
    attributed: list[Message] = []
    for message in tail:
        if message.speaker not in _FOREIGN:
            notes.found("unknown_speaker", "canonical")
            message = Message("human", message.blocks, message.turn, message.origin)
        if _consistent(message):
            attributed.append(message)
        else:
            attributed.extend(_split(message, notes))
    return attributed


_FOREIGN: dict[Speaker, frozenset[type]] = {  # what each speaker cannot have said
    "human": frozenset({ToolCall, ToolResult}),
    "model": frozenset({ToolResult}),
    "tool": frozenset({Text, Thinking, ToolCall, Media, Code}),
}


def _owner(block: Block, speaker: Speaker) -> Speaker:
    kind = type(block)
    if kind is ToolCall:
        return "model"
    if kind is ToolResult:
        return "tool"
    return "model" if speaker == "model" else "human"


def _consistent(message: Message) -> bool:
    return _FOREIGN[message.speaker].isdisjoint(map(type, message.blocks))


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
