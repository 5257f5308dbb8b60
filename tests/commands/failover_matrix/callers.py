"""Callers that use sessions while their database fails, and record every event, answer and loss in order."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import anyio
from msgspec import Struct

from actors import AskResult
from actors.core.stream_events.events import EventsLostEvent
from actors.errors import Fenced, JournalBehind, JournalUnavailable, NotAwaited, SessionClosed
from actors.runtime.handle import Session
from tests.commands.killing.host import line

PAUSE = 0.02
"""Seconds between an ask that the journal could not accept and the next."""


class Seen(Struct, frozen=True):
    """A durable event that a reader received, as a line."""

    number: int
    line: bytes


class Answered(Struct, frozen=True):
    """A completed ask."""

    words: str


class Lost(Struct, frozen=True):
    """A loss that the caller or the reader learned of: its first and last number; 0 if the session itself is lost."""

    to: str
    first: int = 0
    last: int = 0


Note: TypeAlias = Seen | Answered | Lost


class Caller:
    """Asks one session and reads its events at the same time.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.notes = list[Note]()
        self.asked, self.words = 0, ""
        self.is_over = False
        """Whether the session ended because it was fenced."""

    @property
    def name(self) -> str:
        """The id of its session."""
        return self.session.id

    @property
    def is_reader_late(self) -> bool:
        """Return True if the reader has not yet received a loss that the caller learned of."""
        heard = {(each.to, each.first, each.last) for each in self.losses}
        return any(("reader", first, last) not in heard for _, first, last in heard)

    @property
    def losses(self) -> list[Lost]:
        """Every loss that the caller or the reader learned of."""
        return [each for each in self.notes if isinstance(each, Lost)]

    async def read(self) -> None:
        """Read the events of the session until it ends."""
        try:
            async for event in self.session.events():
                number = getattr(event, "seq", None)
                if isinstance(event, EventsLostEvent):
                    self.notes.append(Lost("reader", event.first, event.last))
                if number is not None and (said := line(event)) is not None:
                    self.notes.append(Seen(number, said))
        except (Fenced, SessionClosed):
            self.notes.append(Lost("reader"))

    async def ask(self) -> bool:
        """Ask once, or resolve the pending calls of an earlier turn; return True if the ask was answered."""
        if self.session.pending:
            return await self.supply_results()
        self.asked += 1
        self.words = f"{self.name}: question {self.asked}."
        return await self._try_ask(partial(self.session.ask, self.words)) or await self.supply_results()

    async def ask_and_pause(self) -> None:
        """Ask once, and leave the turn paused."""
        self.asked += 1
        self.words = f"{self.name}: question {self.asked}."
        assert (await self.session.ask(self.words)).status == "awaiting"

    async def supply_results(self) -> bool:
        """Supply the results that a paused turn waits for, if any; return True if its ask was answered."""
        found: dict[str, object] = {waits.call.id: "found" for waits in self.session.pending}
        return bool(found) and await self._try_ask(lambda: self.session.ask(results=found))

    async def _try_ask(self, use: Callable[[], Awaitable[AskResult]]) -> bool:
        """Use the session; return True if its ask was answered. An ask that the journal cannot accept is no loss."""
        try:
            result = await use()
        except JournalBehind as error:
            self.notes.append(Lost("caller", error.first, error.last))
        except (Fenced, SessionClosed):
            self.is_over = True
            self.notes.append(Lost("caller"))
        except NotAwaited:
            assert self.losses  # the loss includes the paused turn
        except JournalUnavailable:
            await anyio.sleep(PAUSE)  # the error may be immediate
        else:
            if result.status == "complete":
                self.notes.append(Answered(self.words))
                return True
        return False

    async def ask_until_answered(self) -> None:
        """Ask until one ask is answered: a busy machine may be late with one."""
        while not await self.ask():
            assert not self.is_over

    async def ask_until(self, is_enough: Callable[[], bool]) -> None:
        """Ask repeatedly until `is_enough`, and then until two more asks are answered."""
        answered = 0
        while not self.is_over and answered < 2:
            counts = is_enough()
            answered += await self.ask() and counts
