"""Reading a log page by page, so that neither the journal nor the event loop is busy with all of it at once.

Whoever reads a log asks for the next page when it has used the one before. Other readers have their turn in between.
"""

from typing import Self

from actors.core.log.events import Event
from actors.errors import JournalError
from actors.journal.journal_actor import JournalCommand, ReadLog
from actors.journal.read_throttle import ReadThrottle
from actors.journal.storage import PAGE, LogPage
from actors.kernel import Ref


class LogPages:
    """An async iterator over the pages of a log, up to the end that it had when the first page was read.

    Args:
        journal: Reads them.
        session: Whose log.
        after: The number of the event before the first.
        anew: The reader is the log's writer, and goes on from its end.
        urgent: A session cannot go on without them: no page is refused because many reads wait. So it is with `anew`.
        throttle: Makes the pages shorter while writes are pending. None for a reader that a session waits for.
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
        """The number of the log's last event; None before the first page."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LogPage:
        """Return the next page, which has events.

        Raises:
            JournalError: It cannot be read, or its events are not there any more.
        """
        is_first = self.last is None
        if self.last is not None and self._end >= self.last:
            raise StopAsyncIteration
        anew = self._anew and is_first
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


async def read_log(journal: Ref[JournalCommand], session: str, *, anew: bool = False) -> list[Event]:
    """Return all events of a log; none if there is none. Raises `JournalError` if it cannot be read."""
    events = list[Event]()
    async for page in LogPages(journal, session, anew=anew):
        events += page.events
    return events
