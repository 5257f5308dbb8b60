"""Define the result of a deletion: the deleted sessions, and any of their data that is not removed yet."""

from msgspec import Struct


class RemainingData(Struct, frozen=True):
    """Data of deleted sessions that a storage still contains.

    Args:
        place: The file or database table that contains the data.
        reason: Why the data is still there, and how to remove it.
        bytes: Size of the file or table; None if unknown.
        is_temporary: Whether a later attempt may succeed, after a reader has finished or an outage has ended.
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
        sessions: Ids of the deleted sessions, subagents included. After a dry run, the ids of sessions that would be
            deleted.
        remaining: Data of deleted sessions that the journal's storage still contains; empty if all data is gone.
    """

    sessions: tuple[str, ...]
    remaining: tuple[RemainingData, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if the journal's storage contains no data of the deleted sessions any more."""
        return not self.remaining
