"""The conservative render: say everything in words.

In:  placed messages.
Out: the same conversation without tool blocks and without reasoning: calls and results as labelled text, a
     result's media behind its text.

Used once, after a provider or the judge has refused a transcript for its structure: whatever rule was
misread, a transcript of plain texts breaks none that concerns tools. Nothing real is lost by it.
"""

from actors.core.content import Block, Message, Text, Thinking, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.jsonio import unquote


def plain(tail: list[Message], notes: Notes) -> list[Message]:
    """Return `tail` with each tool call and result as a text of the model's or a human's message."""
    told: list[Message] = []
    for message in tail:
        notes.calls.extend(call.id for call in message.calls)
        if lost := sum(type(block) is Thinking for block in message.blocks):
            notes.lost("thinking", lost)
        blocks = [said for block in message.blocks for said in _worded(block)]
        speaker = "human" if message.speaker == "tool" else message.speaker
        told.append(Message(speaker, blocks, message.turn, message.origin))
    return told


def _worded(block: Block) -> tuple[Block, ...]:
    if isinstance(block, Thinking):
        return ()
    if isinstance(block, ToolCall):
        return (Text(f"[Called the tool {block.name} with {block.json.decode()}]"),)
    if isinstance(block, ToolResult):
        how = "failed" if block.status == "error" else "answered"
        return (Text(f"[The tool {how}: {unquote(block.shown)}]"), *block.media)
    return (block,)
