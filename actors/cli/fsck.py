"""`actors sessions fsck`: report damage in a journal, and copy intact logs to a new file."""

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import escape_controls, print_notice
from actors.errors import ConfigError, JournalError
from actors.journal.storage.damage import Damage, damage_from_error
from actors.journal.storage.named import open_tables
from actors.journal.storage.sqlite import SqliteStorage
from actors.journal.storage.sqlite.check import JournalFile
from actors.journal.storage.sqlite.salvage import salvage

if TYPE_CHECKING:
    from actors.journal.storage.postgres.check import JournalTables


def add_arguments(parser: Parser) -> None:
    parser.add_argument("journal", metavar="FILE|URL", help="the journal to check; it is not changed")
    parser.add_argument(
        "--salvage", metavar="NEW", help="copy every log to a new file, up to its first damaged record"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> Exit:
    """Print a line for each damaged record, entry or page, and then the number of intact records.

    Raises:
        ConfigError: An address cannot be used, or `--salvage` was given for a database.
        JournalError: The journal cannot be read at all, or is not a journal.
    """
    if "://" not in options.journal:
        return _check_file(Path(options.journal), options)
    if options.salvage:  # the address may contain a password and is not repeated
        raise ConfigError("--salvage needs a journal in a file; for a Postgres journal, restore a backup")
    tables = open_tables(options.journal)
    return _print_damage(tables, tables.where, options)


def _check_file(path: Path, options: argparse.Namespace) -> Exit:
    """Check a journal in a file. With `--salvage`, copy its readable pages even if SQLite cannot open the file."""
    try:
        file = JournalFile(path)
    except JournalError as error:
        if not options.salvage:
            raise
        _copy_readable_events(path, Path(options.salvage))
        print_notice(damage_from_error(error).what)
        return Exit.FAILED
    return _print_damage(file, options.journal, options)


def _print_damage(journal: "JournalFile | JournalTables", location: str, options: argparse.Namespace) -> Exit:
    with closing(journal):
        damage = list(journal.damage())
        intact = {"sessions": journal.sessions, "records": journal.records, "blobs": journal.blobs}
    if options.json:
        print(json.dumps({"damage": [_damage_fields(each) for each in damage], "intact": intact}))
    else:
        for each in damage:
            print(escape_controls(each.what))
        print(
            escape_controls(
                f"{location}: intact: " + ", ".join(f"{count:,} {name}" for name, count in intact.items())
            )
        )
    if options.salvage:
        _copy_readable_events(Path(options.journal), Path(options.salvage))
    elif damage:
        is_file = isinstance(journal, JournalFile)
        fix = (
            "a copy, or salvage intact logs: actors sessions fsck FILE --salvage NEW"
            if is_file
            else "a backup"
        )
        print_notice(f"{location} is damaged; restore {fix}")
    return Exit.FAILED if damage else Exit.OK


def _damage_fields(damage: Damage) -> dict[str, object]:
    return {"session": damage.session, "number": damage.number, "what": damage.what}


def _copy_readable_events(path: Path, target: Path) -> None:
    """Copy every readable event to a new journal, and print the number of events of each session.

    Raises:
        JournalError: The new file exists already.
    """
    if target.exists():
        raise JournalError(f"{target}: the file exists already; name a new file")
    with closing(SqliteStorage(target)) as storage:
        for session, count in salvage(path, storage):
            print_notice(f"{target}: session {session}: {count} events")
