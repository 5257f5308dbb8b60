"""Log events without raising: an event that cannot be logged is dropped.

`actors.telemetry.logger` decorates its functions with `never_raising`.
"""

import sys
from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import ParamSpec

from actors.kernel.host_code import call_host
from actors.telemetry.emission import escape_unprintable

P = ParamSpec("P")


def never_raising(log: Callable[P, None]) -> Callable[P, None]:
    """Decorate a logging function so that it never raises. The program's log handlers may raise any exception.

    The first failure of each exception type is reported on standard error.
    """

    @wraps(log)
    def log_safely(*args: P.args, **kwargs: P.kwargs) -> None:
        call_host(partial(log, *args, **kwargs), _on_log_failure)

    return log_safely


def _on_log_failure(error: BaseException) -> None:
    call_host(partial(_report_lost_event, type(error).__name__), lambda _: None)


@lru_cache(maxsize=16)
def _report_lost_event(error: str) -> None:
    """Report on standard error that an event was dropped, once per exception type. `error` is the type's name."""
    if (stream := sys.stderr) is not None:
        print(
            f"actors: a log event was dropped because logging it raised {escape_unprintable(error)}",
            file=stream,
        )
