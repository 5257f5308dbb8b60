"""Order: what the model said in the order its reader takes, with the reasoning that stands and must stand.

In:  the blocks of a model's message as it said them, those that are left of them, and the ids and names of its calls.
Out: those that are left, calls last where the dialect wants that; without the reasoning that was bound to something in
     the same message which is not sent as the model said it; with an unsealed placeholder where calls must have
     reasoning and none is left.

A lane sends the messages before an answer as they were when the model answered, so what reasoning was bound to can
have changed in its own message only: a blank text left out, arguments that were no object, an invalid id or name,
words behind a call. The answer is compared with what is sent, and reasoning behind the first difference stays behind
(rulebook ANT-44, OAR-09). Nothing later is lost with it: what the model thinks next is bound to what it was sent.
"""

from collections.abc import Sequence, Set
from operator import is_
from typing import TypeAlias

from actors.core.dialects.dialect import Dialect
from actors.core.transcript.diagnostics import Notes
from actors.core.values.content import Block, ProviderBlock, Thinking, ToolCall
from actors.core.values.identity import CallId

Made: TypeAlias = list[tuple[ToolCall, str, str]]
"""Calls that go out, each with the id and the name the provider sees."""


def apart(blocks: Sequence[Block]) -> list[list[Block]]:
    """Return a message's blocks, cut behind each call but the last.

    Some chat templates raise at a second call in one message (CMP-02), whoever made it. The model is shown that the
    tools were called one after the other.
    """
    parts: list[list[Block]] = [[]]
    left = sum(type(block) is ToolCall for block in blocks)
    for block in blocks:
        parts[-1].append(block)
        left -= type(block) is ToolCall
        if left and type(block) is ToolCall:
            parts.append([])
    return parts


def calls_last(blocks: list[Block]) -> list[Block]:
    """Return what is said before what is called, each with the reasoning directly in front of it."""
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


def still_bound(said: Sequence[Block], left: list[Block], made: Made, notes: Notes) -> list[Block]:
    """Return `left` without the bound reasoning behind the first block that is not what the model said there."""
    altered = {call.id for call, call_id, name in made if not _is_as_said(call, call_id, name)}
    if not altered and len(said) == len(left) and all(map(is_, said, left)):
        return left
    before = [block for block in said if not _is_free(block)]
    stands = _same_until(before, [block for block in left if not _is_free(block)], altered)
    kept: list[Block] = []
    for block in left:
        if stands > 0 or _is_free(block) or type(block) is not Thinking or block.seal is None:
            kept.append(block)
        else:
            notes.losses["thinking"] += 1
        stands -= not _is_free(block)
    return kept


def supplied(blocks: list[Block], dialect: Dialect, notes: Notes) -> list[Block]:
    """Return blocks with reasoning where the dialect demands some: at the beginning, or before the first call."""
    demand = dialect.reasoning.required
    kinds = [type(block) for block in blocks]
    if not kinds or (ToolCall not in kinds and demand != "every"):
        return blocks
    at = kinds.index(ToolCall) if demand == "before_calls" else 0
    fits = Thinking in kinds
    if demand == "before_calls":  # reasoning sealed as another kind is a part of its own, and not the call's
        seals = [block.seal for block in blocks[at - 1 : at] if isinstance(block, Thinking)]
        fits = any(seal is None or seal.kind == dialect.reasoning.carrier for seal in seals)
    if fits:
        return blocks
    notes.fillers["thinking"] += 1
    return [*blocks[:at], Thinking(dialect.reasoning.placeholder), *blocks[at:]]


def _same_until(said: Sequence[Block], left: Sequence[Block], altered: Set[CallId]) -> int:
    """Return how many blocks at the beginning are sent as they were said."""
    for at, (one, other) in enumerate(zip(said, left, strict=False)):
        if one != other or (type(one) is ToolCall and one.id in altered):
            return at
    return min(len(said), len(left))


def _is_as_said(call: ToolCall, call_id: str, name: str) -> bool:
    """Say whether a call goes out as the model made it."""
    if call.native is None or call.is_malformed or call.is_free or call.name != name:
        return False
    return call.native.data[1:-1] == call_id.encode() or call.native_id == call_id


def _is_free(block: Block) -> bool:
    """Say whether a block is a mark on what is said, and so part of no prefix."""
    if type(block) is ProviderBlock:
        return block.seal.kind == "mark"
    return type(block) is Thinking and block.seal is not None and not block.seal.is_bound
