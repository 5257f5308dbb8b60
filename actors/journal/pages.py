"""Read a log page by page.

Code that resumes, forks, exports or deletes a session uses this module. The next page is requested only after the
previous page was processed. So the readers of the journal take turns, and a long log does not block the event loop.
"""

from typing import Self

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.commands import JournalCommand, ReadLog
from actors.journal.read_throttle import ReadThrottle
from actors.journal.storage import PAGE, LogPage
from actors.kernel import Ref


class LogPages:
    """An async iterator over the pages of a log. It ends at the event that was the last one when the first page was
    read.

    Args:
        journal: The address of the journal actor.
        session: The id of the session.
        after: The number of the event before the first page.
        as_writer: Whether the reader will append to the log; see `ReadLog`. This implies `urgent`.
        urgent: Whether a session is waiting for the pages. They are then read even if the read queue is full.
        throttle: Delays and shortens the reads after the first page while writes are pending. None means no delay.
    """

    def __init__(
        self,
        journal: Ref[JournalCommand],
        session: str,
        *,
        after: int = 0,
        as_writer: bool = False,
        urgent: bool = False,
        throttle: ReadThrottle | None = None,
    ) -> None:
        self._journal, self._session, self._is_writer = journal, session, as_writer
        self._throttle = throttle
        self._urgent = as_writer or urgent
        self._end = after
        self.last: int | None = None
        """The number of the last event of the log; None until the first page was read."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LogPage:
        """Return the next page, which contains at least one event.

        Raises:
            JournalError: The page cannot be read, or the log was deleted in the meantime.
        """
        is_first = self.last is None
        if self.last is not None and self._end >= self.last:
            raise StopAsyncIteration
        as_writer = self._is_writer and is_first
        if self._throttle is not None and not is_first:
            await self._throttle.pause()
        most = PAGE if self._throttle is None else self._throttle.page_size(PAGE)
        page = await self._journal.ask(
            ReadLog(self._session, self._end, as_writer=as_writer, most=most, urgent=self._urgent)
        )
        self.last = page.last if self.last is None else self.last
        page = page.up_to(self.last)
        if self._end >= self.last:
            raise StopAsyncIteration
        if not page.events:
            raise JournalError(
                f"Event {self._end + 1} of {self.last} of session {self._session!r} was deleted while the log was "
                "read; read the log again"
            )
        self._end = page.end
        return page


async def read_log(
    journal: Ref[JournalCommand],
    session: str,
    *,
    as_writer: bool = False,
    throttle: ReadThrottle | None = None,
) -> list[LogEvent]:
    """Return all events of a session's log. The list is empty if the session has no log.

    `LogPages` describes the arguments.

    Raises:
        JournalError: The log cannot be read.
    """
    events = list[LogEvent]()
    async for page in LogPages(journal, session, as_writer=as_writer, throttle=throttle):
        events += page.events
    return events
