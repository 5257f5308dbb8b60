"""Where a command keeps conversations: a file of the user's, unless something else is named.

In this order: `--journal`, `ACTORS_JOURNAL`, the `[journal]` of `--config`, and a file under the user's data directory.
`--no-journal` keeps nothing, and neither does a stand-in (`--offline`), unless a journal is named.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from actors.cli.screen import complain
from actors.config import Config
from actors.errors import JournalError
from actors.journal.storage import Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.named import storage_at, storage_for

ELSEWHERE = "--journal FILE names another place"
"""What can be done where the user's own file cannot be used."""


def journal(options: argparse.Namespace, config: Config, *, makes: bool = True) -> Storage:
    """Return the journal of a conversation. If the user's own file cannot be used, they are told, and nothing is kept.

    `makes`: see `kept`.

    Raises:
        ConfigError: What is named cannot be used.
        JournalError: There is no such file.
    """
    if options.no_journal:
        return MemoryStorage()
    if (found := named(options)) is not None:
        return _at(found, makes=makes)
    settings = config.settings.journal
    if settings.path is not None or settings.url is not None:
        return storage_for(None, settings)
    path = default(os.environ)
    if path is None or getattr(options, "offline", False):
        return MemoryStorage()
    return _own(path)


def kept(options: argparse.Namespace, config: Config, *, makes: bool = False) -> Storage:
    """Return the journal that a command works on which is about what is kept there.

    `makes`: a file that is named and not there is made. Else its name is most likely mistyped.

    Raises:
        ConfigError: What is named cannot be used.
        JournalError: There is no such file, or it cannot be used.
    """
    if (found := named(options)) is not None:
        return _at(found, makes=makes)
    settings = config.settings.journal
    if settings.path is not None or settings.url is not None:
        return storage_for(None, settings)
    path = default(os.environ)
    if path is None:
        return MemoryStorage()
    _make_folder(path)
    return storage_at(path)


def named(options: argparse.Namespace) -> str | None:
    """Return what the user named."""
    found: str | None = options.journal or os.environ.get("ACTORS_JOURNAL")
    return found or None


def default(environ: Mapping[str, str]) -> Path | None:
    """Return the user's own file; None where there is no place for it, or files cannot be locked."""
    if find_spec("fcntl") is None:
        return None
    if data := environ.get("XDG_DATA_HOME"):
        return Path(data, "actors", "sessions.db")
    if not (home := environ.get("HOME")):
        return None
    place = ("Library", "Application Support") if sys.platform == "darwin" else (".local", "share")
    return Path(home, *place, "actors", "sessions.db")


def _at(found: str, *, makes: bool) -> Storage:
    if not (makes or "://" in found or Path(found).exists()):
        raise JournalError(f"{found}: there is no such file; name a journal")
    return storage_at(found)


def _own(path: Path) -> Storage:
    storage = storage_at(path)
    try:
        _make_folder(path)
        storage.open()
    except JournalError as error:
        other = "" if ELSEWHERE in str(error) else f"; {ELSEWHERE}"
        complain(f"nothing of this conversation is kept: {error}{other}")
        return MemoryStorage()
    return storage


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise JournalError(f"{path}: its folder cannot be made, {why}; {ELSEWHERE}") from error
