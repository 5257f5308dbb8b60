"""Count the bytes that sessions hold in memory, updated at each change.

Each of a session's actors counts its own part: the session its messages, the ledger its calls, the renderer its
lanes. The host counts the actor objects. So the total of all sessions is always known, and reading it is free.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

Part: TypeAlias = Literal["messages", "calls", "lanes", "objects"]


class HeldBytes(Struct, gc=False):
    """The memory use of all sessions of a runtime."""

    total: int = 0


class MemoryUse(Struct, gc=False):
    """The memory use of one session. `everyone` is the total that includes it."""

    everyone: HeldBytes
    messages: int = 0
    calls: int = 0
    lanes: int = 0
    objects: int = 0

    def count(self, part: Part, size: int) -> None:
        """Record the current size of a part, in bytes."""
        self.everyone.total += size - getattr(self, part)
        setattr(self, part, size)

    @property
    def total(self) -> int:
        """The sum of all parts, in bytes."""
        return self.messages + self.calls + self.lanes + self.objects

    def release(self) -> None:
        """Record that the session holds nothing any more."""
        self.everyone.total -= self.total
        self.messages = self.calls = self.lanes = self.objects = 0
