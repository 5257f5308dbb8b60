"""How a log event leaves: through structlog as the program has configured it, else as a record of `logging`.

In:  a level, the event's name, and its fields.
Out: one event of the program's structlog; or one record whose message is the event and its fields on one line, and
     which has each field as an attribute too, for formatters that write JSON.

Texts may come from tools, MCP servers and providers. So each is cut, and whatever in it cannot be printed is written
out (`\\x1b`, `\\n`): no renderer and no terminal is given a control character, and nobody can begin a line of the log
but the log itself. The lines of a traceback follow its event, each behind `MARGIN`.

Neither library is configured here: that is the program's business. Both are imported at the first event.
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
"""What a field of an event may be."""

RUNTIME, TOOLS = "actors", "actors.tools"
"""The loggers: of the runtime, and of what the program's own tools do."""
NUMBERS: Mapping[Level, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The levels of `logging`."""
MOST_TEXT = 2_000
"""Characters of a text in a field."""
MOST_TRACE = 200
"""Lines of a traceback: the first half of them and the last."""
MARGIN = "    | "
"""Stands before each line of a traceback."""


def emit(level: Level, event: str, *, logger: str = RUNTIME, trace: str = "", **fields: Value) -> None:
    """Log an event.

    Args:
        level: How much it matters.
        event: Its name, which is ours.
        logger: Whose it is.
        trace: A traceback of `trace_of`.
        fields: What there is to know of it. None bears the name of an attribute that records of `logging` have.
    """
    import structlog

    if structlog.is_configured():
        _emit_to_structlog(level, event, logger, trace, fields)
    else:
        _emit_to_logging(level, event, logger, trace, fields)


def is_wanted(level: Level, logger: str) -> bool:
    """Say whether anybody may want events of this level, as far as that can be told: what is dear is not made then."""
    import structlog

    if not structlog.is_configured():
        return _logger(logger).isEnabledFor(NUMBERS[level])
    bound = _bound(logger)
    asked = getattr(bound, "is_enabled_for", None) or getattr(bound, "isEnabledFor", None)
    return asked is None or bool(asked(NUMBERS[level]))


def _emit_to_structlog(level: Level, event: str, logger: str, trace: str, fields: dict[str, Value]) -> None:
    escaped = {name: escape(value) for name, value in fields.items()}
    getattr(_bound(logger), level)(event, **escaped, **({"exception": trace} if trace else {}))


def _bound(logger: str) -> Any:  # Any: of whatever class the program says
    """Return a logger as the program has configured them; in place of an asynchronous one, which nobody would await,
    that of `logging`."""
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
    record.exc_text = trace or None  # and no `exc_info`: some handlers show local variables with it
    out.handle(record)


def _logger(name: str) -> "logging.Logger":
    import logging

    return logging.getLogger(name)


def line_of(event: str, fields: Mapping[str, Value]) -> str:
    """Return an event as one line. Texts are Python literals, so no value can pass for another field."""
    pairs = chain([("event", event)], fields.items())
    return " ".join(f"{name}={_literal(value)}" for name, value in pairs)


def _literal(value: Value) -> str:
    if isinstance(value, str):
        return repr(_cut(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(name)}: {count!r}' for name, count in value.items())}}}"
    return repr(value)


def escape(value: Value) -> Value:
    """Return a field's value with each text cut and printable."""
    if isinstance(value, str):
        return printable(_cut(value))
    if isinstance(value, list):
        return [printable(_cut(text)) for text in value]
    if isinstance(value, dict):
        return {printable(_cut(name)): count for name, count in value.items()}
    return value


def printable(text: str) -> str:
    """Return a text with what cannot be printed written out, as Python writes it in a literal.

    Control characters are that, line breaks of any kind, marks of writing direction, and lone surrogates.
    """
    return text if text.isprintable() else "".join(map(_printable_character, text))


def _printable_character(character: str) -> str:
    return character if character.isprintable() else repr(character)[1:-1]


def _cut(text: str) -> str:
    text = str.__str__(text)  # a subclass of str has methods of its own
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 6]} [cut]"


def trace_of(error: BaseException) -> str:
    """Return an error's traceback, with no character in it but those of its lines, each behind `MARGIN`.

    What the error says of itself may have lines too, and so they are no lines of the log.
    """
    import traceback

    lines = "".join(traceback.format_exception(error)).rstrip("\n").split("\n")
    if len(lines) > MOST_TRACE:
        half = MOST_TRACE // 2
        lines = [*lines[:half], f"[{len(lines) - 2 * half} lines cut]", *lines[-half:]]
    return "\n".join(map(partial("{}{}".format, MARGIN), map(printable, map(_cut, lines))))
