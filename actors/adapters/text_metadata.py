"""Collect the metadata of an answer's text, such as citations.

The decoders add metadata through `actors.adapters.assembly`. The metadata becomes blocks at the end of the answer's
message.
"""

from actors.adapters.partial import ProviderPart
from actors.core.data.jsonio import is_array, sanitise
from actors.core.values.content import Block
from actors.core.values.identity import Binding

MAX_KINDS = 64
"""Maximum number of kinds of metadata or omitted content. Also the maximum number of characters in a kind's name."""


def kind_name(kind: str) -> str:
    """Return a provider's name for a kind of content in sanitised, shortened form; "unknown" if it is empty."""
    return sanitise(kind)[:MAX_KINDS] or "unknown"


class TextMetadata:
    """The metadata of one answer's text. Each kind of metadata is stored under the provider's name for it."""

    def __init__(self) -> None:
        self._parts: dict[str, ProviderPart] = {}

    def add(self, name: str, value: object, *, appends: bool) -> None:
        """Record metadata under a name. Ignore an empty value, and new names after `MAX_KINDS` names.

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
