"""Read a log page by page.

Used wherever a whole log is read: to resume, fork, export and delete sessions. The next page is requested when the
previous page has been used, so other readers of the journal take turns, and no long log occupies the event loop.
"""

from typing import Self

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.commands import JournalCommand, ReadLog
from actors.journal.read_throttle import ReadThrottle
from actors.journal.storage import PAGE, LogPage
from actors.kernel import Ref


class LogPages:
    """An async iterator over the pages of a log, up to the event that was last when the first page was read.

    Args:
        journal: Reads the pages.
        session: The id of the session.
        after: The number of the event before the first page.
        anew: Whether the caller is the writer of the log and continues from its end. Implies `urgent`.
        urgent: Whether a session waits for the pages. Such a page is read even if too many reads wait.
        throttle: While writes are pending, pauses between two pages and makes the pages shorter. None for a reader that
            a session waits for.
    """

    def __init__(
        self,
        journal: Ref[JournalCommand],
        session: str,
        *,
        after: int = 0,
        anew: bool = False,
        urgent: bool = False,
        throttle: ReadThrottle | None = None,
    ) -> None:
        self._journal, self._session, self._anew = journal, session, anew
        self._throttle = throttle
        self._urgent = anew or urgent
        self._end = after
        self.last: int | None = None
        """The number of the last event of the log; None before the first page."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LogPage:
        """Return the next page. It has at least one event.

        Raises:
            JournalError: The page cannot be read, or its events were deleted.
        """
        is_first = self.last is None
        if self.last is not None and self._end >= self.last:
            raise StopAsyncIteration
        anew = self._anew and is_first
        if self._throttle is not None and not is_first:
            await self._throttle.pause()
        most = PAGE if self._throttle is None else self._throttle.page_size(PAGE)
        page = await self._journal.ask(
            ReadLog(self._session, self._end, anew=anew, most=most, urgent=self._urgent)
        )
        self.last = page.last if self.last is None else self.last
        page = page.up_to(self.last)
        if self._end >= self.last:
            raise StopAsyncIteration
        if not page.events:
            raise JournalError(
                f"Session {self._session!r}: event {self._end + 1} of {self.last} was erased while its log was read; "
                "read it again"
            )
        self._end = page.end
        return page


async def read_log(
    journal: Ref[JournalCommand], session: str, *, anew: bool = False, throttle: ReadThrottle | None = None
) -> list[LogEvent]:
    """Return all events of a log, or an empty list if it does not exist. The arguments are those of `LogPages`.

    Raises:
        JournalError: The log cannot be read.
    """
    events = list[LogEvent]()
    async for page in LogPages(journal, session, anew=anew, throttle=throttle):
        events += page.events
    return events
