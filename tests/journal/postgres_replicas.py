"""Postgres servers with the data of another one: standbys and restored base backups."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from tests.journal.postgres import SECONDS, USER, Server, empty_server, run


@contextmanager
def copy_server(source: Server, *, follows: bool) -> Iterator[Server]:
    """Yield a copy of a running server in its current state, not started; remove it at the end.

    Args:
        source: The server to copy.
        follows: Whether the copy is a standby that keeps replicating.
    """
    with empty_server() as copy:
        options = ["--no-sync", "--checkpoint=fast", *(["-R"] if follows else [])]
        run(copy.folder, "pg_basebackup", "-h", str(source.folder), "-U", USER, "-D", "data", *options)
        yield copy


def replicate(primary: Server, standby: Server, *, synchronous: bool) -> None:
    """Wait until a started standby has everything that its primary wrote.

    With `synchronous`, the primary acknowledges only writes that the standby has too from then on.
    """
    if synchronous:
        _configure(primary, "synchronous_standby_names = '*'")
    state = "sync" if synchronous else "async"
    _wait(primary, f"SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = '{state}'")
    catch_up(primary, standby)


def catch_up(primary: Server, standby: Server) -> None:
    """Wait until a standby has everything that its primary has written so far."""
    with primary.connect() as connection:
        (written,) = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
    _wait(standby, f"SELECT pg_last_wal_replay_lsn() >= '{written}'")


def fall_behind(standby: Server) -> None:
    """Stop a standby from receiving more."""
    _configure(standby, "primary_conninfo = ''")
    _wait(standby, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")


def promote(standby: Server) -> None:
    """Promote a standby with everything that it received."""
    with standby.connect() as connection:
        assert connection.execute("SELECT pg_promote(true, %s)", (int(SECONDS),)).fetchone() == (True,)


def _configure(server: Server, setting: str) -> None:
    with server.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")


def _wait(server: Server, question: str) -> None:
    """Wait until a query on a server returns true."""
    until = monotonic() + SECONDS
    with server.connect() as connection:
        while connection.execute(question).fetchone() != (True,):
            assert monotonic() < until, question
            sleep(0.01)
