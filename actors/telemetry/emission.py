"""Send log events to structlog if the program has configured structlog, otherwise to `logging`.

In:  a level, the event's name, and its fields.
Out: one structlog event; or one `logging` record. The record's message is the event with its fields on one line, and
     each field is an attribute of the record, for formatters that write JSON.

Strings may come from tools, MCP servers and providers, so long strings are truncated and unprintable characters are
escaped (`\\x1b`, `\\n`). So no control character reaches a renderer or a terminal, and no string can forge a line of
the log. The lines of a traceback follow the line of the event, each prefixed with `MARGIN`.

Fields contain no content of conversations. The message of an error may quote content, so only errors of this package
are described with their message.

`actors.telemetry.logger` decorates its functions with `never_raising`: an event that cannot be logged is dropped. This
module imports structlog and `logging` at the first event, and configures neither.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial, wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias

from actors.errors import ActorsError, Fault
from actors.kernel.host_code import call_host

if TYPE_CHECKING:
    import logging

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Scalar | list[str] | dict[str, int]
"""The types that a field of an event may have."""
RUNTIME, TOOLS = "actors", "actors.tools"
"""Names of the two loggers. `actors.tools` receives the events about the program's tools, `actors` all other events."""
LEVEL_NUMBERS: Mapping[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The number of each level in `logging`."""
MAX_CHARACTERS = 2_000
"""Maximum characters of a string in a field."""
MAX_TRACE_LINES = 200
"""Maximum lines of a traceback: half from its start, half from its end."""
MARGIN = "    | "
"""The prefix of each line of a traceback."""
P = ParamSpec("P")
MAX_ENTRIES = 50
"""Maximum entries of a list in an event."""


def emit(level: Level, event: str, *, logger: str = RUNTIME, trace: str = "", **fields: Value) -> None:
    """Log an event.

    Args:
        level: The severity.
        event: The name of the event, a constant of this package.
        logger: The name of the logger.
        trace: A traceback, formatted by `format_traceback`; empty if the event has none.
        fields: The fields of the event. Their names must differ from the attributes of `logging` records.
    """
    import structlog

    if structlog.is_configured():
        _emit_to_structlog(level, event, logger, trace, fields)
    else:
        _emit_to_logging(level, event, logger, trace, fields)


def is_level_enabled(level: Level, logger: str) -> bool:
    """Return True if the logger accepts events of this level. Callers ask before they compute expensive fields."""
    import structlog

    if not structlog.is_configured():
        return _logging_logger(logger).isEnabledFor(LEVEL_NUMBERS[level])
    bound = _structlog_logger(logger)
    asked = getattr(bound, "is_enabled_for", None) or getattr(bound, "isEnabledFor", None)
    return asked is None or bool(asked(LEVEL_NUMBERS[level]))


def _emit_to_structlog(level: Level, event: str, logger: str, trace: str, fields: dict[str, Value]) -> None:
    escaped = {name: escape(value) for name, value in fields.items()}
    getattr(_structlog_logger(logger), level)(event, **escaped, **({"exception": trace} if trace else {}))


def _structlog_logger(logger: str) -> Any:  # Any: the program configures the class of the logger
    """Return a structlog logger with the program's configuration.

    If the program has configured an asynchronous logger, the result is structlog's synchronous wrapper of `logging`
    instead, because events are logged without `await`.
    """
    import structlog

    configured, waiting = structlog.get_config()["wrapper_class"], structlog.stdlib.AsyncBoundLogger
    is_waiting = isinstance(configured, type) and issubclass(configured, waiting)
    kind = structlog.stdlib.BoundLogger if is_waiting else None
    return structlog.wrap_logger(None, wrapper_class=kind, logger_factory_args=(logger,)).bind(logger=logger)


def _emit_to_logging(level: Level, event: str, logger: str, trace: str, fields: dict[str, Value]) -> None:
    out, number = _logging_logger(logger), LEVEL_NUMBERS[level]
    if not out.isEnabledFor(number):
        return
    extra = {"event": event, **{name: escape(value) for name, value in fields.items()}}
    record = out.makeRecord(logger, number, __file__, 0, format_line(event, fields), (), None, extra=extra)
    record.exc_text = trace or None  # not `exc_info`: some handlers would log local variables
    out.handle(record)


def _logging_logger(name: str) -> "logging.Logger":
    import logging

    return logging.getLogger(name)


def format_line(event: str, fields: Mapping[str, Value]) -> str:
    """Return an event with its fields as one line.

    Strings become Python literals, so the value of one field cannot imitate another field.
    """
    pairs = chain([("event", event)], fields.items())
    return " ".join(f"{name}={_format_literal(value)}" for name, value in pairs)


def _format_literal(value: Value) -> str:
    if isinstance(value, str):
        return repr(_truncate(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_format_literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_format_literal(name)}: {count!r}' for name, count in value.items())}}}"
    return repr(value)


def escape(value: Value) -> Value:
    """Return the value of a field with its strings truncated and escaped."""
    if isinstance(value, str):
        return escape_unprintable(_truncate(value))
    if isinstance(value, list):
        return [escape_unprintable(_truncate(text)) for text in value]
    if isinstance(value, dict):
        return {escape_unprintable(_truncate(name)): count for name, count in value.items()}
    return value


def escape_unprintable(text: str) -> str:
    """Return a string with its unprintable characters escaped as in a Python literal.

    Control characters, all line breaks, bidirectional marks and lone surrogates are unprintable.
    """
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _truncate(text: str) -> str:
    """Shorten a string to `MAX_CHARACTERS` characters, with a marker at the cut."""
    text = str.__str__(text)  # an exact str: a subclass may override the methods used here
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 6]} [cut]"


def format_traceback(error: BaseException) -> str:
    """Return an error's traceback with unprintable characters escaped, and with `MARGIN` before each line.

    Without this prefix, a line break in the error's message could forge a line of the log.
    """
    import traceback

    lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    if len(lines) > MAX_TRACE_LINES:
        half = MAX_TRACE_LINES // 2
        lines = [*lines[:half], f"[{len(lines) - 2 * half} lines cut]", *lines[-half:]]
    return "\n".join(map(partial("{}{}".format, MARGIN), map(escape_unprintable, map(_truncate, lines))))


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


def raise_location(error: BaseException) -> str:
    """Return the file and line that raised an error, such as `tools.py:12`."""
    place, step = "unknown", error.__traceback__
    while step is not None:
        place = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return place


def error_type(error: BaseException) -> str:
    return type(error).__name__


def describe_error(error: BaseException) -> str:
    """Return the type of an error and, for an error of this package, its message. Other messages may quote content."""
    kind = error_type(error)
    return f"{kind}: {error}"[:500] if isinstance(error, ActorsError) else kind


def describe_fault(fault: Fault) -> str:
    """Return one line with the class of a fault, its rule and the ids of its calls."""
    words = [fault.fault_class, fault.rule or "no known rule", *limit_names(fault.call_ids)]
    return " ".join(words)


def limit_names(values: Sequence[str]) -> list[str]:
    """Return the first `MAX_ENTRIES` values, followed by the number of omitted values."""
    more = [f"and {len(values) - MAX_ENTRIES} more"] if len(values) > MAX_ENTRIES else []
    return [*values[:MAX_ENTRIES], *more]
