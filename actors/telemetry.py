"""What the runtime says about itself: structured log events. Ids, names and counts only; no content, no keys.

Events are structured by structlog, imported at the first one, and handed to the standard library's logger `actors`,
which is not configured here: that is the program's business.
"""

import logging
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from actors.errors import ActorsError

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def crashed(actor: str, error: BaseException) -> None:
    """Log that an actor's handler or child raised; its supervisor is about to act on it.

    The place is logged, and no traceback: some renderers print local variables with it, and those hold keys.
    """
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "unknown"
    _logger().error("actor_crashed", actor=actor, error=_words(error), place=place)


def _words(error: BaseException) -> str:
    """Return an error's type, and its text where it is ours: others' may quote what they were working on."""
    kind = type(error).__name__
    return f"{kind}: {error}"[:500] if isinstance(error, ActorsError) else kind


def refused(session: str, binding: str, why: str) -> None:
    """Log that a provider or the judge refused a transcript for its structure: our bug."""
    _logger().error("transcript_refused", session=session, binding=binding, why=why)


def withheld(round_: str, reasons: Sequence[str]) -> None:
    """Log that a provider hid parts of a request from its model: reasoning that does not fit, our bug."""
    _logger().error("input_withheld", round=round_, reasons=sorted(set(reasons)))


def _logger() -> "FilteringBoundLogger":
    import structlog

    processors = [structlog.processors.KeyValueRenderer(key_order=["event"])]
    logger: FilteringBoundLogger = structlog.wrap_logger(
        logging.getLogger("actors"), processors, wrapper_class=structlog.make_filtering_bound_logger(0)
    )
    return logger
