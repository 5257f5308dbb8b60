"""Translate the errors of Postgres, by tables.

Only the code and the first line of an error are reported: its details may contain stored data.
"""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection, DataError, Error
from psycopg.pq import TransactionStatus

from actors.errors import ActorsError, ConfigError, JournalDamaged, JournalError, JournalUnavailable

AGAIN = ("40001", "40P01", "23503")
"""Serialization failure, deadlock, and a blob that was deleted just when another log came to refer to it: the same
again, at once, finds what the other one did."""

ELSEWHERE = ("25006",)
"""It is another server that may be written to, so the connection is of no use."""

_UNAVAILABLE: Mapping[str, str] = {
    "08": "the connection failed",
    "0A000": "its tables have changed; see whether a newer program migrates them",
    "23503": "others kept erasing what was written",
    "25006": "it is read-only; name the server that others copy from",
    "26000": "a pooler shares connections between programs; use its session mode, or the server itself",
    "40": "others kept writing what was written",
    "42P05": "a pooler shares connections between programs; use its session mode, or the server itself",
    "42": "its tables are not those of this program; were they moved, or restored from another version?",
    "42501": "this user may not make or use its tables; grant it what it had",
    "53100": "its disk is full; make room",
    "53200": "its memory is exhausted",
    "53300": "it has too many connections; raise max_connections, or end some",
    "53": "it is out of resources",
    "55P03": "another program holds a lock; end that",
    "57014": "it took too long",
    "57P": "it stops or starts",
    "58": "its disk fails; see the server's log",
}
"""By the longest beginning of Postgres's code that is here."""

_REFUSED = ("21", "22", "23", "44", "54", "P0")
"""What was to be written cannot be, now or later. All other codes may go away by themselves or when somebody sees to
them, also those that nobody has thought of."""

_MISCONFIGURED: Mapping[str, str] = {
    "3F000": "there is no schema to make tables in; make one, or name one with ?options=-csearch_path%3DNAME",
    "42501": "this user may not make or use its tables; grant it CREATE on the schema",
}
_DAMAGED = ("XX001", "XX002")

_AT_CONNECT: Mapping[str, str] = {
    "password authentication failed": "user or password are wrong",
    "no password supplied": "it asks for a password; set PGPASSWORD",
    "authentication failed": "this user is not let in",
    "no pg_hba.conf entry": "this user or machine is not let in; see the server's pg_hba.conf",
    "does not exist": "there is no such database, user or file",
    "is not permitted to log in": "this user may not log in",
    "permission denied for database": "this user may not use the database",
    "certificate": "TLS: the certificate is not accepted",
    "does not support SSL": "TLS: the server has none",
}
"""By what libpq says, for it gives no codes there. What is not here may go away by itself."""


def is_lost(connection: Connection[Any], error: BaseException) -> bool:
    """Return True if a connection is unusable, so that the outcome of its statement is unknown."""
    if not isinstance(error, Error) or error.diag.severity_nonlocalized in ("FATAL", "PANIC"):
        return True
    status = connection.pgconn.transaction_status
    return connection.closed or status in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)


def error_of(error: Error, where: str, *, was_open: bool = False) -> ActorsError:
    """Return the error of this package for an error of a statement.

    `was_open`: this configuration has worked before, so it is not the cause.
    """
    code = error.sqlstate or ""
    said = f"{where}: {{}} (Postgres: {code} {error.diag.message_primary})" if code else f"{where}: {{}}"
    if code in _DAMAGED:
        return JournalDamaged(said.format("its tables are damaged; restore it from a copy"))
    if code in _MISCONFIGURED and not was_open:
        return ConfigError(said.format(_MISCONFIGURED[code]))
    for length in (5, 3, 2):
        if (why := _UNAVAILABLE.get(code[:length])) is not None:
            return JournalUnavailable(said.format(why))
    if code and code[:2] not in _REFUSED:
        return JournalUnavailable(said.format("it failed; see the server's log"))
    if not code and isinstance(error, DataError):
        return JournalError(f"{where}: the database cannot store text with a NUL character")
    if not code:
        return JournalUnavailable(
            f"{where}: the connection was lost; unwritten events are not reported as written"
        )
    return JournalError(said.format("it refused a statement"))


def meaning_at_connect(error: Error, where: str) -> ActorsError:
    """Return the error of this package for a failed connection attempt."""
    said = str(error)
    for part, why in _AT_CONNECT.items():
        if part in said and "No such file" not in said:
            return ConfigError(f"{where}: {why}")
    return JournalUnavailable(f"{where}: no connection: {_reason(said)}")


def _reason(said: str) -> str:
    for part, why in _NOT_NOW.items():
        if part in said:
            return why
    return "it cannot be reached"


_NOT_NOW: Mapping[str, str] = {
    "too many": "it has too many connections; raise max_connections, or end some",
    "connection slots": "it has too many connections; raise max_connections, or end some",
    "starting up": "it starts",
    "shutting down": "it stops",
    "recovery mode": "it recovers from a crash",
    "refused": "nobody listens there",
    "No such file": "nobody listens there",
    "resolve host": "the host's name is not known",
    "timeout": "it does not answer",
    "read-only": "it is read-only; name the server that others copy from",
}
