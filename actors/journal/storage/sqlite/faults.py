"""Translate SQLite errors and operating-system errors into this package's errors."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from actors.errors import JournalDamaged, JournalUnavailable
from actors.journal.storage.sqlite.locks import find_writer

_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_BUSY: "it is locked by another program{holder}; end that program",
    sqlite3.SQLITE_LOCKED: "it is locked by another program{holder}; end that program",
    sqlite3.SQLITE_READONLY: "it is read-only; make it writable",
    sqlite3.SQLITE_IOERR: "its disk fails; see the system log",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that its folder exists and that this user may write there",
    sqlite3.SQLITE_PERM: "this user may not access it; change its permissions",
    sqlite3.SQLITE_AUTH: "this user may not access it; change its permissions",
    sqlite3.SQLITE_NOMEM: "memory is exhausted; free some memory",
    sqlite3.SQLITE_PROTOCOL: "it is locked by another program{holder}; end that program",
    sqlite3.SQLITE_INTERRUPT: "the operation was interrupted; try again",
}
"""The message for each primary result code of SQLite. The subject "it" is the file, which begins the message."""


def _describe_holder(path: str) -> str:
    return "" if (found := find_writer(Path(path))) is None else f" (pid {found})"


_ADVICE: dict[type[OSError], str] = {
    FileNotFoundError: "; check that its folder exists",
    PermissionError: "; check that this user may write to it, to its folder, and to its -lock, -wal and -shm files",
}
"""The advice at the end of the message for an operating-system error."""


@contextmanager
def translate_errors(path: str) -> Generator[None]:
    """Translate SQLite errors and operating-system errors into this package's errors."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a bug in this package
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        # For invalid UTF-8, Python raises an error without a code. The error is not chained, because it quotes content.
        if code is None:
            raise JournalDamaged(
                f"{path}: a stored string is corrupt; restore a copy, or see `actors sessions fsck`"
            ) from None
        code &= 0xFF
        if (why := _UNAVAILABLE.get(code)) is not None:
            raise JournalUnavailable(
                f"{path}: {why.format(holder=_describe_holder(path))} (SQLite: {error})"
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise JournalDamaged(
                f"{path}: it is not a journal, or its header is corrupt; pass the path of a journal, restore a copy, "
                "or see `actors sessions fsck`"
            ) from error
        raise JournalDamaged(f"{path}: {error}; restore a copy, or see `actors sessions fsck`") from error
    except UnicodeDecodeError as error:  # SQLite's error message contains a corrupt name
        raise JournalDamaged(
            f"{path}: its schema is corrupt; restore a copy, or see `actors sessions fsck`"
        ) from error
    except OSError as error:
        why = next((advice for kind, advice in _ADVICE.items() if isinstance(error, kind)), "")
        raise JournalUnavailable(f"{path}: {error.strerror or error}; nothing was written{why}") from error
