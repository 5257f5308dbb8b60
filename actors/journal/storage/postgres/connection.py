"""Hold one connection of a storage, restore it when it is lost, and limit every wait.

Operations that fail because of concurrent changes are repeated at once, a few times. Operations that fail without a
connection are repeated until the patience is over, counted from the call; a longer outage is reported at once. A
server that is silent for too long counts as lost, whatever the cause.
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
from actors.journal.storage.postgres.faults import AGAIN, ELSEWHERE, error_of, is_lost, meaning_at_connect
from actors.journal.storage.postgres.statements import IS_STANDBY

R = TypeVar("R")
Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]  # Any: whatever a statement gives

PAUSE = 0.05
"""Seconds between two tries for a connection."""
AT_ONCE = 1.0
"""Seconds for which it is told at once that a server did not answer for longer than this."""
TRIES = 8
"""How often at most something is done that others get in the way of."""


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that becomes unusable when its server is silent for `silence` seconds."""

    silence = 60.0

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        return super().wait(self._watch(gen), interval, timeout)

    def _watch(self, gen: PQGen[R]) -> PQGen[R]:
        """Run `gen` until nothing was sent or received for too long; then stop waiting."""
        heard = monotonic()
        try:
            wants = next(gen)
            while True:
                ready = yield wants
                if ready is not Ready.NONE:
                    heard = monotonic()
                elif monotonic() - heard > self.silence:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the server is silent")
                wants = gen.send(ready)
        except StopIteration as end:
            done: R = end.value
            return done


def check_primary(connection: Connection, where: str) -> None:
    """Reject a standby for reading: it may lag behind acknowledged events.

    Raises:
        JournalUnavailable: The server is a standby. An address with several hosts may lead to another server next
            time.
    """
    if connection.execute(IS_STANDBY).fetchone() == (True,):
        raise JournalUnavailable(
            f"{where}: a standby answers, which may lag behind; name the server that it copies from, or add "
            "target_session_attrs=read-write to the address"
        )


@contextmanager
def allowing(connection: Connection, seconds: float) -> Generator[None]:
    """Allow each statement inside this time, for large operations."""
    assert isinstance(connection, _Bounded)
    before = connection.execute("SELECT current_setting('statement_timeout')").fetchone()
    silence, connection.silence = connection.silence, max(connection.silence, seconds + 1)
    timeout = "SELECT set_config('statement_timeout', %s, false)"
    connection.execute(timeout, (f"{max(1, round(1000 * seconds))}ms",))
    try:
        yield
    finally:
        connection.silence = silence
        with suppress(psycopg.Error):  # it is lost then
            connection.execute(timeout, before)


class Link:
    """A connection for one user at a time.

    Args:
        parameters: The parameters for libpq.
        where: The name of the database in messages.
        patience: Seconds to wait for a connection.
        silence: Seconds of silence after which a server is gone. Statement timeouts must be shorter.
        begun: Called with every new connection before its use.
    """

    def __init__(
        self,
        parameters: dict[str, str],
        where: str,
        patience: float,
        silence: float,
        begun: Callable[[Connection], None],
    ) -> None:
        self._parameters, self._where, self._patience, self._silence = parameters, where, patience, silence
        self._begun = begun
        self._lock = Lock()
        self._connection: Connection | None = None
        self._out_since: float | None = None
        self._not_before = 0.0
        self._began = 0.0
        self._was_made = self._is_outdated = False

    def rename(self, name: str) -> None:
        """Set the name that the server shows for connections opened from now on."""
        self._parameters = {**self._parameters, "application_name": name}

    def run(self, work: Callable[[Connection], R]) -> R:
        """Run `work` with the connection. It may be started several times; a failed run is rolled back."""
        with self._lock:
            self._began = monotonic()
            tries = 0
            while True:
                tries += 1
                try:
                    done = work(self._connect())
                except psycopg.Error as error:
                    if not self._goes_on(error, tries):
                        raise error_of(error, self._where, was_open=True) from None
                except JournalUnavailable:
                    if not self._is_patient():
                        raise
                except ActorsError:
                    raise  # of what was found; the connection is as good as before
                except BaseException:
                    self._drop()  # the next connection reverts its pending statement
                    raise
                else:
                    self._out_since = None
                    return done

    def renew(self) -> None:
        """Open another connection at the next use. Does not wait for a running use."""
        self._is_outdated = True

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            self._drop()
            self._out_since = None

    def _connect(self) -> Connection:
        if self._is_outdated:
            self._is_outdated = False
            self._drop()
        if self._connection is None:
            connection = self.new_connection()
            try:
                self._begun(connection)
            except psycopg.Error as error:
                connection.close()
                raise error_of(error, self._where, was_open=self._was_made) from None
            except BaseException:
                connection.close()
                raise
            self._connection, self._was_made = connection, True
        return self._connection

    def new_connection(self) -> Connection:
        """Return a new connection, owned by the caller, without settings.

        Raises:
            ConfigError: The address, the user or the password are wrong.
            JournalUnavailable: The server cannot be reached.
        """
        began = monotonic()
        if began < self._not_before:
            raise JournalUnavailable(f"{self._where}: no connection: it does not answer")
        try:
            connection = _Bounded.connect(**self._parameters, autocommit=True)  # type: ignore[arg-type]  # all are texts
        except psycopg.Error as error:
            if (now := monotonic()) - began > AT_ONCE:  # the server is silent, and others wait for this
                self._not_before = now + AT_ONCE
            failure = meaning_at_connect(error, self._where)
            if isinstance(failure, ConfigError) and self._was_made:
                raise JournalUnavailable(str(failure)) from None  # it was correct before, and may be again
            raise failure from None
        connection.silence = self._silence
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_dumper(
            int, Int8BinaryDumper
        )  # or each size would be a statement of its own
        return connection

    def _goes_on(self, error: psycopg.Error, tries: int) -> bool:
        """Recover from an error, and return True if the operation should be repeated."""
        assert self._connection is not None
        if is_lost(self._connection, error):
            self._drop()
            return self._is_patient()
        if error.sqlstate in ELSEWHERE:
            self._drop()
            return self._is_patient()
        if error.sqlstate in AGAIN and tries < TRIES:
            sleep(random.uniform(0, 0.01) * tries)  # noqa: S311  no secret
            return True
        return False

    def _is_patient(self) -> bool:
        """Return True if another connection should be tried after a failed one."""
        now = monotonic()
        if self._out_since is None:
            self._out_since = self._began
        if now - self._out_since >= self._patience:
            return False
        sleep(PAUSE)
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
