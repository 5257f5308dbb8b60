"""Count the bytes that sessions occupy in memory, and update the counts with each change.

Each actor of a session counts its own data: the session actor its messages, the ledger its calls, the renderer its
lanes. The host counts the actor objects themselves. So the sum over all sessions is always known, and need not be
computed.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

SizeCategory: TypeAlias = Literal["messages", "calls", "lanes", "objects"]


class TotalMemory(Struct, gc=False):
    """The memory that all sessions of a runtime use together, in bytes."""

    total: int = 0


class MemoryUse(Struct, gc=False):
    """The memory use of one session, in bytes.

    `runtime_total` is the sum over all sessions of the runtime. Each change of a session's sizes updates the sum.
    """

    runtime_total: TotalMemory
    messages: int = 0
    calls: int = 0
    lanes: int = 0
    objects: int = 0

    def record_size(self, category: SizeCategory, size: int) -> None:
        """Set the current size of one category of data, in bytes."""
        self.runtime_total.total += size - getattr(self, category)
        setattr(self, category, size)

    @property
    def total(self) -> int:
        """The session's memory use over all categories, in bytes."""
        return self.messages + self.calls + self.lanes + self.objects

    def release(self) -> None:
        """Set every size to 0, after the session's actors were removed from memory."""
        self.runtime_total.total -= self.total
        self.messages = self.calls = self.lanes = self.objects = 0
