"""The conservative render: say everything in words.

In:  a group: what the model said, and what its calls came to.
Out: the same without tool blocks and without reasoning: calls and results as labelled text, a result's media behind
     its text.

Used once, after a provider or the judge has refused a transcript for its structure: whatever rule was
misread, a transcript of plain texts breaks none that concerns tools. Nothing real is lost by it.
"""

from collections.abc import Sequence
from typing import assert_never

from actors.core.content import Block, Code, Media, Native, Text, Thinking, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.jsonio import Json, unquote


def spoken(blocks: Sequence[Block], notes: Notes) -> list[Block]:
    """Return what was said with each tool call as a text."""
    told: list[Block] = []
    for block in blocks:
        if isinstance(block, Thinking):
            notes.lost("thinking")
        elif isinstance(block, ToolCall):
            notes.calls.append(block.id)
            told.append(Text(f"[Called the tool {block.name} with {block.json.decode()}]"))
        elif isinstance(block, Text | Media | Code | ToolResult | Native):
            told.append(block)
        else:
            assert_never(block)
    return told


def answered(words: Json, failed: bool, media: Sequence[Media]) -> tuple[Text | Media, ...]:
    """Return a tool result in words."""
    how = "failed" if failed else "answered"
    return (Text(f"[The tool {how}: {unquote(words)}]"), *media)
