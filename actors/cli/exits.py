"""Define the exit codes of all commands. docs/reference/cli.md contains the same table."""

import signal
from enum import IntEnum
from errno import EIO
from typing import TYPE_CHECKING

from actors.errors import (
    ActorsError,
    AskFailed,
    ConfigError,
    CredentialFailed,
    JournalError,
    MediaError,
    MissingKey,
    OverBudget,
    ProviderFailed,
    TooManySessions,
    TranscriptError,
)

if TYPE_CHECKING:
    from actors.core.stream_events.ask_events import AskResult
    from actors.core.values.progress import Cause


class Exit(IntEnum):
    """The exit code of a command. `MEANING` explains each code."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CONFIG = 3
    AUTH = 4
    OVERLOADED = 5
    UNREACHABLE = 6
    LIMIT = 7
    NOT_APPROVED = 8
    JOURNAL = 9
    TIMEOUT = 124
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANING: dict[Exit, str] = {
    Exit.OK: "success; for `lint`, no violations",
    Exit.FAILED: "the turn failed, or the command found a problem, such as a broken rule or a refused request",
    Exit.USAGE: "the command line is wrong, or the input cannot be read",
    Exit.CONFIG: "the configuration cannot be used: a file, a target, a tool, a port, or a model that does not exist",
    Exit.AUTH: "a key is missing, or the provider rejects it",
    Exit.OVERLOADED: "the provider is overloaded, out of quota or failing, after retries",
    Exit.UNREACHABLE: "the provider cannot be reached, or the connection broke",
    Exit.LIMIT: "a limit of rounds (--max-rounds) or a budget (--max-cost) ended the turn; its calls are closed",
    Exit.NOT_APPROVED: "a call needed an approval or an external result, and there was no terminal to ask at",
    Exit.JOURNAL: "the journal cannot be read or written, is damaged, or is not a journal",
    Exit.TIMEOUT: "the turn exceeded --timeout and was stopped; its calls are closed",
    Exit.HANGUP: "the terminal was closed (SIGHUP); the turn was cancelled",
    Exit.INTERRUPTED: "interrupted (SIGINT); the turn was cancelled",
    Exit.TERMINATED: "terminated (SIGTERM); the turn was cancelled",
}

EXIT_BY_SIGNAL = {
    getattr(signal, name): code
    for name, code in (("SIGINT", Exit.INTERRUPTED), ("SIGTERM", Exit.TERMINATED), ("SIGHUP", Exit.HANGUP))
    if hasattr(signal, name)
}
"""The exit code for each signal that cancels a turn and ends the command. A platform may lack some signals."""

MESSAGES = {
    Exit.INTERRUPTED: "interrupted",
    Exit.TERMINATED: "terminated",
    Exit.HANGUP: "the terminal was closed",
}
"""The message that a command prints when a signal ends it, by exit code."""

_EXIT_BY_ERROR: tuple[tuple[type[BaseException], Exit], ...] = (
    (MissingKey, Exit.AUTH),
    (CredentialFailed, Exit.AUTH),
    (ConfigError, Exit.CONFIG),
    (MediaError, Exit.USAGE),
    (TranscriptError, Exit.USAGE),
    (ProviderFailed, Exit.UNREACHABLE),
    (OverBudget, Exit.LIMIT),
    (TooManySessions, Exit.LIMIT),
    (JournalError, Exit.JOURNAL),
    (ActorsError, Exit.FAILED),
    (OSError, Exit.USAGE),
)


def exit_for_error(error: BaseException) -> Exit:
    """Return the exit code for an error that ended a command. An unknown error has the code `FAILED`."""
    if isinstance(error, OSError) and error.errno == EIO and error.filename is None:
        return Exit.HANGUP  # the terminal was closed
    if isinstance(error, AskFailed) and hasattr(error, "result"):
        return exit_for_result(error.result)
    return next((code for kind, code in _EXIT_BY_ERROR if isinstance(error, kind)), Exit.FAILED)


def exit_for_result(result: "AskResult") -> Exit:
    """Return the exit code for the result of an ask."""
    if result.status == "failed":
        return _exit_of_cause(result.attempts[-1].cause if result.attempts else None)
    if result.status == "complete" and result.error:  # a limit was reached before the last calls ran
        return Exit.LIMIT
    return _EXIT_BY_STATUS.get(result.status, Exit.INTERRUPTED)


_EXIT_BY_STATUS = {
    "complete": Exit.OK,
    "late": Exit.OK,
    "awaiting": Exit.NOT_APPROVED,
    "interrupted": Exit.FAILED,
}


def _exit_of_cause(cause: "Cause | None") -> Exit:
    if cause is None:
        return Exit.FAILED
    if cause.status in (401, 403):
        return Exit.AUTH
    if cause.kind in _EXIT_BY_LIMIT:
        return _EXIT_BY_LIMIT[cause.kind]
    code = EXIT_BY_KIND.get(cause.kind, Exit.FAILED)
    return Exit.UNREACHABLE if code is Exit.OVERLOADED and cause.status is None else code


_EXIT_BY_LIMIT = {"limit": Exit.LIMIT, "time": Exit.TIMEOUT}
"""The exit code for each cause that is a limit from the command line."""

EXIT_BY_KIND = {
    **dict.fromkeys(("transient", "rate_limit", "quota", "overloaded", "circuit_open"), Exit.OVERLOADED),
    "config": Exit.CONFIG,
    **dict.fromkeys(
        ("too_big_for_bucket", "overflow", "transcript", "model_fault", "parameter", "media"), Exit.FAILED
    ),
    **dict.fromkeys(("too_long", "refusal"), Exit.FAILED),
}
"""The exit code for each kind of failure. `actors.adapters.failure` defines the kinds but is slow to import."""
