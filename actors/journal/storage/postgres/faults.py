"""Translate the errors of Postgres into errors of this package.

Messages contain only the code and the first line of an error, because its details may contain stored data.
"""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection, DataError, Error
from psycopg.pq import TransactionStatus

from actors.errors import ActorsError, ConfigError, JournalDamaged, JournalError, JournalUnavailable

AGAIN = ("40001", "40P01", "23503")
"""Codes of conflicts with other transactions: a serialization failure, a deadlock, and a blob that was deleted while
another log began to refer to it. The operation is repeated at once, because the other transaction has ended by then."""

ELSEWHERE = ("25006",)
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


def is_lost(connection: Connection[Any], error: BaseException) -> bool:
    """Return True if an error made the connection unusable. The outcome of the statement is then unknown."""
    if not isinstance(error, Error) or error.diag.severity_nonlocalized in ("FATAL", "PANIC"):
        return True
    status = connection.pgconn.transaction_status
    return connection.closed or status in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)


def translate_error(error: Error, where: str, *, was_open: bool = False) -> ActorsError:
    """Return the error of this package for the error of a statement.

    Args:
        error: The error of psycopg.
        where: The name of the database.
        was_open: Whether the journal was open before. If so, an error in the configuration is not the cause.
    """
    code = error.sqlstate or ""
    said = f"{where}: {{}} (Postgres: {code} {error.diag.message_primary})" if code else f"{where}: {{}}"
    if code in _DAMAGED:
        return JournalDamaged(said.format("its tables are damaged; restore the database from a backup"))
    if code in _MISCONFIGURED and not was_open:
        return ConfigError(said.format(_MISCONFIGURED[code]))
    for length in (5, 3, 2):
        if (why := _UNAVAILABLE.get(code[:length])) is not None:
            return JournalUnavailable(said.format(why))
    if code and code[:2] not in _REFUSED:
        return JournalUnavailable(said.format("it failed; see the server's log"))
    if not code and isinstance(error, DataError):
        return JournalError(
            f"{where}: the database cannot store a string with a NUL character; remove the character"
        )
    if not code:
        return JournalUnavailable(
            f"{where}: the connection was lost before the server confirmed the operation; try again"
        )
    return JournalError(said.format("it rejected a statement; see the server's log"))


def translate_connect_error(error: Error, where: str) -> ActorsError:
    """Return the error of this package for a failed connection attempt. `where` is the name of the database."""
    said = str(error)
    for part, why in _AT_CONNECT.items():
        if part in said and "No such file" not in said:
            return ConfigError(f"{where}: {why}")
    return JournalUnavailable(f"{where}: no connection, because {_outage_reason(said)}")


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
