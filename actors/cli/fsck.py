"""`actors fsck`: what is whole in a journal's file, and what is not; and what is whole, saved to a new one."""

import argparse
import json
from contextlib import closing
from pathlib import Path

from actors.cli.exits import Exit
from actors.cli.screen import complain, safe
from actors.errors import ConfigError, JournalError
from actors.storage.sqlite import SqliteStorage
from actors.storage.sqlite.check import Damage, JournalFile, salvage


def main(options: argparse.Namespace) -> Exit:
    """Print what is damaged, one line each, and what is whole.

    Raises:
        ConfigError: It is not a file that is named.
        JournalError: The file is no journal, or cannot be read at all.
    """
    if "://" in options.file:  # which may hold a password
        raise ConfigError("fsck looks at a file; for a Postgres journal ask its server, as by pg_amcheck")
    path = Path(options.file)
    with closing(JournalFile(path)) as file:
        damage = list(file.damage())
        whole = {"sessions": file.sessions, "records": file.records, "blobs": file.blobs}
    if options.json:
        print(json.dumps({"damage": [_fields(each) for each in damage], "whole": whole}))
    else:
        for each in damage:
            print(safe(each.what))
        print(safe(f"{path}: whole are " + ", ".join(f"{count:,} {name}" for name, count in whole.items())))
    if options.salvage:
        _save(path, Path(options.salvage))
    elif damage:
        complain(f"{path} is damaged; restore a copy, or save what is whole: actors fsck FILE --salvage NEW")
    return Exit.FAILED if damage else Exit.OK


def _fields(damage: Damage) -> dict[str, object]:
    return {"session": damage.session, "number": damage.number, "what": damage.what}


def _save(path: Path, to: Path) -> None:
    """Copy what can be read; say of each session how much that is.

    Raises:
        JournalError: The new file is there already.
    """
    if to.exists():
        raise JournalError(f"{to}: is there already; name a file that is not")
    with closing(SqliteStorage(to)) as storage:
        for session, count in salvage(path, storage):
            complain(f"{to}: session {session}: {count} events")
