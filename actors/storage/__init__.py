"""Where logs are kept: the interface that journal backends implement.

A log is a sequence of records a session, numbered from 1 without gaps. A record is the bytes of one event; any byte
may be in it, so who writes records into a file says how long each is. One writer, the journal actor, appends; anyone
may read.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from actors.core.codec import encode_event
from actors.core.events import Event


class Entry(Struct, frozen=True):
    """Events of one session, to be appended in this order."""

    session: str
    events: tuple[Event, ...]

    @property
    def records(self) -> tuple[bytes, ...]:
        """The events as a log holds them. Encoded at each read, so read it once."""
        return tuple(map(encode_event, self.events))


class Storage(Protocol):
    """A journal backend. Methods may block; the journal actor decides where they run."""

    blocking: bool
    """Whether `append` may block, and so belongs in a thread."""

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Append all entries or none, durably.

        Returns:
            For each entry, the number of its last record.

        Raises:
            JournalError: Nothing was appended.
        """

    def read(self, session: str, after: int = 0) -> list[bytes]:
        """Return a session's records past number `after`, oldest first; empty for an unknown one."""

    def erase(self, session: str) -> None:
        """Erase a session's log, durably. Nothing happens if there is none.

        Raises:
            JournalError: Nothing was erased.
        """

    def sessions(self) -> list[str]:
        """Return the ids of all sessions that have records, oldest first."""
