"""Manage one connection of a storage: open it again if it is lost, limit every wait, and translate errors.

A `postgresql://` address may contain a password, so no error, log or repr contains the address.

An operation that conflicts with a concurrent change is repeated at once, a few times. An operation that fails because
there is no connection is repeated until `patience` seconds have passed since the operation was called. If an earlier
operation has already waited that long during the same outage, the failure is reported at once. A server that is silent
for too long counts as lost, whatever the cause. Messages contain only the code and the first line of an error, because
its details may contain stored data.

A pooler such as PgBouncer in transaction mode shares server connections between programs. One program may then use the
prepared statements and the settings of another program. So each connection of the storage must use one server
connection for its entire life. The check for a pooler uses two connections alternately. A pooler is present if both
connections use the same server connection, or if one connection uses several server connections.
"""

import random
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic, sleep
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import DataError, Error
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from psycopg.waiting import Ready

from actors.errors import ActorsError, ConfigError, JournalDamaged, JournalError, JournalUnavailable
from actors.journal.storage.postgres.statements import IS_STANDBY

_KEEPALIVES = {"keepalives_idle": "2", "keepalives_interval": "1", "keepalives_count": "3"}
"""TCP keepalive settings: a dead connection is detected after five seconds of silence."""
CHECKS = 8
"""Number of times that the check for a pooler compares the server connections."""
R = TypeVar("R")
Connection: TypeAlias = psycopg.Connection[
    tuple[Any, ...]
]  # Any: each statement returns rows of its own types
PAUSE = 0.05
"""Seconds between two attempts to connect."""
FAIL_FAST = 1.0
"""If an attempt to connect fails after more seconds than this, further attempts fail at once for as many seconds."""
MAX_TRIES = 8
"""Maximum number of attempts of an operation that conflicts with other hosts."""
RETRIED_CODES = ("40001", "40P01", "23503")
"""Codes of conflicts with other transactions: a serialization failure, a deadlock, and a blob that was deleted while
another log began to refer to it. The operation is repeated at once, because the other transaction has ended by then."""
READ_ONLY_CODES = ("25006",)
"""The code of a read-only server: another server is the primary now, so the connection is closed."""
_UNAVAILABLE: Mapping[str, str] = {
    "08": "the connection failed",
    "0A000": "its tables have changed; check whether a newer program is migrating them",
    "23503": "other hosts kept deleting the same data; try again",
    "25006": "it is read-only; connect to the primary server",
    "26000": "a pooler shares connections between programs; use its session mode, or connect to the server directly",
    "40": "other hosts kept changing the same data; try again",
    "42P05": "a pooler shares connections between programs; use its session mode, or connect to the server directly",
    "42": "its tables have an unknown structure; check whether they were moved or restored from another version",
    "42501": "this user may not create or use its tables; restore the user's rights",
    "53100": "its disk is full; free some space",
    "53200": "its memory is exhausted; see the server's log",
    "53300": "it has too many connections; raise max_connections, or close some connections",
    "53": "it is out of resources; see the server's log",
    "55P03": "another program holds a lock; end that program",
    "57014": "the statement took too long; try again",
    "57P": "the server is stopping or starting; try again later",
    "58": "its disk fails; see the server's log",
}
"""The message for each code of Postgres, or for the longest prefix of the code. The subject "it" is the database."""
_REFUSED = ("21", "22", "23", "44", "54", "P0")
"""Classes of codes for data that can never be written. Any other code, even an unknown one, may be temporary."""
_MISCONFIGURED: Mapping[str, str] = {
    "3F000": "it has no schema for the tables; create one, or select one with ?options=-csearch_path%3DNAME",
    "42501": "this user may not create or use its tables; grant the user CREATE on the schema",
}
_DAMAGED = ("XX001", "XX002")
_AT_CONNECT: Mapping[str, str] = {
    "password authentication failed": "the user or the password is wrong; correct the address or PGPASSWORD",
    "no password supplied": "the server requires a password; set PGPASSWORD",
    "authentication failed": "the server rejects this user; see its pg_hba.conf",
    "no pg_hba.conf entry": "the server rejects this user or machine; see its pg_hba.conf",
    "does not exist": "the database, the user or a file does not exist; correct the address",
    "is not permitted to log in": "this user may not log in; grant LOGIN to the user",
    "permission denied for database": "this user may not use the database; grant CONNECT to the user",
    "certificate": "the TLS certificate was rejected; check sslrootcert and the host name",
    "does not support SSL": "the server does not support TLS; change sslmode, or enable TLS on the server",
}
"""The message for each text in an error of libpq, which has no codes at connect. Other errors may be temporary."""


def connection_parameters(url: str, patience: float, name: str, silence: float = 5.0) -> dict[str, str]:
    """Return the parameters for libpq: the parts of the address, and timeouts unless the address sets them.

    Args:
        url: The address. For missing parts, libpq uses its defaults, such as `PGPASSWORD` and `~/.pgpass`.
        patience: Seconds to wait for a connection.
        name: The connection's name, which the server shows.
        silence: Seconds after which a server that does not confirm sent data counts as lost.

    Raises:
        ConfigError: The address cannot be parsed.
    """
    try:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
        ports = [int(port) for port in parts.get("port", "").split(",") if port]
    except (Error, ValueError):
        raise ConfigError(_UNREADABLE) from None  # the invalid part may belong to a password
    if "@" in parts.get("dbname", "") or any(not 0 < port < 65536 for port in ports):
        raise ConfigError(_UNREADABLE)
    bounds = {
        "connect_timeout": str(max(2, round(min(patience, silence)))),
        "tcp_user_timeout": str(round(1000 * silence)),
        **_KEEPALIVES,
    }
    return {**bounds, **parts, "application_name": name, "client_encoding": "UTF8"}


_UNREADABLE = (
    "The postgresql:// address of the journal is invalid; its form is postgresql://USER@HOST:PORT/DATABASE, "
    "and in a password, write / @ : ? # % as %2F %40 %3A %3F %23 %25"
)


def database_label(parameters: dict[str, str]) -> str:
    """Return the label of the database for messages: its name, host and port, but neither user nor password."""
    host, port = parameters.get("host", "local"), parameters.get("port", "5432")
    return (
        f"Postgres database {parameters.get('dbname', parameters.get('user', 'default'))!r} at {host}:{port}"
    )


def check_direct(first: psycopg.Connection[Any], second: psycopg.Connection[Any], where: str) -> None:
    """Check that each of two connections always uses one server connection of its own.

    Raises:
        ConfigError: A pooler shares the server connections.
    """
    pairs = [(_backend_pid(first), _backend_pid(second)) for _ in range(CHECKS)]
    first_pids, second_pids = map(set, zip(*pairs, strict=True))
    if len(first_pids) > 1 or len(second_pids) > 1 or first_pids & second_pids:
        raise ConfigError(
            f"{where}: a pooler shares connections between transactions; use its session mode "
            "(PgBouncer: pool_mode = session), or connect to the server directly"
        )


def _backend_pid(connection: psycopg.Connection[Any]) -> int:
    """Return the id of the server process behind a connection."""
    ((pid,),) = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchall()
    return int(pid)


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
            if (now := monotonic()) - began > FAIL_FAST:
                self._not_before = now + FAIL_FAST
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
        if error.sqlstate in READ_ONLY_CODES:
            self._close_connection()
            return self._wait_before_retry()
        if error.sqlstate in RETRIED_CODES and tries < MAX_TRIES:
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


def is_lost(connection: psycopg.Connection[Any], error: BaseException) -> bool:
    """Return True if an error made the connection unusable. The outcome of the statement is then unknown."""
    if not isinstance(error, Error) or error.diag.severity_nonlocalized in ("FATAL", "PANIC"):
        return True
    status = connection.pgconn.transaction_status
    return connection.closed or status in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)


def translate_error(error: Error, where: str, *, was_open: bool = False) -> ActorsError:
    """Translate the error of a statement into an error of this package.

    Args:
        error: The error of psycopg.
        where: The name of the database.
        was_open: Whether the journal was open before. If so, an error in the configuration is not the cause.
    """
    code = error.sqlstate or ""
    template = f"{where}: {{}} (Postgres: {code} {error.diag.message_primary})" if code else f"{where}: {{}}"
    if code in _DAMAGED:
        return JournalDamaged(template.format("its tables are damaged; restore the database from a backup"))
    if code in _MISCONFIGURED and not was_open:
        return ConfigError(template.format(_MISCONFIGURED[code]))
    for length in (5, 3, 2):
        if (why := _UNAVAILABLE.get(code[:length])) is not None:
            return JournalUnavailable(template.format(why))
    if code and code[:2] not in _REFUSED:
        return JournalUnavailable(template.format("it failed; see the server's log"))
    if not code and isinstance(error, DataError):
        return JournalError(
            f"{where}: the database cannot store a string with a NUL character; remove the character"
        )
    if not code:
        return JournalUnavailable(
            f"{where}: the connection was lost before the server confirmed the operation; try again"
        )
    return JournalError(template.format("it rejected a statement; see the server's log"))


def translate_connect_error(error: Error, where: str) -> ActorsError:
    """Translate the error of a connection attempt. `where` is the name of the database."""
    message = str(error)
    for part, why in _AT_CONNECT.items():
        if part in message and "No such file" not in message:
            return ConfigError(f"{where}: {why}")
    return JournalUnavailable(f"{where}: no connection, because {_outage_reason(message)}")


def _outage_reason(message: str) -> str:
    for part, why in _NOT_NOW.items():
        if part in message:
            return why
    return "the server cannot be reached"


_NOT_NOW: Mapping[str, str] = {
    "too many": "the server has too many connections; raise max_connections, or close some connections",
    "connection slots": "the server has too many connections; raise max_connections, or close some connections",
    "starting up": "the server is starting",
    "shutting down": "the server is stopping",
    "recovery mode": "the server is recovering from a crash",
    "refused": "no server listens at this address",
    "No such file": "no server listens at this address",
    "resolve host": "the host name cannot be resolved",
    "timeout": "the server does not answer",
    "read-only": "the server is read-only; connect to the primary server",
}
