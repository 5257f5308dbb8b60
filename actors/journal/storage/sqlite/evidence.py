"""Keep a copy of a damaged write-ahead log before SQLite opens the journal and drops what follows the damage.

A log that is not synced with each commit (durability `process`) may be damaged by a power failure and lose its last
events, so the journal is opened nevertheless. Everything after the damage is then only in the copy.
"""

import os
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj

from actors.errors import JournalDamaged
from actors.telemetry import logger

_PIECE = 1024 * 1024


def keep_evidence(path: Path, damage: JournalDamaged) -> None:
    """Copy the database `path` and its write-ahead log, once per damage, and log the location of the copy.

    The copy is a regular journal: `actors sessions fsck COPY --salvage NEW` saves its readable part.

    Raises:
        OSError: There is no complete copy.
    """
    log = _sibling(path, "-wal")
    copy = _sibling(path, f"-damaged-{_digest(log)[:12]}")
    for source, target in ((path, copy), (log, _sibling(copy, "-wal"))):
        if not target.exists():
            _copy(source, target)
    logger.journal_damaged(str(damage), str(copy))


def _sibling(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _copy(source: Path, target: Path) -> None:
    """Copy a file, readable by this user only. It gets its name when it is complete."""
    part = _sibling(target, "-part")
    with source.open("rb") as before, open(part, "wb", opener=_private) as after:
        copyfileobj(before, after, _PIECE)
        after.flush()
        os.fsync(after.fileno())
    part.rename(target)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
