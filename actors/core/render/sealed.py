"""Sealed: which of what a provider sealed goes back to it, and what tells of the rest.

In:  the blocks of a model's message.
Out: the same blocks; reasoning that is left, and a part that is a provider's own, is what its reader made and may have.

It goes back, byte for byte, to the binding that made it, reasoning while the prefix it was bound to stands (rulebook
ANT-42, ANT-44). Elsewhere reasoning is dropped, or turned into plain text when the policy asks for it; without visible
words it never is. The pairing and placement of tool calls does not depend on any of this (REQ-915-023, -024).

A call of a provider's own tool and its result go back together or not at all (ANT-10, ANT-11), and once in an epoch. A
history that was forked, joined or cut by hand may hold half of a pair, or the same pair twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.data.form import replace
from actors.core.data.jsonio import Json, JsonValue, parse, unquote
from actors.core.dialects.dialect import Dialect
from actors.core.transcript.diagnostics import Notes
from actors.core.transcript.projection import ITEM_ID, REASONING_ID
from actors.core.transcript.transcript import EpochUsage
from actors.core.values.content import Block, Message, ProviderBlock, Text, Thinking, ToolCall
from actors.core.values.identity import Binding, content_name

ThinkingPolicy: TypeAlias = Literal["native", "drop", "text"]
"""What becomes of reasoning.

`native`: replayed to its maker, dropped elsewhere. `drop`: never sent, but with calls whose maker demands it back.
`text`: as text where it is not replayed.
"""


class RenderTarget(Struct, frozen=True):
    """Whom a transcript is for, and what it may see of reasoning.

    `budgeted`: it is asked to think with a budget, and so takes no tool loop that began without (ANT-40).
    """

    binding: Binding | None = None
    policy: ThinkingPolicy = "native"
    budgeted: bool = False

    def served_by(self, upstream: str | None) -> "RenderTarget":
        if self.binding is None or upstream is None:
            return self
        return RenderTarget(replace(self.binding, upstream=upstream), self.policy, self.budgeted)


def upstream(tail: Iterable[Message], dialect: Dialect, target: RenderTarget) -> str | None:
    """Return the upstream that a gateway is pinned to, else whose reasoning comes first in `tail`; None for nobody's.

    What its other upstreams made is foreign for the rest of the epoch: none of them can read another's. Without a pin
    the first to count was reached through this very backend: what is pinned elsewhere may not be who serves here.
    """
    binding = target.binding
    if dialect.reasoning.binding != "upstream" or target.policy == "drop" or binding is None:
        return None
    if binding.upstream:
        return binding.upstream
    for message in tail:
        for block in message.blocks:
            if type(block) is not Thinking or block.seal is None:
                continue
            maker = block.seal.origin
            reached = replace(binding, upstream=maker.upstream)
            if maker.backend == binding.backend and is_own(block, dialect, reached):
                return maker.upstream
    return None


def decided(
    blocks: Sequence[Block], dialect: Dialect, target: RenderTarget, notes: Notes, *, sealed: bool = True
) -> list[Block]:
    """Return what a model said with only such reasoning as `target` may be sent; without a binding it is none.

    Seals from before an epoch do not count (`sealed`): they were bound to a prefix that is gone.
    """
    kept: list[Block] = []
    returns = sealed and _returns(blocks, dialect, target)
    for block in blocks:
        if type(block) is not Thinking or (returns and is_own(block, dialect, target.binding)):
            kept.append(block)
        elif words := worded(block, target, notes):
            kept.append(words)
    return kept


def worded(block: Thinking, target: RenderTarget, notes: Notes) -> Text | None:
    """Return reasoning that does not go back as words, where the policy asks for that."""
    if target.policy == "text" and block.json != b'""':
        return Text(f"[Reasoning: {block.text}]")
    notes.losses["thinking"] += 1
    return None


def _returns(blocks: Sequence[Block], dialect: Dialect, target: RenderTarget) -> bool:
    """Say whether a message's own reasoning may go back: all of it, or none where it would not come first."""
    if dialect.reasoning.carrier == "none" or target.binding is None:
        return False
    required = dialect.reasoning.required
    demanded = required == "every" or (required == "with_calls" and ToolCall in map(type, blocks))
    if target.policy == "drop" and not demanded:
        return False
    return not dialect.reasoning.first or is_own(blocks[0], dialect, target.binding)


def is_own(block: Block, dialect: Dialect, target: Binding | None) -> bool:
    """Say whether a block is reasoning that its reader may have back. An empty seal opens nothing (ANT-43)."""
    if type(block) is not Thinking or block.seal is None or block.seal.data == b'""':
        return False
    carrier = dialect.reasoning.carrier
    if block.seal.kind not in _SEALS.get(carrier, (block.seal.kind,)):
        return False
    if carrier == "reasoning_content" and not block.text.strip():
        return False  # the words are all there is
    return dialect.opens(block.seal.origin, target)


def named(blocks: Sequence[Block], *, without_ids: bool) -> Sequence[Block]:
    """Return what a model said without the ids of items that are none, or without any.

    They are left out before anything is compared with what the model said: an id is not what reasoning is bound to.
    """
    left = [block for block in blocks if not _is_id(block, none=without_ids)]
    return blocks if len(left) == len(blocks) else left


def _is_id(block: Block, *, none: bool) -> bool:
    """Say whether a block is the id of an item that does not fit, or that may not go out at all."""
    if type(block) is not Thinking or block.seal is None or block.seal.kind != "item":
        return False
    return none or ITEM_ID.fullmatch(block.seal.data) is None


class Items:
    """What an epoch sends once only: reasoning items (`ReasoningRules.once`), and calls of a provider's own tools."""

    def __init__(self, usage: EpochUsage) -> None:
        self._usage = usage
        self._new: dict[str, None] = {}

    def withholds(self, block: Block) -> bool:
        """Say whether reasoning must stay behind: its item went out in this epoch before, or is none. Else note it."""
        if type(block) is not Thinking or block.seal is None:
            return False
        if block.seal.kind == "phase":
            return block.seal.data not in _PHASES
        if block.seal.kind == "item":
            return not self.takes(unquote(block.seal.data))
        item_id = _reasoning_id(block.seal.data)
        return item_id is None or not self.takes(item_id)

    def takes(self, item_id: str) -> bool:
        """Say whether this may go out, and note that it did."""
        if item_id in self._new or item_id in self._usage.items:
            return False
        self._new[item_id] = None
        return True

    def usage(self, usage: EpochUsage) -> EpochUsage:
        return usage._replace(items=usage.items.update(self._new)) if self._new else usage


_PHASES = (b'"commentary"', b'"final_answer"')


def _reasoning_id(data: Json) -> str | None:
    """Return what a sealed reasoning item is known by, None where the seal holds nothing that could be sent again.

    It is the item's id, or where a relay left that out, a digest of what it is worth nothing without.
    """
    try:
        item = parse(unquote(data).encode())
    except ValueError:  # JsonRefused, and UnicodeEncodeError for lone surrogates
        return None
    if type(item) is not dict or item.get("type") != "reasoning" or type(item.get("summary")) is not list:
        return None
    item_id, state = item.get("id"), item.get("encrypted_content")
    if type(state) is not str or not state:
        return None
    if item_id is None:
        return content_name(state)
    return item_id if type(item_id) is str and REASONING_ID.fullmatch(item_id) else None


_NAMED = ("reasoning_content", "reasoning_details", "thinking_chunk", "extra_content")
_SEALS: Mapping[str, tuple[str, ...]] = {
    "reasoning_item": ("reasoning_item", "phase", "item"),
    **{carrier: (carrier,) for carrier in _NAMED},
}
"""The kinds of seal that a carrier can write. One that is not named writes whatever its provider sealed."""


def returned(
    blocks: Sequence[Block], dialect: Dialect, target: Binding | None, items: Items, notes: Notes
) -> list[Block]:
    """Return what a model said with only such native blocks as `target` may have back, and a note for each other."""
    parts = {
        at: part
        for at, block in enumerate(blocks)
        if type(block) is ProviderBlock and (part := _part(block, dialect, target)) is not None
    }
    going = _whole(parts, items)
    left: list[Block] = []
    for at, block in enumerate(blocks):
        if type(block) is not ProviderBlock or at in going:
            left.append(block)
        else:
            left += told(block, notes)
    return left


def told(block: ProviderBlock, notes: Notes) -> Iterable[Text]:
    """Return what says that something stood here which its reader cannot be sent. A mark is not spoken of."""
    notes.losses["native"] += 1
    if block.seal.kind == "mark":
        return ()
    return (Text(f"[Not shown here: {block.name}, its provider's own.]"),)


def wire(block: ProviderBlock) -> bytes:
    return unquote(block.seal.data).encode()


def _part(block: ProviderBlock, dialect: Dialect, target: Binding | None) -> Mapping[str, JsonValue] | None:
    """Return what a reader may have back, None if it may not: it cannot open the seal, or the seal holds no part."""
    if block.seal.kind != "part" or not dialect.opens(block.seal.origin, target):
        return None
    try:
        part = parse(wire(block))
    except ValueError:  # no JSON, or half a surrogate pair
        return None
    return part if type(part) is dict else None


def _whole(parts: Mapping[int, Mapping[str, JsonValue]], items: Items) -> set[int]:
    """Return the places of the parts that stand alone, and of the calls that have a result with their results."""
    going: set[int] = set()
    waiting: dict[JsonValue, int] = {}
    for at, part in parts.items():
        if type(answered := part.get("tool_use_id")) is str:
            if answered in waiting:
                going |= {waiting.pop(answered), at}
        elif type(made := part.get("id")) is not str:
            going.add(at)
        elif items.takes(made):
            waiting[made] = at
    return going
