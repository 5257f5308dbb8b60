"""Show the runtime's log on standard error while a command runs."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

from actors.cli.screen import escape_controls


@contextmanager
def logging_to_stderr(*, debug: bool) -> Generator[None]:
    """If `debug` is True, write the runtime's log records and tools' tracebacks to standard error.

    If `debug` is False, discard them.
    """
    handler: logging.Handler = logging.StreamHandler() if debug else logging.NullHandler()
    handler.setFormatter(_EscapingFormatter())
    logger = logging.getLogger("actors")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        level, logger.propagate = before
        logger.setLevel(level)


class _EscapingFormatter(logging.Formatter):
    """A log formatter that escapes control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record))
