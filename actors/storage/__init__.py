"""Where logs are kept: the interface that journal backends implement.

A log is a sequence of a session's events, numbered from 1 without gaps. A storage that outlives the process keeps them
as records: the bytes of one event each. Any byte may be in one, so who writes records into a file says how long each
is. One writer, the journal actor, appends; anyone may read.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from actors.core.codec import decode_event, encode_event
from actors.core.events import Event
from actors.errors import JournalError


class Entry(Struct, frozen=True):
    """Events of one session, to be appended in this order."""

    session: str
    events: tuple[Event, ...]

    @property
    def records(self) -> tuple[bytes, ...]:
        """The events as records. Encoded at each read, so read it once."""
        return tuple(map(encode_event, self.events))


def decoded(session: str, records: Iterable[bytes], after: int = 0) -> list[Event]:
    """Return the events of a session's records past number `after`.

    Raises:
        JournalError: A record is not an event; the error says which.
    """
    events: list[Event] = []
    for number, record in enumerate(records, after + 1):
        try:
            events.append(decode_event(record))
        except JournalError as error:
            raise JournalError(f"Session {session!r}, record {number}: {error}") from error
    return events


class Storage(Protocol):
    """A journal backend. The journal actor decides where its methods run."""

    blocking: bool
    """Whether its methods may block, and so belong in a thread."""

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Append all entries or none, durably.

        Returns:
            For each entry, the number of its last event.

        Raises:
            JournalError: Nothing was appended.
        """

    def read(self, session: str, after: int = 0) -> list[Event]:
        """Return a session's events past number `after`, oldest first; empty for an unknown one.

        Raises:
            JournalError: A record is not an event (`decoded`).
        """

    def erase(self, session: str) -> None:
        """Erase a session's log, durably. Nothing happens if there is none.

        Raises:
            JournalError: Nothing was erased.
        """

    def sessions(self) -> list[str]:
        """Return the ids of all sessions that have a log, oldest first."""
