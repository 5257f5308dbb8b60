"""Detect whether a write-ahead log was cut off at its end, or damaged in the middle.

SQLite reads it up to the first frame with a wrong checksum, and treats the rest as remains of a crash. That is
correct for the last transaction, which was not acknowledged. But a transaction is written only after the previous one
is on the disk (durability `power`), so if two complete transactions follow the wrong frame, acknowledged data is lost.

The log may be as long as the journal, if a crash interrupted a rewrite, so it is read in frames.
"""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from struct import Struct, unpack_from
from typing import NamedTuple

from actors.errors import JournalDamaged

LOOKS = 10
"""At a log that others write, until two in a row find the same."""
_SECTOR = 512  # smallest unit that a disk writes atomically
_HEADER, _FRAME = Struct(">8I"), Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)


class _Flaw(NamedTuple):
    """A defect: the number of the frame, or 0 for the beginning, of the log that begins with `header`."""

    header: bytes
    frame: int


def check_wal(path: Path) -> None:
    """Check the write-ahead log of the database `path`. Writers must be excluded.

    Raises:
        JournalDamaged: It is damaged elsewhere than at its end.
    """
    if (flaw := _flaw(path)) is not None:
        raise _wal_damage(path, flaw)


def check_wal_in_use(path: Path) -> None:
    """Check the write-ahead log of the database `path` while others may write.

    A frame that was incomplete at the first reading is complete, or in a new log, at the second.

    Raises:
        JournalDamaged: It is damaged elsewhere than at its end.
    """
    before = None
    for _ in range(LOOKS):
        flaw = _flaw(path)
        if flaw is None:
            return
        if flaw == before:
            raise _wal_damage(path, flaw)
        before = flaw


class WriteAheadLog:
    """The write-ahead log of the database `path`, open for reading while writers are excluded; empty if missing."""

    def __init__(self, path: Path) -> None:
        self._open = ExitStack()
        self._file: int | None = None
        with suppress(FileNotFoundError):
            self._file = self._open.enter_context(_open_wal(path.with_name(f"{path.name}-wal")))

    def __enter__(self) -> "WriteAheadLog":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def committed_pages(self, size: int) -> dict[int, int]:
        """Return the places of its pages in the file, by page number, up to any damage.

        The result is empty if its pages are not `size` bytes long.
        """
        header = b"" if self._file is None else os.pread(self._file, _HEADER.size, 0)
        if self._file is None or len(header) < _HEADER.size or unpack_from(">I", header, 8)[0] != size:
            return {}
        return _Wal(self._file, header).pages

    def content(self, place: int, size: int) -> bytes:
        """Return the page at a place."""
        return b"" if self._file is None else os.pread(self._file, size, place)


def _wal_damage(path: Path, flaw: _Flaw) -> JournalDamaged:
    what = (
        f"frame {flaw.frame} has changed, and whole ones follow"
        if flaw.frame
        else "its beginning has changed"
    )
    return JournalDamaged(f"{path}-wal: {what}; restore a copy, or see `actors sessions fsck`")


def _flaw(path: Path) -> _Flaw | None:
    with suppress(FileNotFoundError), _open_wal(path.with_name(f"{path.name}-wal")) as file:
        header = os.pread(file, _HEADER.size, 0)
        if os.fstat(file).st_size <= _HEADER.size or len(header) < _HEADER.size:
            return None
        log = _Wal(file, header)
        place = log.lost_frame if log.is_begun else 0
        return None if place is None else _Flaw(header, place)
    return None


@contextmanager
def _open_wal(path: Path) -> Generator[int]:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


class _Wal:
    """A write-ahead log in SQLite's file format, in an open file that begins with `header`."""

    def __init__(self, file: int, header: bytes) -> None:
        self._file = file
        self._page: int
        magic, _, self._page, _, *self._salt, one, two = _HEADER.unpack(header)
        self._order = ">" if magic & 1 else "<"
        self._sums = (one, two)
        self.is_begun = magic in _MAGIC and self._add_checksum((0, 0), header[:24]) == self._sums
        """True if its header is as it was written."""
        self._frames = (os.fstat(file).st_size - _HEADER.size) // (_FRAME.size + self._page)

    def _add_checksum(self, sums: tuple[int, int], part: bytes) -> tuple[int, int]:
        one, two = sums
        words = unpack_from(f"{self._order}{len(part) // 4}I", part)
        for at in range(0, len(words), 2):
            one = (one + words[at] + two) & 0xFFFFFFFF
            two = (two + words[at + 1] + one) & 0xFFFFFFFF
        return one, two

    @property
    def lost_frame(self) -> int | None:
        """The number of the altered frame if acknowledged transactions follow it; None otherwise."""
        commits = [place for place in range(self._frames) if self._commits(place)]
        place, sums = 0, self._sums
        while len(commits) > 1 and place <= commits[-2]:
            if not self._goes_on(sums, place):
                return place + 1 if self._commits_from(place) >= 2 else None
            place, (_, sums) = place + 1, self._frame(place) or (0, sums)
        return None

    @property
    def pages(self) -> dict[int, int]:
        """The place of the newest content of each page, by number, in the transactions before any damage."""
        found, pending = dict[int, int](), dict[int, int]()
        place, sums = 0, self._sums
        while self.is_begun and self._goes_on(sums, place):
            number, size = _FRAME.unpack(os.pread(self._file, _FRAME.size, self._offset_of(place)))[:2]
            pending[number] = place
            if size:
                found |= pending
                pending.clear()
            place, (_, sums) = place + 1, self._frame(place) or (0, sums)
        return {number: self._offset_of(place) + _FRAME.size for number, place in found.items()}

    def _offset_of(self, place: int) -> int:
        return _HEADER.size + place * (_FRAME.size + self._page)

    def _frame(self, place: int) -> tuple[int, tuple[int, int]] | None:
        """Return the size that a frame commits (0 if none), and its checksum; None without a frame."""
        found = os.pread(self._file, _FRAME.size, self._offset_of(place))
        if len(found) < _FRAME.size:
            return None
        _, size, *salt, one, two = _FRAME.unpack(found)
        return (size, (one, two)) if salt == self._salt else None

    def _commits(self, place: int) -> bool:
        """Return True if a frame is the last one of a transaction."""
        frame = self._frame(place)
        return frame is not None and bool(frame[0])

    def _is_in_one_sector(self, place: int) -> bool:
        """Return True if a frame header was written atomically; otherwise its commit field may be an older frame's."""
        at = self._offset_of(place)
        return at // _SECTOR == (at + _FRAME.size - 1) // _SECTOR

    def _goes_on(self, sums: tuple[int, int], place: int) -> bool:
        """Return True if a frame's checksum continues one of these sums."""
        found = os.pread(self._file, _FRAME.size + self._page, self._offset_of(place))
        if (frame := self._frame(place)) is None or len(found) < _FRAME.size + self._page:
            return False
        return frame[1] == self._add_checksum(self._add_checksum(sums, found[:8]), found[_FRAME.size :])

    def _commits_from(self, place: int) -> int:
        """Return the number of commits in the longest valid sequence of frames from a frame on."""
        most = count = 0
        before: tuple[int, int] | None = None
        for each in range(place, self._frames):
            frame = self._frame(each)
            if frame is None:
                count, before = 0, None
            else:
                follows = before is not None and self._goes_on(before, each)
                is_commit = bool(frame[0]) and (follows or self._is_in_one_sector(each))
                count = (count if follows else 0) + is_commit
                before = frame[1]
            most = max(most, count)
        return most
