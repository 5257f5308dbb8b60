"""Postgres servers that hold what another one wrote: standbys, and base backups that are restored."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

from tests.journal.postgres import SECONDS, USER, Server, empty, run


@contextmanager
def copied(source: Server, *, follows: bool) -> Iterator[Server]:
    """Give a copy of a server that runs, as it is now; remove it in the end. It is not started.

    Args:
        source: Which server.
        follows: Whether the copy is a standby, and goes on replicating.
    """
    with empty() as copy:
        options = ["--no-sync", "--checkpoint=fast", *(["-R"] if follows else [])]
        run(copy.folder, "pg_basebackup", "-h", str(source.folder), "-U", USER, "-D", "data", *options)
        yield copy


def replicate(primary: Server, standby: Server, *, synchronous: bool) -> None:
    """Wait until a standby that was started has all that its primary wrote.

    `synchronous`: from then on the primary acknowledges only what the standby has too.
    """
    if synchronous:
        _configure(primary, "synchronous_standby_names = '*'")
    state = "sync" if synchronous else "async"
    _wait(primary, f"SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = '{state}'")
    catch_up(primary, standby)


def catch_up(primary: Server, standby: Server) -> None:
    """Wait until a standby has all that its primary wrote until now."""
    with primary.connect() as connection:
        (written,) = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone() or ("",)
    _wait(standby, f"SELECT pg_last_wal_replay_lsn() >= '{written}'")


def fall_behind(standby: Server) -> None:
    """Have a standby receive nothing more."""
    _configure(standby, "primary_conninfo = ''")
    _wait(standby, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")


def promote(standby: Server) -> None:
    """Have a standby take over, with all that it received."""
    with standby.connect() as connection:
        assert connection.execute("SELECT pg_promote(true, %s)", (int(SECONDS),)).fetchone() == (True,)


def _configure(server: Server, setting: str) -> None:
    with server.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")


def _wait(server: Server, question: str) -> None:
    """Wait until a server answers with true."""
    until = monotonic() + SECONDS
    with server.connect() as connection:
        while connection.execute(question).fetchone() != (True,):
            assert monotonic() < until, question
            sleep(0.01)
