"""Record the clock of a Postgres server in the journal, as `actors.journal.storage.clock` describes."""

from actors.journal.storage.clock import ObservedClock, decode_clock, encode_clock, observe
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.connection import Connection


def observe_clock(connection: Connection, now: int, elapsed: int) -> ObservedClock:
    """Record the earlier of the server's time and `now`, and return how far the recorded time can be trusted.

    Args:
        connection: The writing connection.
        now: The time of this machine, in seconds since 1970.
        elapsed: Seconds since this process last called the function, by a monotonic clock; 0 in its first call.
    """
    with connection.transaction():
        connection.execute(sql.LOCK_CLOCK)
        before = decode_clock(dict[str, int](connection.execute(sql.CLOCK).fetchall()))
        clock = observe(before, min(server_time(connection), now), elapsed)
        connection.execute(sql.DROP_CLOCK)
        for note in encode_clock(clock).items():
            connection.execute(sql.NOTE_CLOCK, note)
    return clock


def server_time(connection: Connection) -> int:
    """Return the server's time, in seconds since 1970."""
    found = connection.execute(sql.NOW).fetchone()
    assert found is not None
    return int(found[0])
