"""Pass 10, order: what the model said in the order its reader takes, and reasoning where it stands and must stand.

In:  a message of the model as it was placed, and its blocks as the provider will see them.
Out: those blocks, calls last where the dialect wants that; without the reasoning that was bound to something in
     the same message which is not sent as the model said it; with an unsealed placeholder where calls must have
     reasoning and none is left, whichever pass took it.

A lane sends the messages before an answer as the request did that the model answered, so what reasoning was bound
to can have changed in its own message only: a blank text was left out, arguments were no object, an id or a name
was no valid one, words behind a call had to come before it. The answer is compared with what is sent, whichever
pass changed it, and reasoning behind the first difference stays behind (rulebook ANT-44, OAR-09). Nothing later is
lost with it: what the model thinks next is bound to what it was sent.
"""

from collections.abc import Sequence

from actors.core.content import Block, Message, Text, Thinking, ToolCall
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect
from actors.core.jsonio import unquote
from actors.core.transcript import EntryBlock, WireCall


def order(
    said: Message, shown: tuple[EntryBlock, ...], dialect: Dialect, notes: Notes
) -> tuple[EntryBlock, ...]:
    """Return `shown` in the dialect's order, without reasoning whose prefix is another now, with what calls demand.

    Args:
        said: The placed message that `shown` was made of.
        shown: Its projected blocks.
        dialect: Says whether calls come last, whether reasoning is bound to its prefix, and which calls must have some.
        notes: Counts the reasoning that stays behind.
    """
    if said.speaker != "model":
        return shown
    if dialect.calls_last:
        shown = _calls_last(shown)
    shown = _supplied(shown, dialect)  # first: a placeholder too changes the prefix of what is behind it
    if dialect.thinking_binding == "prefix" and any(map(_is_bound, shown)):
        shown = _supplied(_standing(said, shown, notes), dialect)
    return shown


def _calls_last(blocks: tuple[EntryBlock, ...]) -> tuple[EntryBlock, ...]:
    """Return texts before calls, each with the reasoning directly in front of it."""
    kinds = [type(block) for block in blocks if type(block) is not Thinking]
    if WireCall not in kinds or Text not in kinds[kinds.index(WireCall) :]:
        return blocks
    words: list[EntryBlock] = []
    calls: list[EntryBlock] = []
    thought: list[EntryBlock] = []
    for block in blocks:
        thought.append(block)
        if type(block) is not Thinking:
            (calls if type(block) is WireCall else words).extend(thought)
            thought = []
    return (*words, *calls, *thought)


def _standing(said: Message, shown: tuple[EntryBlock, ...], notes: Notes) -> tuple[EntryBlock, ...]:
    """Return `shown` without the bound reasoning behind the first block that is not what the model said there."""
    before = [block for block in said.blocks if not _is_free(block)]
    stands = _same_until(before, [block for block in shown if not _is_free(block)])
    kept: list[EntryBlock] = []
    for block in shown:
        if _is_free(block):
            kept.append(block)
            continue
        if stands > 0 or not _is_bound(block):
            kept.append(block)
        else:
            notes.lost("thinking")
        stands -= 1
    return tuple(kept)


def _supplied(blocks: tuple[EntryBlock, ...], dialect: Dialect) -> tuple[EntryBlock, ...]:
    """Return blocks with reasoning where the dialect demands some: at the head, or before the first call."""
    demand = dialect.thinking_required
    kinds = [] if demand == "no" else [type(block) for block in blocks]
    if WireCall not in kinds:
        return blocks
    at = kinds.index(WireCall) if demand == "before_calls" else 0
    if Thinking in kinds if demand == "with_calls" else _says_for_the_call(blocks[at - 1 : at], dialect):
        return blocks
    return (*blocks[:at], Thinking(dialect.thinking_placeholder), *blocks[at:])


def _says_for_the_call(before: Sequence[EntryBlock], dialect: Dialect) -> bool:
    """Say whether reasoning in front of a call is the call's: sealed as another kind, it is a part of its own."""
    return any(
        isinstance(block, Thinking) and (block.seal is None or block.seal.kind == dialect.thinking_carrier)
        for block in before
    )


def _same_until(said: Sequence[Block], shown: Sequence[EntryBlock]) -> int:
    """Return how many blocks at the head are sent as they were said."""
    pairs = zip(said, shown, strict=False)
    return next((at for at, pair in enumerate(pairs) if not _same(*pair)), min(len(said), len(shown)))


def _same(said: Block, shown: EntryBlock) -> bool:
    if isinstance(said, ToolCall) and isinstance(shown, WireCall):
        named = said.native is not None and unquote(said.native.data) == shown.id
        return named and said.raw is None and said.json == shown.json
    return said == shown


def _is_bound(block: Block | EntryBlock) -> bool:
    return type(block) is Thinking and block.seal is not None and block.seal.is_bound


def _is_free(block: Block | EntryBlock) -> bool:
    """Say whether a block is a mark on the text behind it, and so part of no prefix."""
    return type(block) is Thinking and block.seal is not None and not block.seal.is_bound
