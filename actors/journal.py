"""The journal actor: the one writer of all logs.

Whoever writes sends its events here and is answered when they are durable; what is announced, is announced
after that. Records are appended in the order in which the commands arrived, and a log is read in its turn among
them, so that what a session's actors are rebuilt from holds all that they had sent before they crashed.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, TypeVar, assert_never

import anyio
import anyio.to_thread

from actors.core.codec import decode_event
from actors.core.events import Event
from actors.core.state import Lanes, Rules, State, rebuilt
from actors.errors import ActorStopped, JournalError
from actors.kernel import Actor, Command, Context, Query, Ref
from actors.storage import Entry, Storage

C = TypeVar("C", bound=Command)


@dataclass(frozen=True)
class Append(Query[int]):
    """Append events to a session's log; the answer is the number of the last one.

    Args:
        session: Whose log.
        events: What happened, in order.
        then: Called with the number once it is durable, for a handler that may not ask.
        failed: Called instead of `then` if it is not written.
    """

    session: str
    events: tuple[Event, ...]
    then: Callable[[int], None] | None = None
    failed: Callable[[JournalError], None] | None = None


@dataclass(frozen=True)
class Read(Command):
    """Read a session's log, behind every append that was sent before.

    Args:
        session: Whose log.
        then: Called with its records, oldest first; or with the error if it cannot be read.
    """

    session: str
    then: Callable[[list[bytes] | JournalError], None]


@dataclass(frozen=True)
class Erase(Query[None]):
    """Erase a session's log, behind every append that was sent before."""

    session: str


JournalCommand: TypeAlias = Append | Read | Erase


class JournalActor(Actor[JournalCommand]):
    """Owns the storage. A crash loses nothing that was answered; what cannot be written is refused, no crash."""

    level: ClassVar[int] = 5

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def receive(self, command: JournalCommand) -> None:
        match command:
            case Append():
                await self._append(command)
            case Read():
                await self._read(command)
            case Erase():
                await self._erase(command)
            case _:
                assert_never(command)

    async def _append(self, command: Append) -> None:
        try:
            number = await self._written(command)
        except Exception as error:  # a storage is other people's code
            failure = error if isinstance(error, JournalError) else JournalError(_not_written(command, error))
            if command.failed is not None:
                command.failed(failure)
            command.reply.fail(failure)
            return
        if command.then is not None:
            command.then(number)
        command.reply.send(number)

    async def _read(self, command: Read) -> None:
        try:
            if self._storage.blocking:
                records = await anyio.to_thread.run_sync(self._storage.read, command.session)
            else:
                records = self._storage.read(command.session)
        except Exception as error:  # as above
            why = f"Session {command.session!r}: its log could not be read: {type(error).__name__}: {error}"
            command.then(JournalError(why[:500]))
            return
        command.then(records)

    async def _erase(self, command: Erase) -> None:
        try:
            if self._storage.blocking:
                await anyio.to_thread.run_sync(self._storage.erase, command.session)
            else:
                self._storage.erase(command.session)
        except Exception as error:  # as above
            why = f"Session {command.session!r}: its log could not be erased: {type(error).__name__}: {error}"
            command.reply.fail(JournalError(why[:500]))
            return
        command.reply.send(None)

    async def _written(self, command: Append) -> int:
        entry = Entry(command.session, command.events)
        if self._storage.blocking:
            return (await anyio.to_thread.run_sync(self._storage.append, [entry]))[0]
        return self._storage.append([entry])[0]


Shown: TypeAlias = Callable[[int], None]
"""Called with an event's number when it is durable."""


class Head:
    """The head of a session's log: the state is folded and the event is on its way in one step.

    Args:
        state: What the log says so far.
        journal: Who writes it.
        failed: Called when an event of `send` was not written. The state is ahead of the log then: its owner crashes.

    `ledger` is the ledger as last heard of: a request is rendered from it, and whoever seals the request says so if it
    has moved on since.
    """

    def __init__(
        self, state: State, journal: Ref[JournalCommand], failed: Callable[[JournalError], None]
    ) -> None:
        self.resume(state)
        self._journal = journal
        self._failed = failed
        self._held: list[tuple[Event, Shown]] = []
        self._sent = 0  # calls of `send` not heard of. None is forgotten: what fails crashes the owner

    @property
    def settled(self) -> bool:
        """Whether all that the state has is written."""
        return not self._held and not self._sent

    def resume(self, state: State) -> None:
        """Go on from what the log says."""
        self.state, self.ledger = state, state.ledger

    def hold(self, event: Event, then: Shown) -> None:
        """Write an event together with the next ones: nothing waits for it until then."""
        self._held.append((event, then))

    async def write(self, event: Event, then: Shown | None = None) -> int:
        """Write an event; return its number when it is durable.

        `then` hears of it too, even if whoever waits here is cancelled meanwhile.

        Raises:
            JournalError: It is not written. The caller crashes with it, as `failed` does.
        """
        return await self._journal.ask(self._append(event, then, None))

    async def send(self, event: Event, then: Shown) -> None:
        """Write an event from a handler; `then` hears of it when it is durable."""

        def written(seq: int) -> None:
            self._sent -= 1
            then(seq)

        self._sent += 1
        await self._journal.tell(self._append(event, written, self._failed))

    def _append(
        self, event: Event, then: Shown | None, failed: Callable[[JournalError], None] | None
    ) -> Append:
        held, self._held = self._held, []
        events = (*[first for first, _ in held], event)
        for each in events:
            self.state = self.state.apply(each)

        def told(last: int) -> None:
            for number, (_, shown) in enumerate(held, last - len(held)):
                shown(number)
            if then is not None:
                then(last)

        return Append(self.state.session, events, told if held else then, failed)


@dataclass(frozen=True, slots=True)
class Past:
    """What a log says.

    Args:
        state: The session.
        lanes: Its lanes. They are the renderer's.
        seq: Number of the last event.
    """

    state: State
    lanes: Lanes
    seq: int


class Incarnation:
    """A session's actors from their start to the crash that ends them all, and what they are made from.

    Args:
        session: Whose actors.
        journal: Who reads the log.
        rules: What each binding is rendered with.
        first: Whether they are made from what the session was opened with, and not from its log.
    """

    __slots__ = ("_journal", "_past", "_read", "_records", "_rules", "_session", "first", "over")

    def __init__(self, session: str, journal: Ref[JournalCommand], rules: Rules, *, first: bool) -> None:
        self._session, self._journal, self._rules = session, journal, rules
        self._read: anyio.Event | None = None
        self._records: list[bytes] | JournalError = []
        self._past: Past | None = None
        self.first = first
        self.over = False
        """Whether the next one has begun. What still comes for this one must not act on that."""

    async def past(self) -> Past | None:
        """Return what the actors go on from; None at first. For `started`, which may not ask.

        The log is read once for all of them, behind every append that the last incarnation sent.

        Raises:
            JournalError: The log cannot be read, or a record of it is no event.
        """
        if self.first:
            return None
        if self._read is None:
            self._read = anyio.Event()
            await self._journal.tell(Read(self._session, self._take))
        await self._read.wait()
        if isinstance(self._records, JournalError):
            raise self._records
        if self._past is None:
            events, self._records = _read(self._session, self._records), []
            self._past = Past(*rebuilt(events, self._rules), len(events))
        return self._past

    def _take(self, records: list[bytes] | JournalError) -> None:
        self._records = records
        assert self._read is not None
        self._read.set()


def _read(session: str, records: list[bytes]) -> list[Event]:
    events: list[Event] = []
    for number, record in enumerate(records, 1):
        try:
            events.append(decode_event(record))
        except JournalError as error:
            raise JournalError(f"Session {session!r}, record {number}: {error}") from error
    return events


def crash(context: Context[C], error: JournalError) -> None:
    """Have an actor whose state is ahead of its log crash, so that it is rebuilt from the log."""

    async def fail() -> None:
        raise error

    with suppress(ActorStopped):  # it is ending anyway
        context.start(fail, name="write")


def _not_written(command: Append, error: Exception) -> str:
    kinds = ", ".join(type(event).__name__ for event in command.events)
    return f"Session {command.session!r}: {kinds} could not be written: {type(error).__name__}: {error}"[:500]
