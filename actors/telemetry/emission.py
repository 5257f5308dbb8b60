"""Emit log events through structlog if the program has configured it, otherwise as records of `logging`.

In:  a level, the event's name, and its fields.
Out: one event of the program's structlog; or one record whose message is the event and its fields on one line, and
     which also has each field as an attribute, for formatters that write JSON.

Strings may come from tools, MCP servers and providers, so they are cut, and unprintable characters are escaped
(`\\x1b`, `\\n`). Neither a renderer nor a terminal receives a control character, and no string can forge a line of the
log. The lines of a traceback follow its event, each prefixed with `MARGIN`.

This module configures neither library, and imports both at the first event.
"""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import logging

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Plain: TypeAlias = str | int | float | bool | None
Value: TypeAlias = Plain | list[str] | dict[str, int]
"""The possible values of an event's field."""

RUNTIME, TOOLS = "actors", "actors.tools"
"""The names of the loggers of the runtime and of the program's tools."""
NUMBERS: Mapping[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The levels of `logging`."""
MOST_TEXT = 2_000
"""Maximum characters of a string in a field."""
MOST_TRACE = 200
"""Maximum lines of a traceback: half from its start, half from its end."""
MARGIN = "    | "
"""The prefix of each line of a traceback."""


def emit(level: Level, event: str, *, logger: str = RUNTIME, trace: str = "", **fields: Value) -> None:
    """Log an event.

    Args:
        level: The severity.
        event: The name of the event, a constant of this package.
        logger: The name of the logger.
        trace: A traceback of `trace_of`.
        fields: The fields of the event. Their names must not be attributes of `logging` records.
    """
    import structlog

    if structlog.is_configured():
        _emit_to_structlog(level, event, logger, trace, fields)
    else:
        _emit_to_logging(level, event, logger, trace, fields)


def is_wanted(level: Level, logger: str) -> bool:
    """Return False if no logger accepts events of this level, so that callers can skip expensive fields."""
    import structlog

    if not structlog.is_configured():
        return _logger(logger).isEnabledFor(NUMBERS[level])
    bound = _bound(logger)
    asked = getattr(bound, "is_enabled_for", None) or getattr(bound, "isEnabledFor", None)
    return asked is None or bool(asked(NUMBERS[level]))


def _emit_to_structlog(level: Level, event: str, logger: str, trace: str, fields: dict[str, Value]) -> None:
    escaped = {name: escape(value) for name, value in fields.items()}
    getattr(_bound(logger), level)(event, **escaped, **({"exception": trace} if trace else {}))


def _bound(logger: str) -> Any:  # Any: of the class that the program configured
    """Return a logger with the program's configuration. An asynchronous logger, which would have to be awaited, is
    replaced with structlog's wrapper of `logging`.
    """
    import structlog

    configured, waiting = structlog.get_config()["wrapper_class"], structlog.stdlib.AsyncBoundLogger
    is_waiting = isinstance(configured, type) and issubclass(configured, waiting)
    kind = structlog.stdlib.BoundLogger if is_waiting else None
    return structlog.wrap_logger(None, wrapper_class=kind, logger_factory_args=(logger,)).bind(logger=logger)


def _emit_to_logging(level: Level, event: str, logger: str, trace: str, fields: dict[str, Value]) -> None:
    out, number = _logger(logger), NUMBERS[level]
    if not out.isEnabledFor(number):
        return
    extra = {"event": event, **{name: escape(value) for name, value in fields.items()}}
    record = out.makeRecord(logger, number, __file__, 0, line_of(event, fields), (), None, extra=extra)
    record.exc_text = trace or None  # not `exc_info`: some handlers would log local variables
    out.handle(record)


def _logger(name: str) -> "logging.Logger":
    import logging

    return logging.getLogger(name)


def line_of(event: str, fields: Mapping[str, Value]) -> str:
    """Return an event as one line. Strings are Python literals, so a value cannot imitate another field."""
    pairs = chain([("event", event)], fields.items())
    return " ".join(f"{name}={_literal(value)}" for name, value in pairs)


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return repr(_clip(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(name)}: {count!r}' for name, count in value.items())}}}"
    return repr(value)


def escape(value: Value) -> Value:
    """Return a field's value with strings cut and escaped."""
    if isinstance(value, str):
        return printable(_clip(value))
    if isinstance(value, list):
        return [printable(_clip(text)) for text in value]
    if isinstance(value, dict):
        return {printable(_clip(name)): count for name, count in value.items()}
    return value


def printable(text: str) -> str:
    """Return a text with unprintable characters escaped as in a Python literal.

    Unprintable are control characters, all line breaks, marks of writing direction, and lone surrogates.
    """
    return text if text.isprintable() else "".join(map(_printable_character, text))


def _printable_character(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _clip(text: str) -> str:
    text = str.__str__(text)  # a subclass of str may override methods
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 6]} [cut]"


def trace_of(error: BaseException) -> str:
    """Return an error's traceback, escaped, with each line prefixed with `MARGIN`.

    The error's message may contain line breaks, which must not start a line of the log.
    """
    import traceback

    lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    if len(lines) > MOST_TRACE:
        half = MOST_TRACE // 2
        lines = [*lines[:half], f"[{len(lines) - 2 * half} lines cut]", *lines[-half:]]
    return "\n".join(map(partial("{}{}".format, MARGIN), map(printable, map(_clip, lines))))
