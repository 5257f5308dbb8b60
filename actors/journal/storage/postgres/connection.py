"""Manage one connection of a storage: open it again if it is lost, and limit every wait.

An operation that conflicts with a concurrent change is repeated at once, a few times. An operation that fails without a
connection is repeated until `patience` seconds have passed since its call. If an earlier operation has already waited
that long during the same outage, the failure is reported at once. A server that is silent for too long counts as lost,
whatever the cause.
"""

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic, sleep
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from psycopg.waiting import Ready

from actors.errors import ActorsError, ConfigError, JournalUnavailable
from actors.journal.storage.postgres.faults import (
    AGAIN,
    ELSEWHERE,
    is_lost,
    translate_connect_error,
    translate_error,
)
from actors.journal.storage.postgres.statements import IS_STANDBY

R = TypeVar("R")
Connection: TypeAlias = psycopg.Connection[
    tuple[Any, ...]
]  # Any: each statement returns rows of its own types

PAUSE = 0.05
"""Seconds between two attempts to connect."""
AT_ONCE = 1.0
"""If an attempt to connect fails after more than these seconds, other attempts fail at once for the same time."""
TRIES = 8
"""Maximum number of attempts of an operation that conflicts with other hosts."""


class _BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that becomes unusable when its server is silent for `silence` seconds."""

    silence = 60.0

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        """Wait as psycopg does, but close the connection if the server is silent for too long."""
        return super().wait(self._watch(gen), interval, timeout)

    def _watch(self, gen: PQGen[R]) -> PQGen[R]:
        """Run `gen`, a generator of psycopg that waits for the server.

        Close the connection if nothing can be sent or received for `silence` seconds.
        """
        heard = monotonic()
        try:
            wants = next(gen)
            while True:
                ready = yield wants
                if ready is not Ready.NONE:
                    heard = monotonic()
                elif monotonic() - heard > self.silence:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the server did not answer in time")
                wants = gen.send(ready)
        except StopIteration as end:
            done: R = end.value
            return done


def check_primary(connection: Connection, where: str) -> None:
    """Reject a standby server for reads, because a standby may lack acknowledged events.

    Raises:
        JournalUnavailable: The server is a standby. If the address has several hosts, the next attempt may reach the
            primary server.
    """
    if connection.execute(IS_STANDBY).fetchone() == (True,):
        raise JournalUnavailable(
            f"{where}: this server is a standby, which may lag; connect to the primary server, or add "
            "target_session_attrs=read-write to the address"
        )


@contextmanager
def allow_long_statements(connection: Connection, seconds: float) -> Generator[None]:
    """Let each statement of the block run for up to `seconds`. Operations that change many rows need this."""
    assert isinstance(connection, _BoundedConnection)
    before = connection.execute("SELECT current_setting('statement_timeout')").fetchone()
    silence, connection.silence = connection.silence, max(connection.silence, seconds + 1)
    timeout = "SELECT set_config('statement_timeout', %s, false)"
    connection.execute(timeout, (f"{max(1, round(1000 * seconds))}ms",))
    try:
        yield
    finally:
        connection.silence = silence
        with suppress(psycopg.Error):  # after an error, the connection is not used again
            connection.execute(timeout, before)


class Link:
    """A connection to the database, which is opened again if it is lost. Only one caller at a time can use it.

    Args:
        parameters: The parameters for libpq.
        where: The name of the database in messages.
        patience: Seconds to wait for a connection.
        silence: Seconds of silence after which the server counts as lost. Statement timeouts must be shorter.
        on_connect: Called with every new connection before its first use.
    """

    def __init__(
        self,
        parameters: dict[str, str],
        where: str,
        patience: float,
        silence: float,
        on_connect: Callable[[Connection], None],
    ) -> None:
        self._parameters, self._where, self._patience, self._silence = parameters, where, patience, silence
        self._on_connect = on_connect
        self._lock = Lock()
        self._connection: Connection | None = None
        self._out_since: float | None = None
        self._not_before = 0.0
        self._began = 0.0
        self._was_made = self._is_outdated = False

    def set_connection_name(self, name: str) -> None:
        """Set the name that the server shows for later connections."""
        self._parameters = {**self._parameters, "application_name": name}

    def run(self, work: Callable[[Connection], R]) -> R:
        """Call `work` with the connection and return its result. After a failure, `work` may be called again."""
        with self._lock:
            self._began = monotonic()
            tries = 0
            while True:
                tries += 1
                try:
                    done = work(self._connect())
                except psycopg.Error as error:
                    if not self._recovers_from(error, tries):
                        raise translate_error(error, self._where, was_open=True) from None
                except JournalUnavailable:
                    if not self._wait_before_retry():
                        raise
                except ActorsError:
                    raise  # the operation failed, but the connection still works
                except BaseException:
                    self._close_connection()  # the outcome is unknown; the next connection reverts the statement
                    raise
                else:
                    self._out_since = None
                    return done

    def renew(self) -> None:
        """Replace the connection before its next use, without waiting for the current use."""
        self._is_outdated = True

    def close(self) -> None:
        """Close the connection. The next use opens a new connection."""
        with self._lock:
            self._close_connection()
            self._out_since = None

    def _connect(self) -> Connection:
        if self._is_outdated:
            self._is_outdated = False
            self._close_connection()
        if self._connection is None:
            connection = self.new_connection()
            try:
                self._on_connect(connection)
            except psycopg.Error as error:
                connection.close()
                raise translate_error(error, self._where, was_open=self._was_made) from None
            except BaseException:
                connection.close()
                raise
            self._connection, self._was_made = connection, True
        return self._connection

    def new_connection(self) -> Connection:
        """Open and return a connection without the storage's settings. The caller must close it.

        Raises:
            ConfigError: The address, the user or the password is wrong.
            JournalUnavailable: The server cannot be reached.
        """
        began = monotonic()
        if began < self._not_before:
            raise JournalUnavailable(f"{self._where}: no connection, because the server does not answer")
        try:
            connection = _BoundedConnection.connect(**self._parameters, autocommit=True)  # type: ignore[arg-type]  # all are strings
        except psycopg.Error as error:
            # After a slow attempt, callers that wait for the connection fail at once.
            if (now := monotonic()) - began > AT_ONCE:
                self._not_before = now + AT_ONCE
            failure = translate_connect_error(error, self._where)
            if isinstance(failure, ConfigError) and self._was_made:
                # The address worked before, so try again later.
                raise JournalUnavailable(str(failure)) from None
            raise failure from None
        connection.silence = self._silence
        connection.adapters.register_dumper(int, Int8Dumper)
        # By default, psycopg chooses a type by the size of the integer, and would prepare one statement for each type.
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        return connection

    def _recovers_from(self, error: psycopg.Error, tries: int) -> bool:
        """Close the connection if the error made it unusable. Return True if the operation should be repeated."""
        assert self._connection is not None
        if is_lost(self._connection, error):
            self._close_connection()
            return self._wait_before_retry()
        if error.sqlstate in ELSEWHERE:
            self._close_connection()
            return self._wait_before_retry()
        if error.sqlstate in AGAIN and tries < TRIES:
            sleep(random.uniform(0, 0.01) * tries)  # noqa: S311  a random delay, not a secret
            return True
        return False

    def _wait_before_retry(self) -> bool:
        """Pause before the next attempt to connect, and return True. If `patience` seconds have passed since the outage
        began, return False at once.
        """
        now = monotonic()
        if self._out_since is None:
            self._out_since = self._began
        if now - self._out_since >= self._patience:
            return False
        sleep(PAUSE)
        return True

    def _close_connection(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def milliseconds(seconds: float) -> str:
    """Return a duration in the form of a Postgres setting."""
    return f"{max(1, round(1000 * seconds))}ms"


def only_connect(_: Connection) -> None:
    """Do nothing. `Link.run(only_connect)` opens the connection if there is none."""
