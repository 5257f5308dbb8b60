"""Fill a Postgres journal with sessions, in the storage's own format, by COPY.

The sessions were used over 90 days, one after the other. Half of them belong to one tenant, the others to 1,000
tenants. Of 10,000 sessions, 3,000 are closed, ten wait for their caller, and one was running when its host crashed.
Open sessions of the last 30 days belong to ten live hosts. Every session has metadata: a user with ten sessions, and a
plan that most users have.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from msgspec.structs import replace

from actors.core.log.codec import encode_event
from actors.core.log.events import Closed, LogEvent, Opened, TurnPaused, TurnStarted
from actors.journal.storage.clock import STEADY, ObservedClock, encode_clock
from actors.journal.storage.postgres.batch import row_checksum
from actors.journal.storage.rows import COLUMNS, SessionRow, record_checksum

DAYS, OWNED_DAYS, HOSTS, TENANTS = 90, 30, 10, 1000
DAY = 86_400.0
CHUNK = 20_000
"""Sessions of one COPY statement. The records of such a group are stored turn by turn, as hosts write them."""


def name_of(number: int) -> str:
    """Return the id of a session. Number 0 was used last."""
    return f"s{number:07}"


def tenant_of(number: int) -> str:
    """Return the tenant of a session."""
    return "large" if number % 2 else f"t{number // 2 % TENANTS}"


def metadata_of(number: int) -> tuple[tuple[str, str], ...]:
    """Return the metadata of a session."""
    return ("user", f"u{number // 10}"), ("plan", "free" if number % 100 else "trial")


def events_of(number: int, turns: Sequence[LogEvent]) -> tuple[LogEvent, ...]:
    """Return the log of a session.

    `turns`: the log of a session with complete turns.
    """
    opened = turns[0]
    assert isinstance(opened, Opened)
    first = replace(
        opened,
        session=name_of(number),
        tenant=tenant_of(number),
        metadata=metadata_of(number),
        title=f"Talk {number}",
    )
    started = next(index for index, event in enumerate(turns) if isinstance(event, TurnStarted))
    match number % 10_000:
        case 17:
            return (first, *turns[1 : started + 1])
        case waiting if waiting % 1000 == 29:
            return (first, *turns[1 : started + 1], TurnPaused(1, ()))
        case closed if closed % 10 in (1, 4, 7):
            return (first, *turns[1:], Closed())
        case _:
            return (first, *turns[1:])


def fill(connection: psycopg.Connection[Any], sessions: int, turns: Sequence[LogEvent], now: float) -> int:
    """Write the sessions and their records to the tables, which must exist; return the number of records.

    Args:
        connection: A connection that commits each statement.
        sessions: The number of sessions.
        turns: The log of a session with complete turns, whose events the logs contain.
        now: The time of the last use of session 0, in seconds since 1970.
    """
    connection.execute(
        "INSERT INTO actors_host SELECT 'host-' || n, now() + interval '1 day', 'http://host-' || n, 'serving', 0 "
        "FROM generate_series(0, %s) AS n",
        (HOSTS - 1,),
    )
    # The journal has observed its clock for days, so a sweep trusts it.
    for key, value in encode_clock(ObservedClock(int(now), 2 * STEADY)).items():
        connection.execute("INSERT INTO actors_meta VALUES (%s, %s)", (key, value))
    records = 0
    encoded = {id(event): encode_event(event) for event in turns}
    for first in range(0, sessions, CHUNK):
        rows, logs = [], []
        for number in range(first, min(first + CHUNK, sessions)):
            log = events_of(number, turns)
            kept = [encoded.get(id(event)) or encode_event(event) for event in log]
            rows.append(_row(number, sessions, log, kept, now))
            logs.append(kept)
        _copy_rows(connection, rows)
        records += _copy_records(connection, rows, logs)
    for table in ("actors_session", "actors_record"):
        connection.execute(f"VACUUM (ANALYZE) {table}")
    return records


def _row(
    number: int, sessions: int, events: Sequence[LogEvent], records: Sequence[bytes], now: float
) -> SessionRow:
    age = DAYS * DAY * number / sessions
    row = SessionRow(name_of(number), key=_key(number), fence=1)
    row.apply_events(events, now - age)
    row.opened -= 60.0
    row.last, row.size = len(records), sum(map(len, records))
    if age < OWNED_DAYS * DAY and row.state != "closed":
        row.owner = f"host-{number % HOSTS}"
    return row


def _key(number: int) -> int:
    """Return a pseudo-random key for a session, so that the keys of neighbouring sessions are far apart."""
    return number * 0x9E3779B97F4A7C15 % 2**62


def _copy_rows(connection: psycopg.Connection[Any], rows: Sequence[SessionRow]) -> None:
    names = COLUMNS.removesuffix(", checksum").split(", ")
    with connection.cursor().copy(f"COPY actors_session ({COLUMNS}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row((*(getattr(row, name) for name in names), row_checksum(row)))


def _copy_records(
    connection: psycopg.Connection[Any], rows: Sequence[SessionRow], logs: Sequence[Sequence[bytes]]
) -> int:
    """Write the records of the first turns and then all other records. Return their number."""
    half = len(max(logs, key=len)) // 2
    lines = 0
    with connection.cursor().copy("COPY actors_record FROM STDIN") as copy:
        for begin, end in ((0, half), (half, None)):
            for row, log in zip(rows, logs, strict=True):
                found = [*_lines(row.key, log[begin:end], begin + 1)]
                lines += len(found)
                copy.write("".join(found))
    return lines


def _lines(key: int, records: Sequence[bytes], first: int) -> Iterator[str]:
    for number, record in enumerate(records, first):
        yield f"{key}\t{number}\t{record_checksum(key, number, record)}\t\\\\x{record.hex()}\n"
