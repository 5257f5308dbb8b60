"""The log in memory: for tests, for one-shot use, and as the plainest statement of the interface.

Nothing survives the process. Within it the logs of closed sessions stay until they are erased. Events are kept as they
are, so messages are shared with the histories that hold them, and results with the ledgers.
"""

from collections.abc import Sequence

from actors.core.chunked import EMPTY, ChunkedVector, appended, from_index, item_count
from actors.core.events import Event
from actors.storage import Entry


class MemoryStorage:
    """Logs in a dict."""

    blocking = False

    def __init__(self) -> None:
        self._logs: dict[str, ChunkedVector[Event]] = {}

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Append all entries."""
        numbers: list[int] = []
        for entry in entries:
            log = appended(self._logs.get(entry.session, EMPTY), entry.events)
            self._logs[entry.session] = log
            numbers.append(item_count(log))
        return numbers

    def read(self, session: str, after: int = 0) -> list[Event]:
        """Return a session's events past number `after`."""
        return list(from_index(self._logs.get(session, EMPTY), after))

    def erase(self, session: str) -> None:
        """Drop a session's log."""
        self._logs.pop(session, None)

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, oldest first."""
        return list(self._logs)
