"""Detect whether a write-ahead log was truncated at its end, or damaged in the middle, and copy a damaged log.

SQLite reads the log up to the first frame with a wrong checksum, and ignores all later frames as left over from a
crash. That is correct if only the last transaction is lost, because that transaction was not acknowledged. But with
durability `power`, a transaction is written only after the previous transaction is on the disk. So if two complete
transactions follow a wrong frame, acknowledged data is lost.

After an interrupted rewrite of the journal, the log may be as long as the journal, so the log is read frame by frame.

With durability `process`, the log is not synced with each commit. A power failure may then damage the log and destroy
its last events, so the journal is opened anyway. SQLite then discards everything after the damage, so the damaged log
is copied before.
"""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from struct import Struct, unpack_from
from typing import NamedTuple

from actors.errors import JournalDamaged
from actors.telemetry import logger

MAX_READINGS = 10
"""Maximum number of times that a log is read while other processes may write to it. Two consecutive readings with the
same defect prove damage.
"""
_SECTOR = 512  # smallest unit that a disk writes atomically
_HEADER, _FRAME = Struct(">8I"), Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)
_PIECE = 1024 * 1024


class _Flaw(NamedTuple):
    """A defect of a write-ahead log.

    Args:
        header: The header of the log, which identifies the log.
        frame: The number of the corrupt frame, counted from 1; 0 if the header is corrupt.
    """

    header: bytes
    frame: int


def check_wal(path: Path) -> None:
    """Check the write-ahead log of the database `path`. No process may write in the meantime.

    Raises:
        JournalDamaged: The log is damaged, and not only at its end.
    """
    if (flaw := _find_flaw(path)) is not None:
        raise _wal_damage(path, flaw)


def check_wal_in_use(path: Path) -> None:
    """Check the write-ahead log of the database `path` while other processes may write.

    The log is read repeatedly, until it has no defect or two consecutive readings find the same defect. A frame that
    another process is writing at the first reading is complete at the next one, or belongs to a new log.

    Raises:
        JournalDamaged: The log is damaged, and not only at its end.
    """
    before = None
    for _ in range(MAX_READINGS):
        flaw = _find_flaw(path)
        if flaw is None:
            return
        if flaw == before:
            raise _wal_damage(path, flaw)
        before = flaw


class WriteAheadLog:
    """The write-ahead log of the database `path`, open for reading. A missing log counts as empty.

    No process may write to the log while it is open.
    """

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
        """Return the position of the newest committed content of each page in the log, by page number.

        Transactions after any damage are ignored. The dict is empty if the pages of the log are not `size` bytes long.
        """
        header = b"" if self._file is None else os.pread(self._file, _HEADER.size, 0)
        if self._file is None or len(header) < _HEADER.size or unpack_from(">I", header, 8)[0] != size:
            return {}
        return _Wal(self._file, header).pages

    def content(self, offset: int, size: int) -> bytes:
        """Return `size` bytes of the log from the position `offset`."""
        return b"" if self._file is None else os.pread(self._file, size, offset)


def _wal_damage(path: Path, flaw: _Flaw) -> JournalDamaged:
    what = (
        f"frame {flaw.frame} is corrupt, but valid frames follow" if flaw.frame else "the header is corrupt"
    )
    return JournalDamaged(f"{path}-wal: {what}; restore a copy, or see `actors sessions fsck`")


def _find_flaw(path: Path) -> _Flaw | None:
    """Return the defect of the write-ahead log of the database `path`; None if the log is intact or missing."""
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
    """A write-ahead log in SQLite's file format, given by the descriptor of the open file and its header."""

    def __init__(self, file: int, header: bytes) -> None:
        self._file = file
        self._page: int
        magic, _, self._page, _, *self._salt, one, two = _HEADER.unpack(header)
        self._order = ">" if magic & 1 else "<"
        self._sums = (one, two)
        self.is_begun = magic in _MAGIC and self._add_checksum((0, 0), header[:24]) == self._sums
        """True if the header is valid."""
        self._frames = (os.fstat(file).st_size - _HEADER.size) // (_FRAME.size + self._page)

    def _add_checksum(self, checksum: tuple[int, int], data: bytes) -> tuple[int, int]:
        """Continue SQLite's checksum with more bytes, and return the new checksum."""
        one, two = checksum
        words = unpack_from(f"{self._order}{len(data) // 4}I", data)
        for at in range(0, len(words), 2):
            one = (one + words[at] + two) & 0xFFFFFFFF
            two = (two + words[at + 1] + one) & 0xFFFFFFFF
        return one, two

    @property
    def lost_frame(self) -> int | None:
        """The number of the corrupt frame, counted from 1, if acknowledged transactions follow it; None otherwise."""
        commits = [place for place in range(self._frames) if self._ends_transaction(place)]
        place, sums = 0, self._sums
        while len(commits) > 1 and place <= commits[-2]:
            if not self._continues(sums, place):
                return place + 1 if self._count_commits_from(place) >= 2 else None
            place, (_, sums) = place + 1, self._frame_header(place) or (0, sums)
        return None

    @property
    def pages(self) -> dict[int, int]:
        """The position of the newest committed content of each page in the log, by page number.

        Transactions after any damage are ignored.
        """
        found, pending = dict[int, int](), dict[int, int]()
        place, sums = 0, self._sums
        while self.is_begun and self._continues(sums, place):
            number, size = _FRAME.unpack(os.pread(self._file, _FRAME.size, self._offset_of(place)))[:2]
            pending[number] = place
            if size:
                found |= pending
                pending.clear()
            place, (_, sums) = place + 1, self._frame_header(place) or (0, sums)
        return {number: self._offset_of(place) + _FRAME.size for number, place in found.items()}

    def _offset_of(self, index: int) -> int:
        """Return the position in the file of the frame with the index `index`, counted from 0."""
        return _HEADER.size + index * (_FRAME.size + self._page)

    def _frame_header(self, index: int) -> tuple[int, tuple[int, int]] | None:
        """Return the database size and the checksum from the header of a frame, or None if the log lacks the frame.

        The size is 0 unless the frame ends a transaction. `index` is the index of the frame, counted from 0.
        """
        found = os.pread(self._file, _FRAME.size, self._offset_of(index))
        if len(found) < _FRAME.size:
            return None
        _, size, *salt, one, two = _FRAME.unpack(found)
        return (size, (one, two)) if salt == self._salt else None

    def _ends_transaction(self, index: int) -> bool:
        """Return True if a frame is the last frame of a transaction."""
        frame = self._frame_header(index)
        return frame is not None and bool(frame[0])

    def _is_in_one_sector(self, index: int) -> bool:
        """Return True if the header of a frame lies in one sector, so that the disk wrote the header atomically.

        Otherwise the field that marks a commit may come from an older frame.
        """
        at = self._offset_of(index)
        return at // _SECTOR == (at + _FRAME.size - 1) // _SECTOR

    def _continues(self, checksum: tuple[int, int], index: int) -> bool:
        """Return True if the frame at `index` is valid. `checksum` is the running checksum of all earlier frames."""
        found = os.pread(self._file, _FRAME.size + self._page, self._offset_of(index))
        if (frame := self._frame_header(index)) is None or len(found) < _FRAME.size + self._page:
            return False
        return frame[1] == self._add_checksum(self._add_checksum(checksum, found[:8]), found[_FRAME.size :])

    def _count_commits_from(self, first_index: int) -> int:
        """Return the highest number of commits in any sequence of valid frames from `first_index` on."""
        most = count = 0
        before: tuple[int, int] | None = None
        for each in range(first_index, self._frames):
            frame = self._frame_header(each)
            if frame is None:
                count, before = 0, None
            else:
                follows = before is not None and self._continues(before, each)
                is_commit = bool(frame[0]) and (follows or self._is_in_one_sector(each))
                count = (count if follows else 0) + is_commit
                before = frame[1]
            most = max(most, count)
        return most


def copy_damaged_log(path: Path, damage: JournalDamaged) -> None:
    """Copy the database `path` and its write-ahead log, and report the location of the copy in the program's log.

    The same damaged log is copied only once. The copy is a regular journal. The command
    `actors sessions fsck COPY --salvage NEW` saves its readable part.

    Raises:
        OSError: The files could not be copied completely.
    """
    log = _sibling_path(path, "-wal")
    copy = _sibling_path(path, f"-damaged-{_file_digest(log)[:12]}")
    for source, target in ((path, copy), (log, _sibling_path(copy, "-wal"))):
        if not target.exists():
            _copy_file(source, target)
    logger.journal_damaged(str(damage), str(copy))


def _sibling_path(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")


def _file_digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file so that only this user can read the copy. An incomplete copy has a temporary name."""
    part = _sibling_path(target, "-part")
    with source.open("rb") as before, open(part, "wb", opener=_open_private_file) as after:
        copyfileobj(before, after, _PIECE)
        after.flush()
        os.fsync(after.fileno())
    part.rename(target)


def _open_private_file(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
