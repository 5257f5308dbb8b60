"""Copy a damaged write-ahead log before SQLite opens the journal and discards everything after the damage.

With durability `process`, the log is not synced with each commit. A power failure may then damage the log and destroy
its last events, so the journal is opened anyway. Everything after the damage then survives only in the copy.
"""

import os
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj

from actors.errors import JournalDamaged
from actors.telemetry import logger

_PIECE = 1024 * 1024


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
