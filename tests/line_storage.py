"""A durable journal for tests: one fsynced line a record in one file. Small on purpose; the real ones come later."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from actors.storage import Entry


class LineStorage:
    """Logs in a file of lines. `crossing` is called at every step of an append, so that a test can die there."""

    blocking = False

    def __init__(self, path: Path, crossing: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._crossing = crossing
        self._counts: dict[str, int] = {}

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Append all entries and return each one's last number, once they are on the disk."""
        self._crossing()
        with self._path.open("ab") as file:
            for entry in entries:
                for record in entry.records:
                    line = json.dumps({"session": entry.session, "record": b"".join(record).decode()})
                    file.write(line.encode() + b"\n")
            file.flush()
            self._crossing()
            os.fsync(file.fileno())
        self._crossing()
        for entry in entries:
            self._counts[entry.session] = self._counts.get(entry.session, 0) + len(entry.records)
        return [self._counts[entry.session] for entry in entries]

    def read(self, session: str, after: int = 0) -> list[bytes]:
        """Return the whole records of a session; a torn last line is not a record."""
        if not self._path.exists():
            return []
        lines = self._path.read_bytes().split(b"\n")[:-1]
        records = [json.loads(line) for line in lines]
        return [item["record"].encode() for item in records if item["session"] == session][after:]

    def erase(self, session: str) -> None:
        """Leave the session's records out of the file."""
        kept = [
            line
            for line in self._path.read_bytes().split(b"\n")
            if line and json.loads(line)["session"] != session
        ]
        self._path.write_bytes(b"".join(line + b"\n" for line in kept))
        self._counts.pop(session, None)

    def sessions(self) -> list[str]:
        """Return the ids of all sessions."""
        return list(self._counts)
