"""The journal actor: events that arrive during a write share the next append, in order and independently."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import pytest

from actors.core.log.events import Closed, LogEvent
from actors.errors import JournalError, JournalUnavailable, SessionLeased
from actors.journal.commands import (
    Append,
    ClaimSession,
    JournalCommand,
    LiveEvents,
    ReadLog,
    ReleaseSession,
    Vacuum,
)
from actors.journal.journal_actor import MAX_BATCH, JournalActor
from actors.journal.log import Outbox
from actors.journal.storage import Appended, Claim, Entry
from actors.journal.storage.directory import RemainingData
from actors.journal.storage.memory import MemoryStorage
from actors.kernel import Query, Ref, System
from actors.kernel.system import SHARED
from tests.journal.storages import to

pytestmark = pytest.mark.anyio


class Slow(MemoryStorage):
    """A storage that may block: its first append waits until `freed` is set. Appends of one session are refused."""

    blocking = True

    def __init__(self, refused: str = "") -> None:
        super().__init__()
        self.begun, self.freed = anyio.Event(), threading.Event()
        self.appends: list[list[str]] = []
        self._refused = refused

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        self.appends.append([entry.session for entry in entries])
        if len(self.appends) == 1:
            anyio.from_thread.run_sync(self.begun.set)
            assert self.freed.wait(60)
        if any(entry.session == self._refused for entry in entries):
            raise OSError("no room")
        return super().append(entries)


def journal(system: System, storage: MemoryStorage) -> Ref[JournalCommand]:
    for session in ("first", "x", "y", "bad", "s"):
        assert storage.claim(session).fence == 1
    return system.spawn(lambda: JournalActor(storage), "journal", depth=SHARED)


async def test_events_sent_during_a_write_share_the_next_append() -> None:
    storage = Slow()
    numbers: list[int] = []
    with anyio.fail_after(60):
        async with System() as system, anyio.create_task_group() as tasks:
            ref = journal(system, storage)

            async def append(session: str) -> None:
                numbers.append(await ref.ask(Append(session, 1, (to("a"), to("b")))))

            tasks.start_soon(append, "first")
            await storage.begun.wait()
            for session in ("x", "y", "x"):
                tasks.start_soon(append, session)
                await anyio.wait_all_tasks_blocked()
            storage.freed.set()
        assert storage.appends == [["first"], ["x", "y", "x"]]
        assert sorted(numbers) == [2, 2, 2, 4]


async def test_a_failed_write_blocks_only_the_events_of_its_own_session() -> None:
    storage = Slow("bad")
    refused: list[str] = []
    with anyio.fail_after(60):
        async with System() as system, anyio.create_task_group() as tasks:
            ref = journal(system, storage)

            async def append(session: str) -> None:
                try:
                    await ref.ask(Append(session, 1, (to("a"),)))
                except JournalError:
                    refused.append(session)

            tasks.start_soon(append, "first")
            await storage.begun.wait()
            for session in ("x", "bad", "y"):
                tasks.start_soon(append, session)
                await anyio.wait_all_tasks_blocked()
            storage.freed.set()
        assert refused == ["bad"]
        assert sorted(each.id for each in storage.sessions()) == ["first", "x", "y"]


class Refusing(Slow):
    """A storage that refuses one append, the one of session `bad`."""

    def __init__(self, *, blocking: bool) -> None:
        super().__init__()
        self.blocking = blocking
        self.freed.set()

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if any(to("bad") in entry.events for entry in entries):
            raise JournalUnavailable("the disk is full; make room")
        return MemoryStorage.append(self, entries)


@pytest.mark.parametrize("blocking", [True, False])
async def test_an_event_after_a_refused_event_is_refused(blocking: bool) -> None:
    storage = Refusing(blocking=blocking)
    with anyio.fail_after(60):
        async with System() as system:
            ref = journal(system, storage)
            with pytest.raises(JournalUnavailable):
                await ref.ask(Append("s", 1, (to("bad"),)))
            with pytest.raises(JournalUnavailable, match="disk is full"):
                await ref.ask(Append("s", 1, (to("behind"),)))
            assert await ref.ask(Append("x", 1, (to("a"),))) == 1
            assert (await ref.ask(ReadLog("s"))).last == 0  # appended by another writer
            with pytest.raises(JournalUnavailable):
                await ref.ask(Append("s", 1, (to("behind"),)))
            assert (await ref.ask(ReadLog("s", as_writer=True))).last == 0
            assert await ref.ask(Append("s", 1, (to("a"),))) == 1


async def test_a_read_includes_every_event_sent_before_the_read() -> None:
    storage = Slow()
    read: list[LogEvent] = []
    with anyio.fail_after(60):
        async with System() as system, anyio.create_task_group() as tasks:
            ref = journal(system, storage)
            tasks.start_soon(ref.ask, Append("s", 1, (to("a"),)))
            await storage.begun.wait()
            tasks.start_soon(ref.ask, Append("s", 1, (to("b"),)))
            await anyio.wait_all_tasks_blocked()

            async def look() -> None:
                read.extend((await ref.ask(ReadLog("s"))).events)

            tasks.start_soon(look)
            await anyio.wait_all_tasks_blocked()
            assert not read
            storage.freed.set()
    assert read == [to("a"), to("b")]


async def test_a_claim_of_a_session_is_processed_after_events_sent_earlier() -> None:
    storage, fences = Slow(), list[int]()
    with anyio.fail_after(60):
        async with System() as system, anyio.create_task_group() as tasks:
            ref = journal(system, storage)

            async def claim(session: str) -> None:
                fences.append((await ref.ask(ClaimSession(session))).fence)

            tasks.start_soon(ref.ask, Append("first", 1, (to("a"),)))
            await storage.begun.wait()
            for task in (
                partial(ref.ask, Append("s", 1, (to("b"),))),
                partial(claim, "x"),
                partial(claim, "s"),
            ):
                tasks.start_soon(task)
                await anyio.wait_all_tasks_blocked()
            storage.freed.set()
    assert storage.read("s") == [to("b")]  # although the claim fences its writer
    assert fences == [2, 2]


class Elsewhere(Slow):
    """A storage with one session that cannot be claimed: `theirs`."""

    def claim(self, session: str, *, existing: bool = False) -> Claim:
        if session == "theirs":
            raise SessionLeased("It belongs to another host", host="other", seconds=1)
        return super().claim(session, existing=existing)


async def test_a_refused_claim_affects_no_other_claim() -> None:
    storage, outcomes = Elsewhere("bad"), dict[str, str]()
    with anyio.fail_after(60):
        async with System() as system, anyio.create_task_group() as tasks:
            ref = journal(system, storage)

            async def tell(name: str, query: Query[Any]) -> None:
                try:
                    await ref.ask(query)
                    outcomes[name] = "done"
                except (SessionLeased, JournalError) as error:
                    outcomes[name] = type(error).__name__

            tasks.start_soon(ref.ask, Append("first", 1, (to("a"),)))
            await storage.begun.wait()
            for name in ("theirs", "mine"):
                tasks.start_soon(tell, name, ClaimSession(name))
            for name in ("x", "bad"):
                tasks.start_soon(tell, name, Append(name, 1, (to("b"),)))
            await anyio.wait_all_tasks_blocked()
            storage.freed.set()
    assert outcomes == {"theirs": "SessionLeased", "mine": "done", "x": "done", "bad": "JournalError"}


async def test_events_beyond_one_batch_are_written_in_order() -> None:
    storage = Slow()
    count = 3 * MAX_BATCH
    with anyio.fail_after(60):
        async with System() as system, anyio.create_task_group() as tasks:
            ref = journal(system, storage)

            async def append_all() -> None:
                for number in range(count):
                    await ref.send(Append("s", 1, (to(str(number)),)))

            tasks.start_soon(append_all)
            await storage.begun.wait()
            await anyio.wait_all_tasks_blocked()
            storage.freed.set()
            while len(storage.read("s")) < count:
                await anyio.lowlevel.checkpoint()
    assert storage.read("s") == [to(str(number)) for number in range(count)]
    assert len(storage.appends) < count / 10
    assert max(map(len, storage.appends)) <= 2 * MAX_BATCH


@pytest.mark.parametrize("kind", [MemoryStorage, Slow])
async def test_held_events_are_written_before_later_events_with_their_own_numbers(
    kind: type[MemoryStorage],
) -> None:
    storage = kind()
    if isinstance(storage, Slow):
        storage.freed.set()
    numbers: list[tuple[str, int]] = []
    outbox = Outbox("s", 1, LiveEvents())
    outbox.hold(to("a"), lambda number: numbers.append(("a", number)))
    outbox.hold(to("b"))
    with anyio.fail_after(60):
        async with System() as system:
            ref = journal(system, storage)
            append = outbox.append(
                to("c"), Closed(), on_durable=lambda number: numbers.append(("last", number))
            )
            assert outbox.is_empty
            assert await ref.ask(append) == 4
    assert storage.read("s") == [to("a"), to("b"), to("c"), Closed()]
    assert numbers == [("a", 1), ("last", 4)]


async def test_a_failure_callback_reports_an_event_that_was_not_written() -> None:
    storage = Slow("bad")
    storage.freed.set()
    failed: list[str] = []
    with anyio.fail_after(60), suppress(anyio.EndOfStream):
        async with System() as system:
            ref = journal(system, storage)
            await ref.send(Append("bad", 1, (to("a"),), on_failure=lambda error: failed.append(str(error))))
            while not failed:
                await anyio.lowlevel.checkpoint()
    assert failed == ["Could not write SwitchApplied to the log of session 'bad': OSError: no room"]


class BrokenStorage(MemoryStorage):
    """A storage that can neither release a session nor remove deleted data."""

    def release(self, session: str, fence: int) -> None:
        raise OSError("no room")

    def vacuum(self, max_bytes: int | None = None) -> Sequence[RemainingData]:
        raise OSError("no room")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (ReleaseSession("s", fence=1), "Session 's' could not be released: OSError: no room"),
        (Vacuum(), "Deleted data could not be removed from the journal: OSError: no room"),
    ],
)
async def test_the_error_of_a_query_names_the_operation_that_failed(query: Query[Any], message: str) -> None:
    with anyio.fail_after(60):
        async with System() as system:
            ref = journal(system, BrokenStorage())
            with pytest.raises(JournalError) as error:
                await ref.ask(query)
    assert str(error.value) == message
