"""Convert the parts of an answer to the blocks of its message, and collect its metadata and token figures.

Some parts do not become blocks exactly as the model sent them: empty text, an unfinished call, a block of an unknown
kind. If the dialect binds reasoning to the content before it, thinking after such a part loses its signature (seal),
because the provider would reject the signature (ANT-44, OAR-09).

The decoders add metadata of the text, such as citations, through `actors.adapters.assembly`. The metadata becomes
blocks at the end of the message. An answer may consist of several responses, whose token figures are added up.
"""

from collections.abc import Callable, Mapping, Sequence

from actors.adapters.partial import Part, ProviderPart
from actors.adapters.wire import as_object, whole_number
from actors.core.data.jsonio import is_array, sanitise
from actors.core.dialects.dialect import Dialect
from actors.core.values.content import Block, Thinking
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage

MAX_KINDS = 64
"""Maximum number of kinds of metadata or of omitted content; also the maximum number of characters in a kind's name."""
_MAX_FIGURE = 10**12  # far above any real figure, and low enough that a session's sums fit into 64 bits


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


def kind_name(kind: str) -> str:
    """Return a provider's name for a kind of content in sanitised, shortened form; "unknown" if it is empty."""
    return sanitise(kind)[:MAX_KINDS] or "unknown"


class TextMetadata:
    """The metadata of one answer's text. Each kind of metadata is stored under the provider's name for it."""

    def __init__(self) -> None:
        self._parts: dict[str, ProviderPart] = {}

    def add(self, name: str, value: object, *, appends: bool) -> None:
        """Record metadata under a name. Ignore empty values, and all further names after `MAX_KINDS` names.

        A value replaces the previous value of this name. With `appends`, a list is appended to the previous list.
        """
        if not value:
            return
        known = self._parts.get(name := kind_name(name))
        if known is None and len(self._parts) == MAX_KINDS:
            return
        if appends and known is not None and is_array(known.value) and is_array(value):
            value = [*known.value, *value]
        self._parts[name] = ProviderPart(name, value, "mark")

    def blocks(self, binding: Binding, origin: Binding) -> list[Block]:
        """Return the metadata as blocks.

        Args:
            binding: The binding that sent the message.
            origin: The binding to record in the blocks' seals.
        """
        blocks = (part.block(binding, origin) for part in self._parts.values())
        return [block for block in blocks if block is not None]


class TokenFigures:
    """The token figures of one answer, by the provider's names. Within a response, the last value of each figure
    counts.
    """

    def __init__(self) -> None:
        self._before = Usage()  # usage of the earlier responses of this answer
        self._figures: dict[str, int] = {}

    def begin_response(self, usage: Usage) -> None:
        """Begin the next response of the answer. `usage` is the usage of the earlier responses."""
        self._before, self._figures = usage, {}

    def discard(self) -> None:
        """Discard the figures of the current response."""
        self._figures = {}

    def update(self, usage: object, usage_fields: Mapping[str, tuple[int, ...]]) -> Usage:
        """Update the figures with those of an event, and return the answer's usage so far.

        A missing or impossible figure keeps its value. `MessageBuilder.update_usage` describes `usage_fields`.
        """
        for name, value in as_object(usage).items():
            figure = whole_number(value) if name in usage_fields else None
            if figure is not None and figure <= _MAX_FIGURE:
                self._figures[name] = figure
        totals = [0, 0, 0, 0]
        for name, figure in self._figures.items():
            for place in usage_fields[name]:
                totals[place] += figure
        return self._before + Usage(*totals)
