"""Check the arguments of `Runtime` and `JournalAdmin`.

An argument of a wrong type raises an error of one line before anything has changed. Errors do not repeat the value,
because an address may contain a password, and an environment may contain keys.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct

from actors.core.history.compaction import Compaction
from actors.errors import ConfigError
from actors.journal.storage.directory import State
from actors.transport import HttpTransport

if TYPE_CHECKING:
    from pathlib import Path

    from actors.config import Config
    from actors.provider.dumps import Dumps, OnRefusal

MOST = 1_000_000
"""Most sessions in one page of a list."""


class _Kind(Struct, frozen=True):
    """The accepted values of an argument: a description and a check."""

    words: str
    takes: Callable[[object], bool]


def _is(*types: type) -> Callable[[object], bool]:
    return lambda given: isinstance(given, types)


def _has_members(*members: str) -> Callable[[object], bool]:
    return lambda given: all(hasattr(given, each) for each in members)


def _is_path(given: object) -> bool:
    return isinstance(given, str | PathLike)


def _is_whole(given: object) -> bool:
    return type(given) is int


def _is_page(given: Any) -> bool:  # Any: what a caller passes
    page: tuple[object, ...] = given
    return isinstance(given, tuple) and len(page) == 2 and _is_number(page[0]) and isinstance(page[1], str)


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and given == given  # NaN would never be reached


_is_config = _has_members("settings", "limits")
_is_storage = _has_members("open", "close", "claim", "append", "read", "durability")

_KINDS: Mapping[str, _Kind] = {
    "config": _Kind(
        "the path of an actors.toml, a Config", lambda given: _is_path(given) or _is_config(given)
    ),
    "environ": _Kind("a mapping of names to strings", _is(Mapping)),
    "journal": _Kind(
        "the path of a file, a postgresql:// address, a Storage",
        lambda given: _is_path(given) or _is_storage(given),
    ),
    "transport": _Kind("a Transport", _has_members("send", "close")),
    "seed": _Kind("a whole number", _is_whole),
    "on_tool_error": _Kind("a function", callable),
    "on_refusal": _Kind(
        "a function, the path of a directory", lambda given: _is_path(given) or callable(given)
    ),
    "compaction": _Kind("a Compaction", _is(Compaction)),
    "budgets": _Kind("a mapping of tenants.NAME and pools.NAME to Budgets", _is(Mapping)),
    "at": _Kind("the number of an event", _is_whole),
    "tenant": _Kind("a string", _is(str)),
    "state": _Kind("idle, running, awaiting or closed", lambda given: given in get_args(State)),
    "older_than": _Kind("a datetime, a timedelta", _is(datetime, timedelta)),
    "dry_run": _Kind("True, False", _is(bool)),
    "after": _Kind("what StoredSession.page is", _is_page),
}


def check_given(**arguments: object) -> None:
    """Check the types of arguments that may be None.

    Raises:
        ConfigError: An argument has a wrong type.
    """
    for name, given in arguments.items():
        if given is not None and not _KINDS[name].takes(given):
            raise ConfigError(f"{name}= takes {_KINDS[name].words}, or None, not {type(given).__name__}")


def check_wait(wait: object) -> None:
    """Check a `wait=` argument. Raises `ConfigError`."""
    if not _is_number(wait):
        raise ConfigError(f"wait= takes seconds, not {wait!r:.40}")


def absolute_path(path: str | PathLike[str]) -> "Path":
    """Return the absolute path of a file, which stays valid if the working directory changes. Raises `ConfigError`."""
    given: object = path
    if not _is_path(given) or "\0" in str(path) or not str(path):
        raise ConfigError(f"path= takes the path of a file, not {given!r:.40}")
    from pathlib import Path  # few programs name a path after the start

    return Path(path).absolute()


def check_limit(limit: object) -> None:
    """Check a `limit=` argument. Raises `ConfigError`."""
    if not (isinstance(limit, int) and 0 <= limit <= MOST):
        raise ConfigError(f"limit= takes a whole number from 0 to {MOST:,}, not {limit!r:.40}")


def session_id(given: object) -> str:
    """Return the id of a session. Raises `ConfigError` if it is not a string."""
    if not isinstance(given, str):
        raise ConfigError(f"A session's id is a string, not {type(given).__name__}")
    return given


def seconds_of(time: datetime | None) -> float | None:
    """Return a time in seconds since 1970. Raises `ConfigError` if the time is out of range."""
    try:
        return None if time is None else time.timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"older_than= is outside the range of the system clock: {error}") from None


def dumps_to(to: "OnRefusal") -> "Dumps":
    """Return the dumps of rejected requests. Imported here, because most programs do not use them."""
    from actors.provider.dumps import Dumps

    return Dumps(to)


def configuration(given: "str | PathLike[str] | Config | None", environ: Mapping[str, str]) -> "Config":
    """Return a configuration. Imported here, because the import is slow and not needed earlier."""
    from actors.config import Config, load

    return given if isinstance(given, Config) else load(given, environ)


def http_transport(config: "Config", environ: Mapping[str, str]) -> HttpTransport:
    """Return the default transport of a runtime."""
    from actors.config.environment import guard

    limits = config.limits
    return HttpTransport(connections=limits.connections, connecting=limits.connecting, environ=guard(environ))
