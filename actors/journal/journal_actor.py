"""The journal actor: the only writer of all logs.

Writers send their events here and get a reply when these are durable; events are published only after that. Records
are appended in the order of the commands, and a log is read in its turn among them, so that restarted actors see
every event that was sent before they crashed.

A log never has a gap: after a rejected append, later appends of the session are rejected too, until its writer has
read the log again.

A blocking storage is called in threads. Commands that arrive in the meantime are written together in one commit, so
the cost per event falls as the load rises. Sessions that are opened at the same time are claimed in one commit too.
Reads have a thread of their own, which reads a page at a time: they start after the writes that were sent before
them, and do not delay later writes.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, assert_never

from msgspec import Struct

from actors.core.log.events import Closed
from actors.errors import Fenced, JournalBehind, JournalDamaged, JournalUnavailable
from actors.journal.commands import (
    Append,
    Ask,
    ClaimSession,
    DeleteLog,
    FindSession,
    JournalCommand,
    ListSessions,
    ObserveClock,
    Read,
    ReadLog,
    ReleaseSession,
    RenewLease,
    Vacuum,
)
from actors.journal.ends import LogEnds
from actors.journal.health import JournalHealth
from actors.journal.read_queue import ReadQueue
from actors.journal.readers import Readers
from actors.journal.storage import Appended, Claim, LogPage, Storage
from actors.journal.storage.calls import call_storage
from actors.journal.storage_threads import StorageThreads
from actors.kernel import Actor, Context

BATCH = 256
"""Most commands written together; while as many are queued, no more mail is handled."""
READS = 1024
"""Most queued reads of pages and lists. Reads that a session needs to start or continue are always accepted."""


class _Group(Struct):
    """The operations of one commit, claims before appends, and the reads after it."""

    claims: list[ClaimSession]
    appends: list[Append]
    reads: list[Read] = []

    def __len__(self) -> int:
        return len(self.claims) + len(self.appends)

    def writes(self, session: str) -> bool:
        """Return True if the group appends to a session; a claim of that session must come later."""
        return any(append.session == session for append in self.appends)

    @property
    def parts(self) -> list["_Group"]:
        """One group per operation."""
        return [_Group([claim], []) for claim in self.claims] + [
            _Group([], [append]) for append in self.appends
        ]

    def write(self, storage: Storage, ends: LogEnds) -> tuple[list[Claim | Exception], Sequence[Appended]]:
        """Write the group, in a thread. Return the outcome of each operation."""
        entries = list(ends.with_predecessors(append.entry for append in self.appends))
        if not self.claims:
            return [], storage.append(entries)
        with storage.transaction([claim.session for claim in self.claims if not claim.existing]):
            claimed = [self._claim(storage, claim) for claim in self.claims]
            return claimed, storage.append(entries) if entries else ()

    def _claim(self, storage: Storage, claim: ClaimSession) -> Claim | Exception:
        try:
            return storage.claim(claim.session, existing=claim.existing)
        except JournalUnavailable:
            raise  # affects all of them
        except Exception as error:  # a storage may be foreign code
            return error


class JournalActor(Actor[JournalCommand]):
    """The owner of the storage. A crash loses nothing that was acknowledged. Storage errors reject commands and are
    no crash."""

    level: ClassVar[int] = 5

    def __init__(
        self, storage: Storage, readers: Readers | None = None, meter: JournalHealth | None = None
    ) -> None:
        self._storage = storage
        self._readers = Readers() if readers is None else readers
        self._meter = JournalHealth() if meter is None else meter
        self._meter.began, self._meter.queued = None, 0  # left over from a crashed actor
        self._throttle = self._readers.throttle
        self._throttle.end_writes(self._throttle.pending)  # likewise
        self._queued: deque[JournalCommand] = deque()
        self._broken: dict[str, Exception] = {}  # rejected appends, until the log is read again
        self._ends = LogEnds()
        self._is_working = False
        self._reads: ReadQueue[Read]
        self._context: Context[JournalCommand]
        self._threads: StorageThreads

    def on_start(self, context: Context[JournalCommand]) -> None:
        """Store the context, and create separate threads: slow tools must not delay a write."""
        self._context = context
        self._threads = StorageThreads(self._storage, self._meter, context.system)
        self._reads = ReadQueue(READS, self._start_read, partial(context.start, name="read"))

    def receive(self, command: JournalCommand) -> None:
        if not self._storage.blocking:
            self._do_at_once(command)
            return
        self._queued.append(command)
        self._meter.queued += 1
        if not isinstance(command, Read):
            self._throttle.begin_write()
        if len(self._queued) == BATCH:
            self._context.hold()
        if not self._is_working:
            self._is_working = True
            self._context.start(self._work, name="write")

    def _do_at_once(self, command: JournalCommand) -> None:
        tell: Callable[[], None]
        try:
            if not isinstance(command, Append):
                answer = self._check_answer(command, call_storage(self._operation(command)))
                tell = partial(self._send_answer, command, answer)
            elif self._may_write(command):
                entries = list(self._ends.with_predecessors([command.entry]))
                (written,) = call_storage(partial(self._storage.append, entries))
                tell = partial(self._report_written, command, written)
            else:
                return
        except Exception as error:  # a storage may be foreign code
            self._reject(command, error)
            return
        tell()

    def _operation(self, command: Ask) -> Callable[[], Any]:  # Any: the answer of each
        storage = self._storage
        match command:
            case ReadLog(session=session, after=after, most=most):
                return partial(storage.page, session, after, most)
            case ClaimSession(session=session, existing=existing):
                return partial(storage.claim, session, existing=existing)
            case ReleaseSession(session=session, fence=fence):
                return partial(storage.release, session, fence)
            case ListSessions(which=which, limit=limit, page=page):
                return partial(storage.sessions, which, limit=limit, after=page)
            case FindSession(session=session):
                return partial(storage.find, session)
            case DeleteLog(session=session, others=others):
                return partial(storage.delete, session, *others)
            case Vacuum(most=most):
                return partial(storage.vacuum, most)
            case ObserveClock(now=now, elapsed=elapsed):
                return partial(storage.look_at_clock, now, elapsed)
            case RenewLease():
                self._threads.begin_beat()
                return storage.renew_lease
            case _:
                assert_never(command)

    async def _work(self) -> None:
        """Write the queued commands, and those that arrive in the meantime, until the queue is empty."""
        while self._queued:
            is_full = len(self._queued) >= BATCH
            batch = [*self._queued]
            self._queued.clear()
            self._meter.queued = 0
            if is_full:
                self._context.release()
            self._meter.begin(self._context.system.now())
            await self._run_batch(batch)
            self._throttle.end_writes(sum(not isinstance(command, Read) for command in batch))
            self._meter.end(self._context.system.now())
        self._is_working = False

    async def _run_batch(self, batch: list[JournalCommand]) -> None:
        """Write the claims and appends of a batch together, split where another operation comes between."""
        group = _Group([], [])
        for command in batch:
            if isinstance(command, Append):
                group.appends.append(command)
                continue
            if isinstance(command, Read):
                group.reads.append(command)
                continue
            if not isinstance(command, ClaimSession) or group.writes(command.session):
                await self._carry_out(group)
                group = _Group([], [])
            if isinstance(command, ClaimSession):
                group.claims.append(command)
            else:
                await self._ask(command, self._threads.write)
        await self._carry_out(group)

    async def _carry_out(self, group: "_Group") -> None:
        await self._commit(group)
        for read in group.reads:
            await self._begin_reading(read)

    async def _begin_reading(self, command: Read) -> None:
        is_urgent = isinstance(command, ReadLog) and (command.anew or command.urgent)
        try:
            if isinstance(command, ReadLog) and command.anew:
                await self._name_loss(command.session)
            elif self._reads.is_full and not is_urgent:
                command.fail(
                    JournalUnavailable(f"{READS} reads wait for the journal already; try again later")
                )
                return
        except Exception as error:  # a storage may be foreign code
            self._reject(command, error)
        else:
            self._reads.add(command, urgent=is_urgent)

    async def _start_read(self, command: Read) -> None:
        if not command.reply.is_done:  # otherwise the asker has gone
            await self._ask(command, self._threads.read)

    async def _ask(self, command: Ask, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        try:
            answer = self._check_answer(command, await run(self._operation(command)))
        except Exception as error:  # as above
            self._reject(command, error)
        else:
            self._send_answer(command, answer)

    def _check_answer(self, command: Ask, answer: Any) -> Any:  # Any: that of each
        """Return an answer in the form for its asker: of a log that is written here, only acknowledged events.

        A writer's read also records the end of the log; it is rejected once if acknowledged events were lost.
        """
        if not isinstance(command, ReadLog):
            return answer
        page: LogPage = answer
        if not command.anew:
            return page.up_to(self._ends.acknowledged_end(command.session, page.last))
        if (error := self._ends.missing(command.session, page.last)) is not None:
            self._lose(error, self._ends.fence(command.session))
            raise error
        self._ends.record_write(
            command.session, page.last
        )  # includes events whose append failed as unavailable
        return page

    def _lose(self, error: JournalBehind, fence: int) -> None:
        """Record lost events, so that the loss is written before the log is read again, and reset readers."""
        self._ends.lose(error, fence)
        self._readers.roll_back(error.session, error.first - 1)

    async def _name_loss(self, session: str) -> None:
        """Write the record of lost events of a session, if there is one, before everything else."""
        if (entry := self._ends.loss_entry(session)) is None:
            return
        (outcome,) = await self._threads.write(partial(self._storage.append, [entry]))
        if isinstance(outcome, JournalBehind):
            self._lose(outcome, entry.fence)
        if not isinstance(outcome, int):
            raise outcome
        self._ends.confirm_loss(entry)
        self._readers.notify_growth(session, outcome)

    async def _commit(self, group: "_Group") -> None:
        """Commit a group atomically; if that fails, each operation separately, so that one failure does not affect
        others."""
        if self._broken:
            group.appends = [append for append in group.appends if self._may_write(append)]
        if not len(group):
            return
        try:
            write = partial(group.write, self._storage, self._ends)
            claimed, written = await self._threads.write(partial(self._meter.time_commit, write))
        except Exception as error:  # as above
            if len(group) == 1 or isinstance(error, JournalUnavailable):
                for claim in group.claims:
                    self._reject(claim, error)
                for append in group.appends:
                    self._reject(append, error)
                return
            for alone in group.parts:
                await self._commit(alone)
            return
        for claim, outcome in zip(group.claims, claimed, strict=True):
            if isinstance(outcome, Claim):
                self._send_answer(claim, outcome)
            else:
                self._reject(claim, outcome)
        for append, number in zip(group.appends, written, strict=True):
            self._report_written(append, number)
            with suppress(Exception):  # ignored here, since it is retried before the log is read again
                await self._name_loss(append.session)

    def _may_write(self, append: Append) -> bool:
        """Reject an append that follows a rejected append of its session."""
        if (error := self._broken.get(append.session)) is not None:
            self._reject(append, error)
        return error is None

    def _reject(self, command: JournalCommand, error: Exception) -> None:
        if isinstance(command, Append):
            self._broken[command.session] = error
            self._meter.refused += len(command.events)
        if isinstance(error, JournalUnavailable):
            self._meter.record_failure(error)
        if isinstance(error, JournalDamaged):
            self._meter.found_damaged(error)
        command.fail(error)

    def _send_answer(self, command: Ask, answer: Any) -> None:  # Any: that of each
        if isinstance(command, FindSession):
            command.answer(answer)
            return
        if not isinstance(command, ReadLog) or command.anew:
            self._broken.pop(command.session, None)
        if not isinstance(command, ReadLog):
            self._meter.record_success()
        if isinstance(command, RenewLease):
            self._threads.end_beat()
        if isinstance(command, ClaimSession):
            self._ends.record_claim(command.session, answer)
        elif isinstance(command, DeleteLog):
            self._ends.forget(command.session, *command.others)
        elif isinstance(command, ReleaseSession):
            self._ends.forget(command.session)
        command.answer(answer)

    def _report_written(self, append: Append, outcome: Appended) -> None:
        """Report the outcome of an append: to readers of the session first, so that deltas cannot overtake it."""
        if isinstance(outcome, JournalBehind):
            self._lose(outcome, append.fence)
            self._reject(append, outcome)
            return
        if isinstance(outcome, Fenced):
            append.fail(outcome)
            return
        self._meter.record_success()
        self._ends.record_write(append.session, outcome)
        if isinstance(append.events[-1], Closed):
            self._ends.forget(append.session)
        if append.session in self._readers.following:
            self._readers.notify_growth(append.session, outcome)
        append.finish(outcome)
