"""Keep the last requests that providers rejected because of their structure, and dump them if the program requests
that.

A request with an invalid structure is a bug in this library, so the runtime keeps the evidence.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from actors.core.transcript.diagnostics import Refusal
from actors.kernel.tasks import Work
from actors.telemetry import logger

if TYPE_CHECKING:
    from actors.config import Config
    from actors.provider.dumps import Dumps

EVIDENCE = 16
"""Number of rejected transcripts that a runtime keeps."""


class RefusedRequests:
    """The requests of a runtime that providers rejected because of their structure.

    Args:
        config: Defines the dialects of the requests.
        dumps: Writes dumps; None if the program did not set `on_refusal`.

    The attribute `last` contains the last rejected requests, oldest first, and `count` is the number of all rejected
    requests. `start_dump` starts the task that writes a dump; it is None while the runtime is not running.
    """

    def __init__(self, config: "Config", dumps: "Dumps | None") -> None:
        self._config, self._dumps = config, dumps
        self.last: deque[Refusal] = deque(maxlen=EVIDENCE)
        self.count: int = 0
        self.start_dump: Callable[[Work, str], None] | None = None

    def record(self, refusal: Refusal) -> None:
        """Count, keep and log a rejected request, and dump it if the program set `on_refusal`."""
        self.count += 1
        self.last.append(refusal)
        logger.transcript_refused(refusal)
        if self._dumps is not None and self.start_dump is not None and self._dumps.try_reserve():
            codec = self._config.dialect(refusal.report.dialect)
            self.start_dump(partial(self._dumps.dump, refusal, codec, self.count), f"dump/{self.count}")
