"""Whether a write-ahead log was cut off, or damaged in its midst.

SQLite reads it up to the first frame whose checksum is wrong, and takes what follows for what a crash left behind. That
is right for the last transaction, which nobody was told of. But each transaction is written when the one before it is
on the disk (at level `power`), so if there are two whole ones from the wrong frame on, what was told is lost.
"""

from pathlib import Path
from struct import Struct, unpack_from

from actors.errors import JournalDamaged

_HEADER, _FRAME = Struct(">8I"), Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)


def check_wal(path: Path) -> None:
    """Look at the write-ahead log of the database `path`. Nobody may write meanwhile.

    Raises:
        JournalDamaged: It is damaged elsewhere than at its end.
    """
    wal = path.with_name(f"{path.name}-wal")
    data = wal.read_bytes() if wal.exists() else b""
    if len(data) <= _HEADER.size:
        return
    log = _Wal(data)
    if not log.is_begun:
        raise JournalDamaged(f"{wal}: its beginning has changed; restore a copy, or see `actors fsck`")
    if (place := log.lost) is not None:
        raise JournalDamaged(
            f"{wal}: frame {place} has changed, and whole ones follow; restore a copy, or see `actors fsck`"
        )


class _Wal:
    """A write-ahead log, as SQLite's file format says."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        magic, _, self._page, _, *self._salt, one, two = _HEADER.unpack_from(data)
        self._order = ">" if magic & 1 else "<"
        self._sums = (one, two)
        self.is_begun = magic in _MAGIC and self._summed((0, 0), data[:24]) == self._sums
        """Whether its header is as it was written."""

    def _summed(self, sums: tuple[int, int], part: bytes) -> tuple[int, int]:
        one, two = sums
        words = unpack_from(f"{self._order}{len(part) // 4}I", part)
        for at in range(0, len(words), 2):
            one = (one + words[at] + two) & 0xFFFFFFFF
            two = (two + words[at + 1] + one) & 0xFFFFFFFF
        return one, two

    @property
    def lost(self) -> int | None:
        """The number of the frame that has changed, if transactions that were told follow; None if none do."""
        place, sums = 0, self._sums
        while (frame := self._frame(place)) is not None and self._goes_on(sums, place):
            place, sums = place + 1, frame[1]
        return place + 1 if self._commits_from(place) >= 2 else None

    def _frame(self, place: int) -> tuple[int, tuple[int, int]] | None:
        """Return the size that a frame commits (0 if it does not), and its checksum; None if there is none."""
        at = _HEADER.size + place * (_FRAME.size + self._page)
        if at + _FRAME.size + self._page > len(self._data):
            return None
        _, size, *salt, one, two = _FRAME.unpack_from(self._data, at)
        return (size, (one, two)) if salt == self._salt else None

    def _goes_on(self, sums: tuple[int, int], place: int) -> bool:
        """Say whether a frame's checksum is right behind one of these sums."""
        at = _HEADER.size + place * (_FRAME.size + self._page)
        body = at + _FRAME.size
        frame = self._frame(place)
        first = self._summed(sums, self._data[at : at + 8])
        return frame is not None and frame[1] == self._summed(first, self._data[body : body + self._page])

    def _commits_from(self, place: int) -> int:
        """Return how many commits follow from a frame on in the most frames that were written one after the other."""
        most = count = 0
        before: tuple[int, int] | None = None
        while place * (_FRAME.size + self._page) < len(self._data):
            frame = self._frame(place)
            if frame is None:
                count, before = 0, None
            else:
                follows = before is not None and self._goes_on(before, place)
                count = (count if follows else 0) + bool(frame[0])
                before = frame[1]
            most, place = max(most, count), place + 1
        return most
