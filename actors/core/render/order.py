"""Reorder an answer's blocks for the target, and drop reasoning whose prefix has changed.

In:  the blocks of an assistant message as the model wrote them, the blocks that the target supports, and the calls' ids
     and names.
Out: the blocks to send, with calls last if the dialect requires this order. Reasoning is removed if it was bound to a
     changed part of the same message. If a call requires reasoning and none remains, an unsealed placeholder is added.

A lane resends the earlier messages unchanged, so the prefix of reasoning can only have changed within its own message:
a dropped blank text, malformed arguments, an invalid id or name, or text after a call. The answer is compared with the
blocks to send, and reasoning after the first difference is dropped (rulebook ANT-44, OAR-09). Later answers are not
affected, because their reasoning is bound to the bytes that were sent.
"""

from collections.abc import Sequence, Set
from functools import lru_cache
from operator import is_
from typing import TypeAlias

from actors.core.dialects.dialect import Dialect
from actors.core.transcript.diagnostics import Notes
from actors.core.values.content import Block, ProviderBlock, Thinking, ToolCall
from actors.core.values.identity import CallId

EmittedCalls: TypeAlias = list[tuple[ToolCall, str, str]]
"""The calls of a message, each with the id and the tool name that the provider sees."""


def split_calls(blocks: Sequence[Block]) -> list[list[Block]]:
    """Split a message's blocks after each call except the last.

    Some chat templates raise an error on a second call in one message (CMP-02), even if another model made the calls.
    After the split, the calls look sequential.
    """
    parts: list[list[Block]] = [[]]
    left = sum(type(block) is ToolCall for block in blocks)
    for block in blocks:
        parts[-1].append(block)
        left -= type(block) is ToolCall
        if left and type(block) is ToolCall:
            parts.append([])
    return parts


def move_calls_last(blocks: list[Block]) -> list[Block]:
    """Move calls after all other blocks. Reasoning moves together with the block that follows it."""
    kinds = [type(block) for block in blocks if type(block) is not Thinking]
    if ToolCall not in kinds or {ToolCall}.issuperset(kinds[kinds.index(ToolCall) :]):
        return blocks
    words: list[Block] = []
    calls: list[Block] = []
    thought: list[Block] = []
    for block in blocks:
        thought.append(block)
        if type(block) is not Thinking:
            (calls if type(block) is ToolCall else words).extend(thought)
            thought = []
    return [*words, *calls, *thought]


def drop_stale_reasoning(
    original: Sequence[Block], blocks: list[Block], calls: EmittedCalls, notes: Notes
) -> list[Block]:
    """Drop reasoning that follows the first difference between `blocks`, the blocks to send, and the `original` answer.

    Reasoning without a seal is kept, because it is not bound to the preceding blocks.
    """
    altered = {call.id for call, call_id, name in calls if not _is_sent_unchanged(call, call_id, name)}
    if not altered and len(original) == len(blocks) and all(map(is_, original, blocks)):
        return blocks
    before = [block for block in original if not _is_annotation(block)]
    unchanged = _unchanged_count(before, [block for block in blocks if not _is_annotation(block)], altered)
    kept: list[Block] = []
    for block in blocks:
        if unchanged > 0 or _is_annotation(block) or type(block) is not Thinking or block.seal is None:
            kept.append(block)
        else:
            notes.losses["thinking"] += 1
        unchanged -= not _is_annotation(block)
    return kept


def add_required_reasoning(blocks: list[Block], dialect: Dialect, notes: Notes) -> list[Block]:
    """Add placeholder reasoning to `blocks` if the dialect requires reasoning and they contain none.

    The placeholder is added first, or before the first call, as the dialect requires.
    """
    demand = dialect.reasoning.required
    kinds = [*map(type, blocks)]
    if not kinds or (ToolCall not in kinds and demand != "every"):
        return blocks
    at = kinds.index(ToolCall) if demand == "before_calls" else 0
    fits = Thinking in kinds
    if demand == "before_calls":  # reasoning whose seal is of another kind does not count
        seals = [block.seal for block in blocks[at - 1 : at] if isinstance(block, Thinking)]
        fits = any(seal is None or seal.kind == dialect.reasoning.carrier for seal in seals)
    if fits:
        return blocks
    notes.fillers["thinking"] += 1
    return [*blocks[:at], placeholder_reasoning(dialect.reasoning.placeholder), *blocks[at:]]


@lru_cache(maxsize=32)  # one entry for the placeholder of each dialect
def placeholder_reasoning(text: str) -> Thinking:
    """Return the reasoning that is sent if the dialect requires reasoning and the answer has none."""
    return Thinking(text)


def _unchanged_count(original: Sequence[Block], sent: Sequence[Block], altered: Set[CallId]) -> int:
    """Return the number of leading blocks that are equal in both lists; a call in `altered` counts as changed."""
    for at, (one, other) in enumerate(zip(original, sent, strict=False)):
        if one != other or (type(one) is ToolCall and one.id in altered):
            return at
    return min(len(original), len(sent))


def _is_sent_unchanged(call: ToolCall, call_id: str, name: str) -> bool:
    """Return True if a call is sent exactly as the model wrote it, including its id and name."""
    if call.native is None or call.is_malformed or call.is_free or call.name != name:
        return False
    return call.native.data[1:-1] == call_id.encode() or call.native_id == call_id


def _is_annotation(block: Block) -> bool:
    """Return True if a block only annotates the answer, so that reasoning is not bound to it."""
    if type(block) is ProviderBlock:
        return block.seal.kind == "mark"
    return type(block) is Thinking and block.seal is not None and not block.seal.is_bound
