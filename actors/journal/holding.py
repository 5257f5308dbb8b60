"""Holding: the bytes that sessions hold in memory, counted where they change.

Each of a session's actors counts what it owns: the session its messages, the ledger its calls, the renderer its lanes.
The host counts the objects that they are.
So the sum of all sessions is known at any moment, and asking for it costs nothing.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

Part: TypeAlias = Literal["messages", "calls", "lanes", "objects"]


class HeldBytes(Struct, gc=False):
    """What all sessions of a runtime hold."""

    total: int = 0


class MemoryUse(Struct, gc=False):
    """What one session holds. `everyone`: of which this is a part."""

    everyone: HeldBytes
    messages: int = 0
    calls: int = 0
    lanes: int = 0
    objects: int = 0

    def count(self, part: Part, size: int) -> None:
        """Note how large a part is now."""
        self.everyone.total += size - getattr(self, part)
        setattr(self, part, size)

    @property
    def total(self) -> int:
        """All parts."""
        return self.messages + self.calls + self.lanes + self.objects

    def release(self) -> None:
        """Note that nothing is held any more."""
        self.everyone.total -= self.total
        self.messages = self.calls = self.lanes = self.objects = 0
