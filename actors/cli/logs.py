"""What the runtime says about itself, on standard error where it is asked for."""

import logging

from actors.cli.screen import safe


def show_logs(*, debug: bool) -> None:
    """Have what tools raise, and what the runtime says about itself, shown on standard error; or nowhere."""
    handler: logging.Handler = logging.StreamHandler() if debug else logging.NullHandler()
    handler.setFormatter(_Safe())
    logger = logging.getLogger("actors")
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.DEBUG)


class _Safe(logging.Formatter):
    """What may reach a terminal of a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return safe(super().format(record))
