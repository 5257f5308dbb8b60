"""Pass 7, thinking: decide what becomes of each reasoning block.

In:  placed messages.
Out: the same messages; a thinking block that is left is one its reader made, sealed, and may have back.

Reasoning is its provider's property. It goes back, byte for byte, to the binding that made it while the
prefix it was bound to stands (rulebook ANT-42, ANT-44); elsewhere it is dropped, or turned into plain text
when the policy asks for it. Sealed reasoning without visible words is never turned into text. The pairing
and placement of tool calls does not depend on any of this (REQ-915-023, -024).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.core.content import Block, Message, Text, Thinking, ToolCall
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect
from actors.core.form import replace
from actors.core.identity import Binding

ThinkingPolicy: TypeAlias = Literal["native", "drop", "text"]
"""What becomes of reasoning.

`native`: replayed to its maker, dropped elsewhere. `drop`: never sent, but with calls whose maker demands it back.
`text`: as text where it is not replayed.
"""


@dataclass(frozen=True, slots=True)
class Reader:
    """Whom a transcript is for: the binding, if there is one, and what it may see of reasoning."""

    binding: Binding | None = None
    policy: ThinkingPolicy = "native"

    def served_by(self, upstream: str | None) -> "Reader":
        """Return this reader behind one upstream of its gateway."""
        if self.binding is None or upstream is None:
            return self
        return Reader(replace(self.binding, upstream=upstream), self.policy)


def upstream(tail: list[Message], dialect: Dialect, reader: Reader) -> str | None:
    """Return the upstream that a gateway is pinned to, else whose reasoning comes first in `tail`; None for nobody's.

    What its other upstreams made is foreign for the rest of the epoch: none of them can read another's. Without a pin
    the first to count was reached through this very backend: what is pinned elsewhere may not be who serves here.
    """
    binding = reader.binding
    if dialect.thinking_binding != "upstream" or reader.policy == "drop" or binding is None:
        return None
    if binding.upstream:
        return binding.upstream
    for message in tail:
        for block in message.blocks:
            if type(block) is not Thinking or block.seal is None:
                continue
            maker = block.seal.origin
            reached = replace(binding, upstream=maker.upstream)
            if maker.backend == binding.backend and _own(block, dialect, reached):
                return maker.upstream
    return None


def thinking(tail: list[Message], dialect: Dialect, reader: Reader, notes: Notes) -> list[Message]:
    """Return `tail` with only such thinking blocks as `reader` may be sent.

    Args:
        tail: Placed messages.
        dialect: Says who may open a seal.
        reader: The binding rendered for (without one nothing is replayed), and its policy.
        notes: Counts what is lost.
    """
    return [_decided(message, dialect, reader, notes) if _thinks(message) else message for message in tail]


def unsealed(message: Message) -> Message:
    """Return a message from before the lane's epoch: its reasoning was bound to a prefix that is gone."""
    if not _thinks(message):
        return message
    blocks = [Thinking(json=block.json) if type(block) is Thinking else block for block in message.blocks]
    return Message(message.speaker, blocks, message.turn, message.origin)


def _thinks(message: Message) -> bool:
    return Thinking in map(type, message.blocks)


def _decided(message: Message, dialect: Dialect, reader: Reader, notes: Notes) -> Message:
    decided: list[Block] = []
    returns = _returns(message, dialect, reader)
    for block in message.blocks:
        if not isinstance(block, Thinking) or (returns and _own(block, dialect, reader.binding)):
            decided.append(block)
        elif reader.policy == "text" and block.json != b'""':
            decided.append(Text(f"[Reasoning: {block.text}]"))
        else:
            notes.lost("thinking")
    return Message(message.speaker, decided, message.turn, message.origin)


def _returns(message: Message, dialect: Dialect, reader: Reader) -> bool:
    """Say whether a message's own reasoning may go back: all of it, or none where it would not come first."""
    if message.speaker != "model" or (reader.policy == "drop" and not _demanded(message, dialect)):
        return False
    return not dialect.thinking_first or _own(message.blocks[0], dialect, reader.binding)


def _demanded(message: Message, dialect: Dialect) -> bool:
    """Say whether its maker demands this message's reasoning back as it was (KIM-03, DSK-05)."""
    return dialect.thinking_required == "with_calls" and ToolCall in map(type, message.blocks)


def _own(block: Block, dialect: Dialect, reader: Binding | None) -> bool:
    """Say whether a block is reasoning that its reader may have back. An empty seal opens nothing (ANT-43)."""
    if type(block) is not Thinking or block.seal is None or block.seal.data == b'""':
        return False
    carrier = dialect.thinking_carrier
    if block.seal.kind not in _SEALS.get(carrier, (block.seal.kind,)):
        return False
    if carrier == "reasoning_content" and not block.text.strip():
        return False  # the words are all there is
    return dialect.opens(block.seal.origin, reader)


_SEALS: Mapping[str, tuple[str, ...]] = {
    "reasoning_item": ("reasoning_item", "phase"),
    "reasoning_content": ("reasoning_content",),
    "reasoning_details": ("reasoning_details",),
    "thinking_chunk": ("thinking_chunk",),
}
"""The kinds of seal that a carrier can write. One that is not named writes whatever its provider sealed."""
