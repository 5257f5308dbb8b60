"""Events that a session writes together with its next ones."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from actors.core.log.events import Event

Told: TypeAlias = Callable[[int], None]
"""Called with an event's number when it is durable."""


class Prelude(Struct, frozen=True):
    """Events that are written before others, in the same append, each with its callback."""

    events: tuple[Event, ...]
    told: tuple[Told | None, ...]

    def written(self, last: int) -> None:
        """Call the callbacks. `last` is the number of the last event."""
        for number, told in enumerate(self.told, last - len(self.told) + 1):
            if told is not None:
                told(number)
