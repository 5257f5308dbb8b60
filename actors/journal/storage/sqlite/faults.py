"""Translate the errors of SQLite and of the operating system, by one table."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from actors.errors import JournalDamaged, JournalUnavailable
from actors.journal.storage.sqlite.locks import writer_of

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "the disk is full; make room",
    sqlite3.SQLITE_BUSY: "it is locked by another program{holder}; end that",
    sqlite3.SQLITE_LOCKED: "it is locked by another program{holder}; end that",
    sqlite3.SQLITE_READONLY: "it is read-only; make it writable",
    sqlite3.SQLITE_IOERR: "its disk fails; see the system's log",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; does its folder exist, and may this user write there?",
    sqlite3.SQLITE_PERM: "this user may not use it; change its permissions",
    sqlite3.SQLITE_AUTH: "this user may not use it; change its permissions",
    sqlite3.SQLITE_NOMEM: "memory is exhausted",
    sqlite3.SQLITE_PROTOCOL: "it is locked by another program{holder}; end that",
    sqlite3.SQLITE_INTERRUPT: "it was interrupted",
}
"""By SQLite's primary result code."""


def _holder(path: str) -> str:
    return "" if (found := writer_of(Path(path))) is None else f" (pid {found})"


_ASKED: dict[type[OSError], str] = {
    FileNotFoundError: "; is its folder there?",
    PermissionError: "; may this user write to it, to its folder, and to those beside it (-lock, -wal, -shm)?",
}
"""What is asked behind an error of the operating system."""


@contextmanager
def translate_errors(path: str) -> Generator[None]:
    """Translate errors of SQLite and the operating system into errors of this package."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a bug of ours
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:  # Python's own: an invalid string, which the message quotes
            raise JournalDamaged(
                f"{path}: a text has changed; restore a copy, or see `actors sessions fsck`"
            ) from None
        code &= 0xFF
        if (why := _UNAVAILABLE.get(code)) is not None:
            raise JournalUnavailable(
                f"{path}: {why.format(holder=_holder(path))} (SQLite: {error})"
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise JournalDamaged(
                f"{path}: it is not a journal, or its beginning has changed; name another file, restore a copy, "
                "or see `actors sessions fsck`"
            ) from error
        raise JournalDamaged(f"{path}: {error}; restore a copy, or see `actors sessions fsck`") from error
    except UnicodeError as error:  # in a message of SQLite, which quotes a name
        raise JournalDamaged(
            f"{path}: its schema has changed; restore a copy, or see `actors sessions fsck`"
        ) from error
    except OSError as error:
        why = next((ask for kind, ask in _ASKED.items() if isinstance(error, kind)), "")
        raise JournalUnavailable(f"{path}: {error.strerror or error}; nothing was written{why}") from error
