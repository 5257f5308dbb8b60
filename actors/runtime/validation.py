"""Check the arguments of `Runtime` and `JournalAdmin`, and the values with which a session is opened or resumed.

An argument with a wrong type raises a one-line error before the call changes anything. The error messages of
`check_types` contain the type but not the value, because an address may contain a password, and an environment may
contain keys.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from os import PathLike
from types import EllipsisType
from typing import TYPE_CHECKING, Any, get_args

from msgspec import Struct

from actors.core.data.jsonio import sanitise
from actors.core.history.compaction import Compaction
from actors.core.settings.labels import Metadata, Scalar, checked_metadata, checked_title
from actors.core.settings.spending import Budget, checked_budget, checked_tenant
from actors.core.settings.values import is_number
from actors.core.turn.guards import Repeats
from actors.errors import ConfigError, InvalidIdentifier
from actors.journal.storage.directory import State
from actors.transport import HttpTransport

if TYPE_CHECKING:
    from pathlib import Path

    from actors.config import Config
    from actors.core.turn.batch import Approve
    from actors.provider.dumps import Dumps, OnRefusal
    from actors.tools.toolsets import ToolItem

MAX_PAGE = 1_000_000
"""Maximum number of sessions in one page of a list."""


class _ArgumentType(Struct, frozen=True):
    """The type of an argument: a description for error messages, and a function that checks a value."""

    description: str
    accepts: Callable[[object], bool]


def _instance_of(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _has_attributes(*names: str) -> Callable[[object], bool]:
    return lambda value: all(hasattr(value, each) for each in names)


def _is_path(value: object) -> bool:
    return isinstance(value, str | PathLike)


def _is_integer(value: object) -> bool:
    return type(value) is int


def _is_page(value: Any) -> bool:  # Any: callers may pass any value
    page: tuple[object, ...] = value
    return isinstance(value, tuple) and len(page) == 2 and is_number(page[0]) and _is_storable_string(page[1])


def _is_storable_string(value: object) -> bool:
    """Return True for a string that every storage accepts: valid Unicode without NUL."""
    return isinstance(value, str) and "\0" not in value and sanitise(value) == value


def _is_number(value: object) -> bool:
    # False for NaN, with which no time can be compared.
    return isinstance(value, int | float) and value == value


_is_config = _has_attributes("settings", "limits")
_is_storage = _has_attributes("open", "close", "claim", "append", "read", "durability")

_ARGUMENT_TYPES: Mapping[str, _ArgumentType] = {
    "config": _ArgumentType(
        "the path of an actors.toml, a Config", lambda value: _is_path(value) or _is_config(value)
    ),
    "environ": _ArgumentType("a mapping of names to strings", _instance_of(Mapping)),
    "journal": _ArgumentType(
        "the path of a file, a postgresql:// address, a Storage",
        lambda value: _is_path(value) or _is_storage(value),
    ),
    "transport": _ArgumentType("a Transport", _has_attributes("send", "close")),
    "seed": _ArgumentType("a whole number", _is_integer),
    "on_tool_error": _ArgumentType("a function", callable),
    "on_refusal": _ArgumentType(
        "a function, the path of a directory", lambda value: _is_path(value) or callable(value)
    ),
    "compaction": _ArgumentType("a Compaction", _instance_of(Compaction)),
    "budgets": _ArgumentType("a mapping of tenants.NAME and pools.NAME to Budgets", _instance_of(Mapping)),
    "address": _ArgumentType("a string", _instance_of(str)),
    "at": _ArgumentType("the number of an event", _is_integer),
    "tenant": _ArgumentType("a string", _instance_of(str)),
    "state": _ArgumentType("idle, running, awaiting or closed", lambda value: value in get_args(State)),
    "older_than": _ArgumentType("a datetime, a timedelta", _instance_of(datetime, timedelta)),
    "dry_run": _ArgumentType("True, False", _instance_of(bool)),
    "after": _ArgumentType("a StoredSession.page", _is_page),
}


def check_types(**arguments: object) -> None:
    """Check the types of arguments, which are passed as `name=value`. None is always accepted.

    Raises:
        ConfigError: An argument has a wrong type.
    """
    for name, value in arguments.items():
        if value is not None and not _ARGUMENT_TYPES[name].accepts(value):
            raise ConfigError(
                f"{name}= takes {_ARGUMENT_TYPES[name].description}, or None, not {type(value).__name__}"
            )


def check_wait(wait: object) -> None:
    """Check that a `wait=` argument is a number of seconds. Raises `ConfigError` otherwise."""
    if not _is_number(wait):
        raise ConfigError(f"wait= takes a number of seconds, not {wait!r:.40}")


def check_nonnegative(**arguments: object) -> None:
    """Check that arguments, which are passed as `name=value`, are numbers that are 0 or more.

    Raises:
        ConfigError: An argument is not a number, or is negative.
    """
    for name, value in arguments.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise ConfigError(f"{name}= takes a number that is 0 or more, not {value!r:.40}")


def absolute_path(path: str | PathLike[str]) -> "Path":
    """Return the path as an absolute path, which stays valid if the working directory changes.

    Raises:
        ConfigError: The argument is not the path of a file.
    """
    value: object = path
    if not _is_path(value) or "\0" in str(path) or not str(path):
        raise ConfigError(f"path= takes the path of a file, not {value!r:.40}")
    from pathlib import Path  # imported here, because few programs need it after the start

    return Path(path).absolute()


def check_limit(limit: object) -> None:
    """Check that a `limit=` argument is an integer from 0 to `MAX_PAGE`. Raises `ConfigError` otherwise."""
    if not (isinstance(limit, int) and 0 <= limit <= MAX_PAGE):
        raise ConfigError(f"limit= takes a whole number from 0 to {MAX_PAGE:,}, not {limit!r:.40}")


def checked_session_id(value: object) -> str:
    """Return the id of a session that a caller looks up. The session may not exist.

    Raises:
        ConfigError: The id is not a string.
        InvalidIdentifier: The id is a string that a storage does not accept.
    """
    if not isinstance(value, str):
        raise ConfigError(f"A session id must be a string, not {type(value).__name__}")
    if not _is_storable_string(value):
        raise InvalidIdentifier(
            f"Session id {value[:80]!r} is invalid; use 1 to 64 letters, digits, '_' or '-'"
        )
    return value


def checked_tenant_filter(tenant: str | None) -> str | None:
    """Return the tenant whose sessions a caller looks up, or None for the sessions of all tenants.

    Raises:
        ConfigError: `tenant` is not a string, or not the name of a tenant.
    """
    check_types(tenant=tenant)
    return None if tenant is None else checked_tenant(tenant)


def seconds_since_1970(time: datetime | None) -> float | None:
    """Convert an `older_than=` time to seconds since 1970. Return None if `time` is None.

    Raises:
        ConfigError: The system's clock cannot represent the time.
    """
    try:
        return None if time is None else time.timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"older_than= is outside the range of the system clock: {error}") from None


def refusal_dumps(on_refusal: "OnRefusal") -> "Dumps":
    """Convert the `on_refusal=` argument to the object that dumps rejected requests."""
    from actors.provider.dumps import Dumps

    return Dumps(on_refusal)


def load_configuration(config: "str | PathLike[str] | Config | None", environ: Mapping[str, str]) -> "Config":
    """Return `config` if it is a `Config`; otherwise load the file at this path, or the environment if it is None."""
    from actors.config import Config, load

    return config if isinstance(config, Config) else load(config, environ)


def http_transport(config: "Config", environ: Mapping[str, str]) -> HttpTransport:
    """Return the default transport of a runtime, with the configured limits and the proxies from the environment."""
    from actors.config.backend import guard

    limits = config.limits
    return HttpTransport(connections=limits.connections, connecting=limits.connecting, environ=guard(environ))


class SessionConfig(Struct, frozen=True):
    """The configuration with which `open` or `resume` starts a session. The log does not contain it.

    Args:
        tools: The tools that the model may call.
        approve: Decides whether a call that needs approval may run; None to wait for a decision of the caller.
        deps: Any object for the tools, which read it from `ToolContext.deps`.
        on_repeat: How to treat calls that the model repeats; None for the setting of the runtime.
        output: The answer type of a paused ask. Like the fields after it, only for `resume`.
        system: A new system prompt; `...` to keep the one in the log.
        target: A new target; None to keep the one in the log.
        wait: Maximum number of seconds to wait for another host to release the session.

    Raises:
        ConfigError: `approve` is not callable, or `system` or `wait` has a wrong type.
    """

    tools: "Iterable[ToolItem]" = ()
    approve: "Approve | None" = None
    deps: object = None
    on_repeat: Repeats | None = None
    output: Any = None  # Any: any type, or a JSON Schema
    system: str | EllipsisType | None = ...
    target: str | None = None
    wait: float = 0.0

    def __post_init__(self) -> None:
        if self.approve is not None and not callable(self.approve):
            raise ConfigError(
                f"approve= must be a function that takes a tool call, not {self.approve!r}; "
                "to approve every call, pass `lambda call: True`"
            )
        if not isinstance(self.system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a string, not {type(self.system).__name__}")
        check_wait(self.wait)


class SessionFields(Struct, frozen=True):
    """The part of a session's first event that the caller of `open` sets. On resume, the fields come from the log."""

    tenant: str
    budget: Budget | None
    title: str
    metadata: Metadata


def session_fields(
    tenant: str, budget: Budget | None, title: str, metadata: Mapping[str, Scalar] | None
) -> SessionFields:
    """Check these fields of a session's first event, and return them. Raise `ConfigError` if a field is invalid."""
    budget = None if budget is None else checked_budget(budget)
    return SessionFields(checked_tenant(tenant), budget, checked_title(title), checked_metadata(metadata))
