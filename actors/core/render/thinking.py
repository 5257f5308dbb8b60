"""Pass 6, thinking: decide what becomes of each reasoning block.

In:  placed messages.
Out: the same messages; a thinking block that is left is one its reader made, sealed, and may have back.

Reasoning is its provider's property. It goes back, byte for byte, to the binding that made it while the
prefix it was bound to stands (rulebook ANT-42, ANT-44); elsewhere it is dropped, or turned into plain text
when the policy asks for it. Sealed reasoning without visible words is never turned into text. The pairing
and placement of tool calls does not depend on any of this (REQ-915-023, -024).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.core.content import Block, Message, Text, Thinking
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect
from actors.core.identity import Binding

ThinkingPolicy: TypeAlias = Literal["native", "drop", "text"]
"""`native`: replay to its maker, drop elsewhere. `drop`: never send. `text`: where not replayed, as text."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Whom a transcript is for: the binding, if there is one, and what it may see of reasoning."""

    binding: Binding | None = None
    policy: ThinkingPolicy = "native"


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
    if reader.policy == "drop" or message.speaker != "model":
        return False
    return not dialect.thinking_first or _own(message.blocks[0], dialect, reader.binding)


def _own(block: Block, dialect: Dialect, reader: Binding | None) -> bool:
    """Say whether a block is reasoning that its reader may have back. An empty seal opens nothing (ANT-43)."""
    if type(block) is not Thinking or block.seal is None or block.seal.data == b'""':
        return False
    return dialect.opens(block.seal.origin, reader)
