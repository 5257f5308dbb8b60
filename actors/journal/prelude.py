"""Events that wait to be written with the next ones of their session, and who is told of them."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from actors.core.log.events import Event

Told: TypeAlias = Callable[[int], None]
"""Called with an event's number when it is durable."""


class Prelude(Struct, frozen=True):
    """Events that are written ahead of others, in the same append, each with who is told of it."""

    events: tuple[Event, ...]
    told: tuple[Told, ...]

    def written(self, last: int) -> None:
        """Tell everybody concerned that it is durable. `last` is the number of the last event."""
        for number, told in enumerate(self.told, last - len(self.told) + 1):
            told(number)
