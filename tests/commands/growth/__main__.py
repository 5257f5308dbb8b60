"""Measure a Postgres journal with many stored sessions: start-up, lists, resumes, hosts, deletion.

python -m tests.commands.growth
python -m tests.commands.growth --sessions 100000 --only lists resumes

The server runs in a temporary folder and syncs each commit. At 1,000,000 sessions, it needs 6 GB there, and the command
takes 20 minutes. The last column is the goal. `--url` measures the empty database of another server.
"""

import argparse
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from time import perf_counter, time

import anyio
import psycopg

from tests.commands.growth.filling import fill
from tests.commands.growth.measuring import (
    Growth,
    Journal,
    deletion,
    hosts,
    listings,
    recorded_turns,
    resumes,
    start,
    turns,
)
from tests.journal.postgres import temporary_server
from tests.saying import say

PARTS = ("start", "lists", "resumes", "turns", "hosts", "deletion")


def main() -> int:
    """Fill a database and print the figures; return 1 if a figure misses its goal."""
    parser = argparse.ArgumentParser("python -m tests.commands.growth", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these figures only")
    parser.add_argument(
        "--part", type=float, default=0.1, help="the part of the sessions that the sweep deletes"
    )
    parser.add_argument("--url", help="an empty database")
    options = parser.parse_args()
    missed = 0
    with _database(options.url) as url:
        for figure in figures(url, options.sessions, options.only, options.part):
            say(str(figure))
            missed += figure.is_missed
    return int(bool(missed))


@contextmanager
def _database(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with temporary_server(synced=True) as server:
        server.start()
        yield server.url()


def figures(
    url: str, sessions: int, only: Collection[str] = PARTS, part: float = 0.1, calls: int = 200
) -> Iterator[Growth]:
    """Fill an empty database, and yield the figures.

    Args:
        url: The address of the database.
        sessions: The number of sessions.
        only: The parts to measure.
        part: The part of the sessions that the sweep deletes.
        calls: The number of resumes.
    """
    journal = Journal(url, sessions, time())
    with psycopg.connect(url, autocommit=True) as connection:
        storage = journal.storage()
        storage.open()
        storage.close()
        began = perf_counter()
        log = anyio.run(recorded_turns)
        records = fill(connection, sessions, log, journal.now)
        yield Growth("stored sessions (number)", sessions)
        yield Growth("stored records (number)", records)
        yield Growth("filling (s)", perf_counter() - began)
        if "start" in only:
            yield anyio.run(start, journal)
        if "lists" in only:
            yield from listings(journal)
        if "resumes" in only:
            yield from anyio.run(resumes, journal, calls)
        if "turns" in only:
            yield from turns(journal, connection, log, at_once=1)
            yield from turns(journal, connection, log, at_once=50)
        if "hosts" in only:
            yield from hosts(journal, connection)
        if "deletion" in only:
            yield from anyio.run(deletion, journal, connection, part)


if __name__ == "__main__":
    sys.exit(main())
