"""Append events to all logs. The journal actor is the only writer of a runtime's storage.

A writer sends its events to this actor and receives a reply once they are durable; only then are the events published.
Commands run in the order in which they arrive. So actors that restart after a crash read every event that their
predecessors sent.

A log never has a gap. After a rejected append, later appends of the same session are rejected too, until the session
has read its log again.

The methods of a blocking storage run in threads. Commands that arrive while a method runs are then written in one
commit, so the cost per event falls as the load rises. Sessions that are opened at the same time are claimed in one
commit too. Reads run in a separate thread, one page at a time. A read starts after the writes that were sent before the
read, and does not delay later writes.
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
    AssignSession,
    CheckOwner,
    ClaimSession,
    DeleteLog,
    FindSession,
    JournalCommand,
    ListHosts,
    ListOwned,
    ListSessions,
    ObserveClock,
    Operation,
    Read,
    ReadLog,
    ReleaseAll,
    ReleaseSession,
    RenewLease,
    Vacuum,
)
from actors.journal.health import ClaimedLogs, JournalHealth
from actors.journal.readers import Readers
from actors.journal.storage import Appended, Claim, LogPage, Storage
from actors.journal.storage_calls import ReadQueue, StorageThreads, call_storage
from actors.kernel import Actor, Context

MAX_BATCH = 256
"""Maximum number of commands that are written together. While this many are queued, the actor handles no further
messages.
"""
MAX_READS = 1024
"""Maximum number of queued non-urgent reads. Urgent reads are always accepted."""


class _Group(Struct):
    """Claims and appends that are committed together, in this order, and the reads that follow the commit."""

    claims: list[ClaimSession]
    appends: list[Append]
    reads: list[Read] = []

    def __len__(self) -> int:
        return len(self.claims) + len(self.appends)

    def appends_to(self, session: str) -> bool:
        """Return True if the group appends to a session. A later claim of that session must then start a new group."""
        return any(append.session == session for append in self.appends)

    @property
    def single_operations(self) -> list["_Group"]:
        """A separate group for each claim and each append. These groups contain no reads."""
        return [_Group([claim], []) for claim in self.claims] + [
            _Group([], [append]) for append in self.appends
        ]

    def write(
        self, storage: Storage, logs: ClaimedLogs
    ) -> tuple[list[Claim | Exception], Sequence[Appended]]:
        """Write the claims and appends to the storage. Return one outcome per claim and one per append."""
        entries = list(logs.add_predecessors(append.entry for append in self.appends))
        if not self.claims:
            return [], storage.append(entries)
        new = [claim.session for claim in self.claims if not claim.existing]
        with storage.transaction(new, [claim.session for claim in self.claims if claim.existing]):
            claimed = [self._claim(storage, claim) for claim in self.claims]
            return claimed, storage.append(entries) if entries else ()

    def _claim(self, storage: Storage, claim: ClaimSession) -> Claim | Exception:
        """Claim a session. Return the claim, or the error if only this claim failed."""
        try:
            return storage.claim(claim.session, existing=claim.existing)
        except JournalUnavailable:
            raise  # the storage is unavailable for every operation of the group
        except Exception as error:  # a custom storage may raise any exception
            return error


class JournalActor(Actor[JournalCommand]):
    """The actor that owns the storage. A crash loses no acknowledged event.

    If the storage raises an error, the command is rejected, and the actor does not crash.
    """

    level: ClassVar[int] = 5

    def __init__(
        self, storage: Storage, readers: Readers | None = None, meter: JournalHealth | None = None
    ) -> None:
        self._storage = storage
        self._readers = Readers() if readers is None else readers
        self._meter = JournalHealth() if meter is None else meter
        # A crashed predecessor may have left other values.
        self._meter.batch_began, self._meter.queued = None, 0
        self._throttle = self._readers.throttle
        # Writes of a crashed predecessor are no longer pending.
        self._throttle.end_writes(self._throttle.pending)
        self._queued: deque[JournalCommand] = deque()
        self._broken: dict[str, Exception] = {}  # the last rejection per session, until its log is read again
        self._logs = ClaimedLogs()
        self._is_working = False
        self._reads: ReadQueue[Read]
        self._context: Context[JournalCommand]
        self._threads: StorageThreads

    def on_start(self, context: Context[JournalCommand]) -> None:
        """Create the storage's threads. Tools do not use these threads, because a slow tool must not delay a write."""
        self._context = context
        self._threads = StorageThreads(self._storage, self._meter, context.system)
        self._reads = ReadQueue(MAX_READS, self._run_read, partial(context.start, name="read"))

    def receive(self, command: JournalCommand) -> None:
        if not self._storage.blocking:
            self._run_without_thread(command)
            return
        self._queued.append(command)
        self._meter.queued += 1
        if not isinstance(command, Read):
            self._throttle.begin_write()
        if len(self._queued) == MAX_BATCH:
            self._context.hold_messages()
        if not self._is_working:
            self._is_working = True
            self._context.start(self._process_queue, name="write")

    def _run_without_thread(self, command: JournalCommand) -> None:
        """Run a command on the event loop and answer at once. The storage must not block."""
        report: Callable[[], None]
        try:
            if not isinstance(command, Append):
                answer = self._check_answer(command, call_storage(self._storage_call(command)))
                report = partial(self._send_answer, command, answer)
            elif self._may_write(command):
                entries = list(self._logs.add_predecessors([command.entry]))
                (written,) = call_storage(partial(self._storage.append, entries))
                report = partial(self._report_written, command, written)
            else:
                return
        except Exception as error:  # a custom storage may raise any exception
            self._reject(command, error)
            return
        report()  # outside the try block, because an error from a callback must not count as an error from the storage

    def _read_call(self, command: Read) -> Callable[[], Any]:  # Any: depends on the command
        """Return a function without parameters that performs a read and returns its answer."""
        storage = self._storage
        match command:
            case ReadLog(session=session, after=after, limit=limit):
                return partial(storage.page, session, after, limit)
            case ListSessions(conditions=conditions, limit=limit, page=page):
                return partial(storage.sessions, conditions, limit=limit, after=page)
            case CheckOwner(session=session):
                return partial(storage.check_owner, session)
            case FindSession(session=session):
                return partial(storage.find, session)
            case ListHosts(count_sessions=count_sessions):
                return partial(storage.hosts, count_sessions=count_sessions)
            case ListOwned(after=after):
                return partial(storage.owned_sessions, after)
            case _:
                assert_never(command)

    def _storage_call(self, command: Operation) -> Callable[[], Any]:  # Any: depends on the command
        """Return a function without parameters that runs an operation and returns its answer."""
        if isinstance(command, Read):
            return self._read_call(command)
        storage = self._storage
        match command:
            case ClaimSession(session=session, existing=existing):
                return partial(storage.claim, session, existing=existing)
            case ReleaseSession(session=session, fence=fence):
                return partial(storage.release, session, fence)
            case DeleteLog(session=session, others=others):
                return partial(storage.delete, session, *others)
            case Vacuum(max_bytes=max_bytes):
                return partial(storage.vacuum, max_bytes)
            case ObserveClock(now=now, elapsed=elapsed):
                return partial(storage.record_clock, now, elapsed)
            case AssignSession(session=session, fence=fence, host=host):
                return partial(storage.assign, session, fence, host)
            case ReleaseAll():
                return storage.release_all
            case RenewLease(status=status):
                self._threads.begin_renewal()
                return partial(storage.renew_lease, status)
            case _:
                assert_never(command)

    async def _process_queue(self) -> None:
        """Run the queued commands in batches until the queue is empty."""
        while self._queued:
            is_full = len(self._queued) >= MAX_BATCH
            batch = [*self._queued]
            self._queued.clear()
            self._meter.queued = 0
            if is_full:
                self._context.release_messages()
            self._meter.begin_batch(self._context.system.now())
            await self._run_batch(batch)
            self._throttle.end_writes(sum(not isinstance(command, Read) for command in batch))
            self._meter.end_batch(self._context.system.now())
        self._is_working = False

    async def _run_batch(self, batch: list[JournalCommand]) -> None:
        """Run the commands of a batch in order. Adjacent claims and appends are committed together."""
        group = _Group([], [])
        for command in batch:
            if isinstance(command, Append):
                group.appends.append(command)
                continue
            if isinstance(command, Read):
                group.reads.append(command)
                continue
            if not isinstance(command, ClaimSession) or group.appends_to(command.session):
                await self._run_group(group)
                group = _Group([], [])
            if isinstance(command, ClaimSession):
                group.claims.append(command)
            else:
                await self._run_query(command, self._threads.write)
        await self._run_group(group)

    async def _run_group(self, group: "_Group") -> None:
        """Commit the claims and appends of a group, then start its reads."""
        await self._commit(group)
        for read in group.reads:
            await self._queue_read(read)

    async def _queue_read(self, command: Read) -> None:
        """Add a read to the queue, or reject the read if the queue is full.

        If the reader will append to the log (`as_writer`) and events were lost, first record the loss in the log.
        """
        is_urgent = isinstance(command, ReadLog) and (command.as_writer or command.urgent)
        try:
            if isinstance(command, ReadLog) and command.as_writer:
                await self._write_loss(command.session)
            elif self._reads.is_full and not is_urgent:
                command.fail(
                    JournalUnavailable(
                        f"The journal already has {MAX_READS} reads in its queue; try again later"
                    )
                )
                return
        except Exception as error:  # a custom storage may raise any exception
            self._reject(command, error)
        else:
            self._reads.add(command, urgent=is_urgent)

    async def _run_read(self, command: Read) -> None:
        if not command.reply.is_done:  # otherwise the caller was cancelled and needs no answer
            await self._run_query(command, self._threads.read)

    async def _run_query(
        self, command: Operation, run_in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> None:
        """Run an operation, and send the answer or the error to its caller.

        `run_in_thread` calls a function in the writing thread or in the reading thread.
        """
        try:
            answer = self._check_answer(command, await run_in_thread(self._storage_call(command)))
        except Exception as error:  # a custom storage may raise any exception
            self._reject(command, error)
        else:
            self._send_answer(command, answer)

    def _check_answer(self, command: Operation, answer: Any) -> Any:  # Any: depends on the command
        """Return the storage's answer to an operation, without events that the caller must not see.

        If this host writes the log, callers see only acknowledged events. A read with `as_writer` returns all events
        instead, and records the number of the last event as acknowledged.

        Raises:
            JournalBehind: A read with `as_writer` found that acknowledged events were lost. The next read succeeds.
        """
        if not isinstance(command, ReadLog):
            return answer
        page: LogPage = answer
        if not command.as_writer:
            return page.up_to(self._logs.visible_end(command.session, page.last))
        if (error := self._logs.missing_events_error(command.session, page.last)) is not None:
            self._record_loss(error, self._logs.fence(command.session))
            raise error
        # An append that failed with `JournalUnavailable` may still have been written, so the log may be longer.
        self._logs.record_write(command.session, page.last)
        return page

    def _record_loss(self, error: JournalBehind, fence: int) -> None:
        """Prepare the `EventsLost` entry for lost events, and notify the session's readers of the loss."""
        self._logs.record_loss(error, fence)
        self._readers.roll_back(error.session, error.first - 1)

    async def _write_loss(self, session: str) -> None:
        """If a session has lost events, write its `EventsLost` entry before any other event of the session."""
        if (entry := self._logs.pending_loss(session)) is None:
            return
        (outcome,) = await self._threads.write(partial(self._storage.append, [entry]))
        if isinstance(outcome, JournalBehind):
            self._record_loss(outcome, entry.fence)
        if not isinstance(outcome, int):
            raise outcome
        self._logs.confirm_loss(entry)
        self._readers.notify_growth(session, outcome)

    async def _commit(self, group: "_Group") -> None:
        """Commit a group in one transaction. If the transaction fails, commit each operation separately, so that one
        failure does not affect other sessions.
        """
        if self._broken:
            group.appends = [append for append in group.appends if self._may_write(append)]
        if not len(group):
            return
        try:
            write = partial(group.write, self._storage, self._logs)
            claimed, written = await self._threads.write(partial(self._meter.time_commit, write))
        except Exception as error:  # a custom storage may raise any exception
            if len(group) == 1 or isinstance(error, JournalUnavailable):
                for claim in group.claims:
                    self._reject(claim, error)
                for append in group.appends:
                    self._reject(append, error)
                return
            for single in group.single_operations:
                await self._commit(single)
            return
        for claim, outcome in zip(group.claims, claimed, strict=True):
            if isinstance(outcome, Claim):
                self._send_answer(claim, outcome)
            else:
                self._reject(claim, outcome)
        for append, number in zip(group.appends, written, strict=True):
            self._report_written(append, number)
            with suppress(Exception):  # a failed write is retried before the session reads its log again
                await self._write_loss(append.session)

    def _may_write(self, append: Append) -> bool:
        """Return True if an append may be written. Reject it if an earlier append of its session was rejected."""
        if (error := self._broken.get(append.session)) is not None:
            self._reject(append, error)
        return error is None

    def _reject(self, command: JournalCommand, error: Exception) -> None:
        """Send an error to the caller of a command, and record the error in the journal's statistics."""
        if isinstance(command, Append):
            self._broken[command.session] = error
            self._meter.refused += len(command.events)
        if isinstance(error, JournalUnavailable):
            self._meter.record_failure(error)
        if isinstance(error, JournalDamaged):
            self._meter.record_damage_found(error)
        command.fail(error)

    def _send_answer(self, command: Operation, answer: Any) -> None:  # Any: depends on the command
        """Send an answer to the caller of an operation, after updating the state that depends on the answer."""
        if isinstance(command, FindSession | CheckOwner):
            command.answer(answer)
            return
        if not isinstance(command, ReadLog) or command.as_writer:
            self._broken.pop(command.session, None)
        if not isinstance(command, ReadLog):
            self._meter.record_success()
        if isinstance(command, RenewLease):
            self._threads.record_renewal()
        if isinstance(command, ClaimSession):
            self._logs.record_claim(command.session, answer)
        elif isinstance(command, DeleteLog):
            self._logs.forget(command.session, *command.others)
        elif isinstance(command, ReleaseSession | AssignSession):
            self._logs.forget(command.session)
        command.answer(answer)

    def _report_written(self, append: Append, outcome: Appended) -> None:
        """Report the outcome of an append to its writer.

        Readers of the session are notified before the writer, so that a later delta cannot overtake the events.
        """
        if isinstance(outcome, JournalBehind):
            self._record_loss(outcome, append.fence)
            self._reject(append, outcome)
            return
        if isinstance(outcome, Fenced):
            append.fail(outcome)
            return
        self._meter.record_success()
        self._logs.record_write(append.session, outcome)
        if isinstance(append.events[-1], Closed):
            self._logs.forget(append.session)
        if append.session in self._readers.subscribers:
            self._readers.notify_growth(append.session, outcome)
        append.finish(outcome)
