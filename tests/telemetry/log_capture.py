"""The runtime's log from the view of a program: records of `logging`, or events of a configured structlog."""

import ast
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from structlog.typing import EventDict, WrappedLogger

import actors.telemetry.logger


class LoggedEvent(NamedTuple):
    """An event that the runtime may log, according to its source."""

    name: str
    level: str
    logger: str
    fields: tuple[str, ...]


def events_in_source() -> Iterator[LoggedEvent]:
    """Yield every event that `actors.telemetry.logger` logs."""
    source = Path(actors.telemetry.logger.__file__).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "emit":
            level, name = (ast.literal_eval(each) for each in node.args)
            names = [str(each.arg) for each in node.keywords]
            logger = "actors.tools" if "logger" in names else "actors"
            fields = tuple(each for each in names if each not in ("logger", "trace"))
            yield LoggedEvent(name, level, logger, fields)


@contextmanager
def configure_structlog(
    *processors: Any, **options: Any
) -> Iterator[list[EventDict]]:  # Any: as structlog takes
    """Configure structlog as a program does; yield the list that receives its events."""
    seen: list[EventDict] = []

    def keep(logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
        seen.append({**event})
        return event

    stamped = (
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    )
    structlog.configure(
        processors=[*stamped, keep, *(processors or (_drop,))],
        **{"logger_factory": structlog.PrintLoggerFactory(io.StringIO()), **options},
    )
    try:
        yield seen
    finally:
        structlog.reset_defaults()


class RecordLines:
    """The last processor: stores each rendered line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, logger: WrappedLogger, level: str, line: str) -> str:
        self.lines.append(line)
        return line


def _drop(logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
    raise structlog.DropEvent


def events_named(
    events: Sequence[Mapping[str, Any]], name: str
) -> list[Mapping[str, Any]]:  # Any: fields of an event
    """Return the events with a name."""
    return [event for event in events if event["event"] == name]


@contextmanager
def capture_output(formatter: logging.Formatter, level: int = logging.DEBUG) -> Iterator[io.StringIO]:
    """Yield the output of a handler of the logger `actors`."""
    stream, logger = io.StringIO(), logging.getLogger("actors")
    handler, before = logging.StreamHandler(stream), logger.level
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield stream
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
