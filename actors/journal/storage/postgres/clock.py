"""Record the clock of a Postgres server, as `actors.journal.storage.clock` defines."""

from actors.journal.storage.clock import ObservedClock, clock_of, clock_values, observe
from actors.journal.storage.postgres import statements as sql
from actors.journal.storage.postgres.connection import Connection


def observe_clock(connection: Connection, now: int, elapsed: int) -> ObservedClock:
    """Record the server's clock, or the host's (`now`) if that is behind; return how far it is trusted."""
    with connection.transaction():
        connection.execute(sql.LOCK_CLOCK)
        before = clock_of(dict[str, int](connection.execute(sql.CLOCK).fetchall()))
        clock = observe(before, min(server_time(connection), now), elapsed)
        connection.execute(sql.DROP_CLOCK)
        for note in clock_values(clock).items():
            connection.execute(sql.NOTE_CLOCK, note)
    return clock


def server_time(connection: Connection) -> int:
    """Return the seconds since 1970 by the clock of the server."""
    found = connection.execute(sql.NOW).fetchone()
    assert found is not None
    return int(found[0])
