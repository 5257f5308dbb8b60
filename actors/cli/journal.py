"""Select the journal that a command uses.

The journal is named by the option `--journal`, else by the environment variable `ACTORS_JOURNAL`, else by the table
`[journal]` in the file of `--config`. If none of them is given, it is a default file in the user's data directory. With
`--no-journal`, nothing is stored. With `--offline`, sessions are stored only in a named journal.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from actors.cli.screen import print_notice
from actors.config import Config
from actors.errors import JournalError
from actors.journal.storage import Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.named import choose_storage, create_storage

_FIX = "name another with --journal FILE"


def conversation_storage(options: argparse.Namespace, config: Config, *, create: bool) -> Storage:
    """Return the storage for a conversation. If the default file cannot be used, print a warning and store nothing.

    Args:
        create: True to create a named file that does not exist. False for a continued conversation, because the name of
            a missing file is then probably mistyped.

    Raises:
        ConfigError: The named journal cannot be used.
        JournalError: The named file does not exist.
    """
    if options.no_journal:
        return MemoryStorage()
    if (storage := _configured_storage(options, config, create=create)) is not None:
        return storage
    path = default_journal_path(os.environ)
    return MemoryStorage() if path is None or options.offline else _default_storage(path)


def stored_sessions(options: argparse.Namespace, config: Config, *, create: bool = False) -> Storage:
    """Return the storage for a command that works on stored sessions.

    Args:
        create: True to create a named file that does not exist.

    Raises:
        ConfigError: The named journal cannot be used.
        JournalError: The named file does not exist, or the journal cannot be used.
    """
    if (storage := _configured_storage(options, config, create=create)) is not None:
        return storage
    path = default_journal_path(os.environ)
    if path is None:
        return MemoryStorage()
    _make_folder(path)
    return create_storage(path)


def named_journal(options: argparse.Namespace) -> str | None:
    """Return the journal that `--journal` or the environment names, or None."""
    return options.journal or os.environ.get("ACTORS_JOURNAL") or None


def default_journal_path(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the default file, or None if there is no home directory or files cannot be locked."""
    if find_spec("fcntl") is None:
        return None
    data = Path(environ.get("XDG_DATA_HOME", ""))
    if data.is_absolute():  # relative paths are invalid, according to the specification of this variable
        return data / "actors" / "sessions.db"
    if not (home := environ.get("HOME")):
        return None
    folder = ("Library", "Application Support") if sys.platform == "darwin" else (".local", "share")
    return Path(home, *folder, "actors", "sessions.db")


def _configured_storage(options: argparse.Namespace, config: Config, *, create: bool) -> Storage | None:
    if (name := named_journal(options)) is not None:
        if not (create or "://" in name or Path(name).exists()):
            raise JournalError(f"{name}: no such file; name an existing journal")
        return create_storage(name)
    settings = config.settings.journal
    return None if settings.path is None and settings.url is None else choose_storage(None, settings)


def _default_storage(path: Path) -> Storage:
    storage = create_storage(path)
    try:
        _make_folder(path)
        storage.open()
    except JournalError as error:
        fix = "" if _FIX in str(error) else f"; {_FIX}"
        print_notice(f"the conversation is not stored: {error}{fix}")
        return MemoryStorage()
    return storage


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise JournalError(f"{path}: cannot create its folder: {reason}; {_FIX}") from error
