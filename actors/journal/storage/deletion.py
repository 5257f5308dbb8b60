"""Define the report of a deletion: the sessions, and their data that a storage could not remove yet."""

from msgspec import Struct


class RemainingData(Struct, frozen=True):
    """Data of deleted sessions that is still in a storage.

    Args:
        place: A file, or a table of a database.
        reason: Why it is still there, and how to remove it.
        bytes: The size of the place; None if it is not known.
        is_temporary: Whether another attempt may remove the data: a reader of the place, or an outage, has ended then.
    """

    place: str
    reason: str
    bytes: int | None = None
    is_temporary: bool = False

    def __str__(self) -> str:
        size = "" if self.bytes is None else f" ({self.bytes:,} bytes)"
        return f"{self.place}{size}: {self.reason}"


class Deletion(Struct, frozen=True):
    """The outcome of `JournalAdmin.delete`.

    Args:
        sessions: Ids of the deleted sessions, subagents included. After a dry run, of those that would be deleted.
        remaining: Data of deleted sessions that is still in the journal's storage; empty if all of it is gone.
    """

    sessions: tuple[str, ...]
    remaining: tuple[RemainingData, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if no data of the deleted sessions is left in the journal's storage."""
        return not self.remaining
