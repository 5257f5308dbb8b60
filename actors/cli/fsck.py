"""`actors fsck`: what is whole in a journal, and what is not; and what is whole in a file, saved to a new one."""

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from actors.cli.exits import Exit
from actors.cli.screen import complain, safe
from actors.errors import ConfigError, JournalError
from actors.journal.storage.damage import Damage, damage_of
from actors.journal.storage.named import tables_at
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.salvage import salvage

if TYPE_CHECKING:
    from actors.journal.storage.postgres.check import JournalTables


def main(options: argparse.Namespace) -> Exit:
    """Print what is damaged, one line each, and what is whole.

    Raises:
        ConfigError: An address cannot be used, or is to be saved to a file.
        JournalError: It is no journal, or cannot be read at all.
    """
    if "://" not in options.file:
        return _looked_at_file(Path(options.file), options)
    if options.salvage:  # the address, which may hold a password, is not repeated
        raise ConfigError("--salvage takes a file; of a Postgres journal, restore a backup")
    tables = tables_at(options.file)
    return _looked(tables, tables.where, options)


def _looked_at_file(path: Path, options: argparse.Namespace) -> Exit:
    """Look at a file; save what its pages hold even where SQLite cannot open it."""
    try:
        file = JournalFile(path)
    except JournalError as error:
        if not options.salvage:
            raise
        _save(path, Path(options.salvage))
        complain(damage_of(error).what)
        return Exit.FAILED
    return _looked(file, options.file, options)


def _looked(journal: "JournalFile | JournalTables", where: str, options: argparse.Namespace) -> Exit:
    with closing(journal):
        damage = list(journal.damage())
        whole = {"sessions": journal.sessions, "records": journal.records, "blobs": journal.blobs}
    if options.json:
        print(json.dumps({"damage": [_fields(each) for each in damage], "whole": whole}))
    else:
        for each in damage:
            print(safe(each.what))
        print(safe(f"{where}: whole are " + ", ".join(f"{count:,} {name}" for name, count in whole.items())))
    if options.salvage:
        _save(Path(options.file), Path(options.salvage))
    elif damage:
        is_file = isinstance(journal, JournalFile)
        remedy = "a copy, or save what is whole: actors fsck FILE --salvage NEW" if is_file else "a backup"
        complain(f"{where} is damaged; restore {remedy}")
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
