"""Convert the parts of an answer to the blocks of its message.

In:  the parts of an answer, in order.
Out: the blocks of its message.

Some parts are not kept exactly as the model sent them: empty text, an unfinished call, a block of an unknown kind. If
the dialect binds reasoning to its prefix, thinking after a changed part loses its signature (seal), because the
provider would reject the signature (ANT-44, OAR-09).
"""

from collections.abc import Callable, Sequence

from actors.adapters.partial import Part, ProviderPart
from actors.core.dialects.dialect import Dialect
from actors.core.values.content import Block, Thinking
from actors.core.values.identity import Binding


def answer_blocks(
    parts: Sequence[Part],
    dialect: Dialect,
    binding: Binding,
    origin: Binding,
    on_omission: Callable[[str], None],
    *,
    is_complete: bool,
) -> list[Block]:
    """Return the blocks of an answer.

    Args:
        parts: The parts of the answer, in order.
        dialect: The dialect of the answer.
        binding: The binding that sent the answer.
        origin: The binding to store with seals (opaque provider state).
        on_omission: Called with the name of each provider-specific part that does not become a block.
        is_complete: Whether the answer is complete. If not, only parts with `is_keepable` become blocks.
    """
    blocks: list[Block] = []
    stands = True
    for part in parts:
        block = part.block(binding, origin) if is_complete or part.is_keepable else None
        if block is None and isinstance(part, ProviderPart):
            on_omission(part.name)
        if block is not None:
            blocks.append(block if stands else _without_bound_seal(block))
        # A seal is bound to the parts before it, so a changed part invalidates all later seals.
        if dialect.reasoning.binding == "prefix":
            stands = stands and part.is_unchanged(block, dialect)
    return blocks


def _without_bound_seal(block: Block) -> Block:
    """Return a block without its seal if the seal depends on the preceding blocks."""
    if isinstance(block, Thinking) and block.seal is not None and block.seal.is_bound:
        return Thinking(json=block.json)
    return block
