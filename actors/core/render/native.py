"""Native: which of a provider's own parts go back to it, and what tells of the others.

In:  the blocks of a model's message.
Out: the same blocks; a native block that is left is a part that its reader made, and goes back byte for byte.

A call of a provider's own tool and its result go back together or not at all (ANT-10, ANT-11), and once in an epoch. A
history that was forked, joined or cut by hand may hold half of a pair, or the same pair twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from actors.core.content import Block, Native, Text
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect
from actors.core.identity import Binding
from actors.core.jsonio import JsonValue, parse, unquote


class SentOnce(Protocol):
    """What goes out once in an epoch."""

    def takes(self, item_id: str) -> bool:
        """Say whether this may go out, and note that it did."""


def returned(
    blocks: Sequence[Block], dialect: Dialect, target: Binding | None, ids: SentOnce, notes: Notes
) -> list[Block]:
    """Return what a model said with only such native blocks as `target` may have back, and a note for each other."""
    parts = {
        at: part
        for at, block in enumerate(blocks)
        if type(block) is Native and (part := _part(block, dialect, target)) is not None
    }
    going = _whole(parts, ids)
    left: list[Block] = []
    for at, block in enumerate(blocks):
        if type(block) is not Native or at in going:
            left.append(block)
        else:
            left += told(block, notes)
    return left


def told(block: Native, notes: Notes) -> Iterable[Text]:
    """Return what says that something stood here which its reader cannot be sent. A mark is not spoken of."""
    notes.lost("native")
    if block.seal.kind == "mark":
        return ()
    return (Text(f"[Not shown here: {block.name}, its provider's own.]"),)


def wire(block: Native) -> bytes:
    """Return the JSON of a part as it came."""
    return unquote(block.seal.data).encode()


def _part(block: Native, dialect: Dialect, target: Binding | None) -> Mapping[str, JsonValue] | None:
    """Return what a reader may have back, None if it may not: it cannot open the seal, or the seal holds no part."""
    if block.seal.kind != "part" or not dialect.opens(block.seal.origin, target):
        return None
    try:
        part = parse(wire(block))
    except ValueError:  # no JSON, or half a surrogate pair
        return None
    return part if type(part) is dict else None


def _whole(parts: Mapping[int, Mapping[str, JsonValue]], ids: SentOnce) -> set[int]:
    """Return the places of the parts that stand alone, and of the calls that have a result with their results."""
    going: set[int] = set()
    waiting: dict[JsonValue, int] = {}
    for at, part in parts.items():
        if type(answered := part.get("tool_use_id")) is str:
            if answered in waiting:
                going |= {waiting.pop(answered), at}
        elif type(made := part.get("id")) is not str:
            going.add(at)
        elif ids.takes(made):
            waiting[made] = at
    return going
