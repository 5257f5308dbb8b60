"""Keep the reasoning and the provider-specific parts that the target may receive, and replace the rest by text.

In:  the blocks of an assistant message.
Out: these blocks, with only the reasoning and the provider-specific parts that the target may read.

This content is sealed: each block records the binding that produced it, and is sent back to this binding unchanged.
Reasoning is sent back only while the prefix to which it is bound is unchanged (rulebook ANT-42, ANT-44). For other
targets, reasoning is dropped, or becomes text if the policy is `text` and the reasoning has visible text. The pairing
and placement of tool calls does not depend on any of this (REQ-915-023, -024).

A server tool's call and its result are sent together or not at all (ANT-10, ANT-11), and only once per epoch. A history
that was forked, joined or edited may contain half of a pair, or the same pair twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, Encoder

from actors.core.data.jsonio import Json, JsonValue, is_blank, parse, unquote, unquote_bytes
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.transcript.diagnostics import Notes
from actors.core.transcript.transcript import ITEM_ID, REASONING_ID, EpochUsage
from actors.core.values.content import Block, Message, ProviderBlock, Text, Thinking, ToolCall
from actors.core.values.identity import Binding, content_digest

ThinkingPolicy: TypeAlias = Literal["native", "drop", "text"]
"""The treatment of reasoning.

`native` replays reasoning to the provider that produced it, and drops it for other providers. `drop` never sends
reasoning, except with calls for which its provider requires it. `text` renders reasoning as text if it is not replayed.
"""


class RenderTarget(Struct, frozen=True):
    """The target of a transcript: a binding, and how reasoning is treated.

    Args:
        binding: The binding of the request; None for a transcript without provider state.
        policy: The treatment of reasoning.
        budgeted: True if the request sets a thinking budget. The provider then rejects the request if the current tool
            loop began without thinking (ANT-40).
    """

    binding: Binding | None = None
    policy: ThinkingPolicy = "native"
    budgeted: bool = False

    def served_by(self, upstream: str | None) -> "RenderTarget":
        """Return the same target, served by an upstream of a gateway; unchanged if `upstream` is None."""
        if self.binding is None or upstream is None:
            return self
        return RenderTarget(replace(self.binding, upstream=upstream), self.policy, self.budgeted)


def replayable_upstream(messages: Iterable[Message], dialect: Dialect, target: RenderTarget) -> str | None:
    """Return the upstream (a provider behind a gateway) whose reasoning in `messages` may be replayed.

    This is the upstream to which the target is pinned, else the upstream of the first replayable reasoning, else None.
    Reasoning of other upstreams is dropped for the rest of the epoch, because no upstream can read another's reasoning.
    Without a pin, only reasoning that came through this backend counts, because another backend may pin the same
    gateway differently.
    """
    binding = target.binding
    if dialect.reasoning.binding != "upstream" or target.policy == "drop" or binding is None:
        return None
    if binding.upstream:
        return binding.upstream
    for message in messages:
        for block in message.blocks:
            if type(block) is not Thinking or block.seal is None:
                continue
            maker = block.seal.origin
            reached = replace(binding, upstream=maker.upstream)
            readable = ReasoningFilter(dialect, RenderTarget(reached)).is_readable
            if maker.backend == binding.backend and readable(block):
                return maker.upstream
    return None


class ReasoningFilter:
    """Decides which reasoning a render sends to its target. A target without a binding receives none."""

    def __init__(self, dialect: Dialect, target: RenderTarget) -> None:
        rules = dialect.reasoning
        self._dialect, self._target = dialect, target
        self._replays = rules.carrier != "none" and target.binding is not None
        self._first, self._required = rules.must_be_first, rules.required
        self._is_text = rules.carrier == "reasoning_content"
        self._kinds = _SEALS.get(rules.carrier)
        self._maker: Binding | None = None  # the binding that produced the last seal
        self._may_read = False  # whether the target may read the seals of `_maker`

    def filter_blocks(self, blocks: Sequence[Block], notes: Notes, *, sealed: bool = True) -> list[Block]:
        """Return the blocks with only the reasoning that the target may receive.

        `sealed` is False for messages from before the epoch: their seals were bound to a prefix that no longer exists.
        """
        kept: list[Block] = []
        returns = sealed and self._can_replay(blocks)
        for block in blocks:
            if type(block) is not Thinking or (returns and self.is_readable(block)):
                kept.append(block)
            elif words := reasoning_as_text(block, self._target, notes):
                kept.append(words)
        return kept

    def is_readable(self, block: Block) -> bool:
        """Return True if a block is reasoning that the target may read. An empty seal counts as unreadable (ANT-43)."""
        if type(block) is not Thinking or (seal := block.seal) is None or seal.data == b'""':
            return False
        if self._kinds is not None and seal.kind not in self._kinds:
            return False
        if self._is_text and is_blank(block.json):
            return False  # this carrier sends only the text, and the text is blank
        if seal.maker is not self._maker:  # successive seals mostly share their maker
            self._maker = seal.maker
            self._may_read = self._dialect.can_replay(seal.origin, self._target.binding)
        return self._may_read

    def _can_replay(self, blocks: Sequence[Block]) -> bool:
        """Return True if the reasoning of a message may be replayed.

        If the dialect requires reasoning at the start of a message, the first block must be reasoning that the target
        may read.
        """
        if not self._replays:
            return False
        if self._target.policy == "drop":
            required = self._required
            if not (required == "every" or (required == "with_calls" and ToolCall in map(type, blocks))):
                return False
        return not self._first or self.is_readable(blocks[0])


def reasoning_as_text(block: Thinking, target: RenderTarget, notes: Notes) -> Text | None:
    """Return reasoning as text if the policy is `text` and it has visible text; else record a loss."""
    if target.policy == "text" and block.json != b'""':
        return Text(f"[Reasoning: {block.text}]")
    notes.losses["thinking"] += 1
    return None


def drop_item_ids(blocks: Sequence[Block], *, without_ids: bool) -> Sequence[Block]:
    """Return the blocks without invalid item ids; without any item ids if `without_ids` is True.

    Item ids are removed before the comparison with the original answer, because reasoning is not bound to item ids.
    """
    left = [
        block
        for block in blocks
        if type(block) is not Thinking or not _is_unwanted_item_id(block, any_id=without_ids)
    ]
    return blocks if len(left) == len(blocks) else left


def _is_unwanted_item_id(block: Thinking, *, any_id: bool) -> bool:
    """Return True if a block is an invalid item id, or any item id if `any_id` is True."""
    if block.seal is None or block.seal.kind != "item":
        return False
    return any_id or ITEM_ID.fullmatch(block.seal.data) is None


class SentItems:
    """Keeps an epoch from sending an item twice.

    Items are reasoning items (`ReasoningRules.id_once`) and calls of server tools.
    """

    def __init__(self, usage: EpochUsage) -> None:
        self._usage = usage
        self._new: dict[str, None] = {}

    def must_withhold(self, block: Thinking) -> bool:
        """Return True if reasoning must not be sent, because its item is invalid or was already sent in this epoch.

        Otherwise, record its item as sent and return False.
        """
        if (seal := block.seal) is None:
            return False
        if seal.kind == "phase":
            return seal.data not in _PHASES
        if seal.kind == "item":
            return not self.admit(unquote(seal.data))
        item_id = _reasoning_id(seal.data)
        return item_id is None or not self.admit(item_id)

    def admit(self, item_id: str) -> bool:
        """Record the item and return True if this epoch has not sent it yet, else return False."""
        if item_id in self._new or item_id in self._usage.items:
            return False
        self._new[item_id] = None
        return True

    def with_sent_items(self, usage: EpochUsage) -> EpochUsage:
        """Return `usage` with the items of this render added."""
        return usage._replace(items=usage.items.update(self._new)) if self._new else usage


_PHASES = (b'"commentary"', b'"final_answer"')


def _reasoning_id(data: Json) -> str | None:
    """Return the identity of a sealed reasoning item; None if the seal contains no item that can be sent.

    The identity is the item's id or, if a relay removed the id, a digest of its encrypted content.
    """
    try:
        json = unquote_bytes(data)
        if (usual := _usual_item(json)) is not None:
            return usual.id if usual.encrypted_content and REASONING_ID.fullmatch(usual.id) else None
        item = parse(json)
    except ValueError:  # JsonRefused, and UnicodeEncodeError for lone surrogates
        return None
    if type(item) is not dict or item.get("type") != "reasoning" or type(item.get("summary")) is not list:
        return None
    item_id, state = item.get("id"), item.get("encrypted_content")
    if type(state) is not str or not state:
        return None
    if item_id is None:
        return content_digest(state)
    return item_id if type(item_id) is str and REASONING_ID.fullmatch(item_id) else None


class _SummaryText(Struct, tag_field="type", tag="summary_text", gc=False):
    text: str


class _UsualReasoning(Struct, tag_field="type", tag="reasoning", forbid_unknown_fields=True, gc=False):
    """A reasoning item as the decoder stores it, with an id and without content."""

    id: str
    summary: list[_SummaryText]
    encrypted_content: str


_DECODER, _ENCODER = Decoder(_UsualReasoning), Encoder()


def _usual_item(json: bytes) -> _UsualReasoning | None:
    """Return the item in `json`; None if the strict parser must read it.

    If the item is encoded to the same bytes again, the strict parser would accept them: they contain no other key, no
    key twice and no lone surrogate. This takes half the time of the strict parser.
    """
    try:
        item = _DECODER.decode(json)
    except DecodeError:
        return None
    return item if _ENCODER.encode(item) == json else None


_NAMED = ("reasoning_content", "reasoning_details", "thinking_chunk", "extra_content")
_SEALS: Mapping[str, tuple[str, ...]] = {
    "reasoning_item": ("reasoning_item", "phase", "item"),
    **{carrier: (carrier,) for carrier in _NAMED},
}
"""The kinds of seals that a carrier accepts. A carrier that is not listed accepts all kinds."""


def filter_native(
    blocks: Sequence[Block], dialect: Dialect, target: Binding | None, items: SentItems, notes: Notes
) -> list[Block]:
    """Return the blocks, with a note in place of each provider-specific part that `target` may not read."""
    parts = {
        at: part
        for at, block in enumerate(blocks)
        if type(block) is ProviderBlock and (part := _readable_part(block, dialect, target)) is not None
    }
    going = _complete_pairs(parts, items)
    left: list[Block] = []
    for at, block in enumerate(blocks):
        if type(block) is not ProviderBlock or at in going:
            left.append(block)
        else:
            left += native_note(block, notes)
    return left


def native_note(block: ProviderBlock, notes: Notes) -> Iterable[Text]:
    """Return the note that replaces a part that the target cannot receive.

    A part that only annotates an answer (seal kind `mark`) has no note.
    """
    notes.losses["native"] += 1
    if block.seal.kind == "mark":
        return ()
    return (Text(f"[Omitted: {block.name}, content that only its provider can read.]"),)


def wire_bytes(block: ProviderBlock) -> bytes:
    """Return the original JSON of a provider-specific part."""
    return unquote_bytes(block.seal.data)


def _readable_part(
    block: ProviderBlock, dialect: Dialect, target: Binding | None
) -> Mapping[str, JsonValue] | None:
    """Return the JSON object in a block; None if the target may not receive it or the seal contains no object."""
    if block.seal.kind != "part" or not dialect.can_replay(block.seal.origin, target):
        return None
    try:
        part = parse(wire_bytes(block))
    except ValueError:  # not JSON, or a lone surrogate
        return None
    return part if type(part) is dict else None


def _complete_pairs(parts: Mapping[int, Mapping[str, JsonValue]], items: SentItems) -> set[int]:
    """Return the positions of the provider-specific parts to send.

    A call of a server tool and its result are sent only together, and once per epoch. All other parts are sent.
    """
    going: set[int] = set()
    waiting: dict[JsonValue, int] = {}
    for at, part in parts.items():
        if type(answered := part.get("tool_use_id")) is str:
            if answered in waiting:
                going |= {waiting.pop(answered), at}
        elif type(made := part.get("id")) is not str:
            going.add(at)
        elif items.admit(made):
            waiting[made] = at
    return going
