"""The log in memory: for tests, for one-shot use, and as the plainest statement of the interface.

Nothing survives the process, and within it nothing is dropped: the logs of closed sessions stay. Records
stay as segments, so they share the content's pieces with the histories that hold them.
"""

from collections.abc import Sequence

from actors.storage import Entry, Record


class MemoryStorage:
    """Logs in a dict."""

    blocking = False

    def __init__(self) -> None:
        self._logs: dict[str, list[Record]] = {}

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Append all entries."""
        numbers: list[int] = []
        for entry in entries:
            log = self._logs.setdefault(entry.session, [])
            log.extend(entry.records)
            numbers.append(len(log))
        return numbers

    def read(self, session: str, after: int = 0) -> list[bytes]:
        """Return a session's records past number `after`, joined."""
        return [b"".join(record) for record in self._logs.get(session, [])[after:]]

    def sessions(self) -> list[str]:
        """Return the ids of all sessions, oldest first."""
        return list(self._logs)
