"""A Postgres database that loses recent writes: a lagging standby or a restored copy takes over under live hosts."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import anyio
import anyio.from_thread
import anyio.to_thread
import psycopg
import pytest

from actors import Runtime
from actors.core.log.events import AskStarted, EventsLost
from actors.core.stream_events.ask_events import AskStartedEvent, DurableEvent
from actors.core.stream_events.events import EventsLostEvent
from actors.errors import Fenced, JournalBehind, JournalUnavailable
from actors.journal.commands import ReadLog
from actors.journal.journal_actor import JournalActor
from actors.journal.storage import Entry, LogPage
from actors.journal.storage.postgres import PostgresStorage
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Say, Turn
from tests.cli.command import actors_now
from tests.journal.postgres import Server
from tests.journal.storages import begin, to
from tests.runtime.test_hibernation import hibernate
from tests.runtime_support import openai, restarted_actors, runtime_with

TABLES = ("actors_session", "actors_record", "actors_blob", "actors_blob_use", "actors_host")


class Standby:
    """A snapshot of the tables that replaces them when it is promoted.

    Args:
        owner: A connection of the test.
    """

    def __init__(self, owner: psycopg.Connection[Any]) -> None:
        self._owner = owner

    def fall_behind(self) -> None:
        """Stop replicating."""
        for table in TABLES:
            self._owner.execute(f"CREATE TABLE standby_{table} AS TABLE {table}")

    def promote(self, *, cut: bool = True) -> None:
        """Replace the tables by the snapshot. With `cut`, close the connections of the hosts."""
        with self._owner.transaction():
            self._owner.execute(f"TRUNCATE {', '.join(TABLES)}")
            for table in TABLES:
                columns = ", ".join(self._columns(table))
                self._owner.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM standby_{table}")
            for table in TABLES:
                self._owner.execute(f"DROP TABLE standby_{table}")
        if cut:
            self._owner.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE usename = current_user AND pid <> pg_backend_pid() AND application_name LIKE 'actors %'"
            )

    def _columns(self, table: str) -> list[str]:
        """Return the columns of a table that are not generated."""
        found = self._owner.execute(
            "SELECT attname FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND attgenerated = '' AND NOT attisdropped",
            (table,),
        )
        return [name for (name,) in found]


@pytest.fixture
def url(postgres: Server) -> str:
    """The URL of a journal, with a user of its own."""
    role = postgres.role()
    return postgres.url(role, user=role)


@pytest.fixture
def standby(url: str) -> Iterator[Standby]:
    with psycopg.connect(url, autocommit=True) as owner:
        yield Standby(owner)


@pytest.fixture
def storage(url: str) -> Iterator[PostgresStorage]:
    made = PostgresStorage(url)
    made.open()
    yield made
    made.close()


# The storage


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("knows", [True, False])
def test_an_append_after_lost_events_is_refused(
    storage: PostgresStorage, standby: Standby, cut: bool, knows: bool
) -> None:
    claim, other = begin(storage, "one"), begin(storage, "other")
    standby.fall_behind()
    storage.append([Entry("one", claim.fence, (to("b"), to("c")))])
    standby.promote(cut=cut)
    if knows:
        storage._rows.clear()  # the storage does not remember the rows of all sessions
    lost, follows, written = storage.append(
        [
            Entry("one", claim.fence, (to("d"),), 3 if knows else None),
            Entry("one", claim.fence, (to("e"),), 4 if knows else None),
            Entry("other", other.fence, (to("b"),), 1 if knows else None),
        ]
    )
    assert isinstance(lost, JournalBehind)
    assert (lost.session, lost.first, lost.last) == ("one", 2, 3)
    assert "has lost acknowledged events 2 to 3" in str(lost)
    assert isinstance(follows, JournalBehind)
    assert written == 2
    assert len(storage.read("one")) == 1
    assert storage.append([Entry("one", claim.fence, (to("f"),), 1)]) == [2]


@pytest.mark.parametrize("is_remembered", [True, False])
def test_an_append_to_a_session_without_a_row_is_fenced(
    storage: PostgresStorage, standby: Standby, is_remembered: bool
) -> None:
    other = begin(storage, "other")
    standby.fall_behind()
    claim = begin(storage, "one")
    standby.promote()
    if not is_remembered:
        storage._rows.clear()
    for _ in range(2):
        fenced, written = storage.append(
            [Entry("one", claim.fence, (to("b"),)), Entry("other", other.fence, (to("b"),))]
        )
        assert isinstance(fenced, Fenced)
        assert "a failover or a restored backup" in str(fenced)
        assert isinstance(written, int)
    assert storage.read("one") == []
    assert begin(storage, "one").fence == 1


def test_a_host_whose_claim_was_lost_is_fenced_before_its_successor_writes(
    url: str, storage: PostgresStorage, standby: Standby
) -> None:
    begin(storage, "one")
    storage.close()
    standby.fall_behind()
    before = storage.claim("one")
    standby.promote()
    other = PostgresStorage(url)
    after = other.claim("one")
    assert before == after
    (outcome,) = storage.append([Entry("one", before.fence, (to("b"),), 1)])
    assert isinstance(outcome, Fenced)
    assert other.append([Entry("one", after.fence, (to("c"),), 1)]) == [2]
    other.close()


@pytest.mark.parametrize("more", [0, 1])
def test_a_host_whose_claim_was_lost_is_fenced_after_its_successor_wrote(
    url: str, storage: PostgresStorage, standby: Standby, more: int
) -> None:
    begin(storage, "one")
    storage.close()
    standby.fall_behind()
    before = storage.claim("one")
    assert storage.append([Entry("one", before.fence, (to("lost"),) * (1 + more), 1)]) == [2 + more]
    standby.promote()
    other = PostgresStorage(url)
    after = other.claim("one")
    assert before == after
    assert other.append([Entry("one", after.fence, (to("b"),), 1)]) == [2]
    other.close()
    (outcome,) = storage.append([Entry("one", before.fence, (to("c"),), 2 + more)])
    assert isinstance(outcome, Fenced)
    assert "a failover or a restored backup" in str(outcome)
    assert storage.read("one")[1:] == [to("b")]


def test_a_writer_is_fenced_if_its_log_ends_with_events_that_it_does_not_know(
    storage: PostgresStorage,
) -> None:
    claim = begin(storage, "one")
    refused, follows = storage.append(
        [Entry("one", claim.fence, (to("b"),), 0), Entry("one", claim.fence, (to("c"),), 1)]
    )
    assert isinstance(refused, Fenced)
    assert "its log ends at event 1 instead of 0" in str(refused)
    assert follows is refused
    assert len(storage.read("one")) == 1


# Sessions


def _raise_unavailable(_: object) -> NoReturn:
    raise JournalUnavailable("The test says so")


def _report_rollback(_: JournalActor, command: object, answer: object) -> object:
    if isinstance(command, ReadLog):
        raise Entry("one", 1, ()).behind_error(1, 2)
    return answer


@asynccontextmanager
async def _asked_session(
    storage: PostgresStorage, server: LoopbackServer
) -> AsyncIterator[tuple[Runtime, Session]]:
    """Yield a session that was asked once, and its runtime."""
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a", id="one")
        assert (await session.ask("First.")).status == "complete"
        yield runtime, session
        assert restarted_actors(runtime) == []


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_events_lost_in_a_failover_are_reported_to_callers_log_and_fsck(
    url: str, storage: PostgresStorage, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses: list[tuple[str, int, int]] = []
    monkeypatch.setattr("actors.telemetry.logger.events_lost", lambda *loss: losses.append(loss))
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 4)) as (_, session):
        kept = [event async for event in session.events(follow=False)]
        last = max(event.seq for event in kept if isinstance(event, DurableEvent))
        await anyio.to_thread.run_sync(standby.fall_behind)
        assert (await session.ask("Second.")).status == "complete"
        read = [event async for event in session.events(follow=False)]
        lost = max(event.seq for event in read if isinstance(event, DurableEvent))
        reader = session.events()
        assert [await anext(reader) for _ in read] == read
        await anyio.to_thread.run_sync(standby.promote)
        with pytest.raises(JournalBehind) as raised:
            await session.ask("Third.")
        assert (raised.value.first, raised.value.last) == (last + 1, lost)
        assert (await session.ask("Fourth.")).status == "complete"
        told = await anext(reader)
        assert isinstance(told, EventsLostEvent)
        assert (told.seq, told.first, told.last) == (last + 1, last + 1, lost)
        follows = await anext(reader)
        assert isinstance(follows, AskStartedEvent)
        assert follows.seq == last + 2
        await reader.aclose()
    log = storage.read("one")
    assert log[last] == EventsLost(last + 1, lost)
    assert [b"Second" in event.message for event in log if isinstance(event, AskStarted)] == [False, False]
    assert losses == [("one", last + 1, lost)]
    done = actors_now("sessions", "fsck", url)
    assert done.code == 1
    assert f"session 'one', record {last + 1}: events {last + 1} to {lost} were acknowledged" in done.out


@pytest.mark.anyio
async def test_a_reader_that_finds_events_missing_waits_until_the_writer_has_recorded_the_loss(
    storage: PostgresStorage, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 4)) as (_, session):
        read = [event async for event in session.events(follow=False)]
        reader, page, is_read = session.events(), storage.page, anyio.Event()
        assert [await anext(reader) for _ in read] == read
        await anyio.to_thread.run_sync(standby.fall_behind)
        assert (await session.ask("Second.")).status == "complete"
        await anyio.to_thread.run_sync(standby.promote)
        heard = list[object]()

        def page_and_tell(*given: Any, **named: Any) -> LogPage:  # Any: the parameters of `page`
            found = page(*given, **named)
            anyio.from_thread.run_sync(is_read.set)
            return found

        async def read_on() -> None:
            heard.append(await anext(reader))

        monkeypatch.setattr(storage, "page", page_and_tell)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as reading:
                reading.start_soon(read_on)
                await is_read.wait()
                with pytest.raises(JournalBehind):
                    await session.ask("Third.")
        (told,) = heard
        assert isinstance(told, EventsLostEvent)
        await reader.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("is_named_at_once", [False, True])
async def test_a_session_read_after_a_failover_fails_once_and_then_continues(
    storage: PostgresStorage, standby: Standby, is_named_at_once: bool
) -> None:
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 4)) as (_, session):
        last = len(storage.read("one"))
        await anyio.to_thread.run_sync(standby.fall_behind)
        assert (await session.ask("Second.")).status == "complete"
        lost = len(storage.read("one"))
        await hibernate(session)
        await anyio.to_thread.run_sync(standby.promote)
        with pytest.raises(JournalBehind) as raised:
            await session.ask("Third.")
        assert (raised.value.first, raised.value.last) == (last + 1, lost)
        if is_named_at_once:
            assert len(await session.history()) == 2
        assert (await session.ask("Fourth.")).status == "complete"
        assert len(await session.history()) == 4
    log = storage.read("one")
    assert log[last] == EventsLost(last + 1, lost)
    assert [type(event) for event in log].count(EventsLost) == 1


@pytest.mark.anyio
async def test_a_session_suspended_before_a_failover_fails_once_and_then_continues(
    storage: PostgresStorage, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 4)) as (_, session):
        last = len(storage.read("one"))
        await anyio.to_thread.run_sync(standby.fall_behind)
        assert (await session.ask("Second.")).status == "complete"
        lost = len(storage.read("one"))
        with monkeypatch.context() as outage:
            outage.setattr(storage, "append", _raise_unavailable)
            with pytest.raises(JournalUnavailable):
                await session.ask("Third.")
        assert session._lifecycle.state == "suspended"
        await anyio.to_thread.run_sync(standby.promote)
        with pytest.raises(JournalBehind) as raised:
            await session.ask("Fourth.")
        assert (raised.value.first, raised.value.last) == (last + 1, lost)
        assert (await session.ask("Fifth.")).status == "complete"
    assert storage.read("one")[last] == EventsLost(last + 1, lost)


@pytest.mark.anyio
async def test_a_session_idle_during_a_failover_can_be_closed(
    storage: PostgresStorage, standby: Standby
) -> None:
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 4)) as (_, session):
        last = len(storage.read("one"))
        await anyio.to_thread.run_sync(standby.fall_behind)
        assert (await session.ask("Second.")).status == "complete"
        read = [event async for event in session.events(follow=False)]
        reader = session.events()
        assert [await anext(reader) for _ in read] == read
        await hibernate(session)
        await anyio.to_thread.run_sync(standby.promote)
        await session.close()
        told = await anext(reader)
        assert isinstance(told, EventsLostEvent)
        assert told.seq == last + 1
        await reader.aclose()
    (stored,) = storage.sessions()
    assert stored.state == "closed"


@pytest.mark.anyio
@pytest.mark.parametrize("sleeps", [False, True])
async def test_a_fork_after_a_rollback_leaves_recording_the_loss_to_the_writer(
    storage: PostgresStorage, standby: Standby, sleeps: bool
) -> None:
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 6)) as (runtime, session):
        last = len(storage.read("one"))
        await anyio.to_thread.run_sync(standby.fall_behind)
        assert (await session.ask("Second.")).status == "complete"
        if sleeps:
            await hibernate(session)
        await anyio.to_thread.run_sync(standby.promote)
        for name in ("two", "three"):
            await runtime.journal.fork("one", id=name)
            assert len(storage.read(name)) == last
        assert len(storage.read("one")) == last
        with pytest.raises(JournalBehind):
            await session.ask("Third.")
        assert (await session.ask("Fourth.")).status == "complete"
        assert len(await session.history()) == 4
    assert isinstance(storage.read("one")[last], EventsLost)


@pytest.mark.anyio
async def test_a_close_fails_if_the_journal_is_rolled_back(
    storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 4)) as (_, session):
        with monkeypatch.context() as going_back:
            await hibernate(session)
            going_back.setattr(JournalActor, "_check_answer", _report_rollback)
            with anyio.fail_after(60), pytest.raises(JournalBehind):
                await session.close()
        assert (await session.ask("Second.")).status == "complete"


@pytest.mark.anyio
async def test_a_session_lost_in_a_failover_is_fenced_and_can_be_opened_again(
    storage: PostgresStorage, standby: Standby
) -> None:
    async with runtime_with(a=openai(*[Turn(Say("Done."))] * 4), storage=storage) as runtime:
        await anyio.to_thread.run_sync(standby.fall_behind)
        session = await runtime.open("a", id="one")
        assert (await session.ask("First.")).status == "complete"
        await anyio.to_thread.run_sync(standby.promote)
        for _ in range(2):
            with pytest.raises(Fenced, match="a failover or a restored backup"):
                await session.ask("Second.")
        anew = await runtime.open("a", id="one")
        assert (await anew.ask("First.")).status == "complete"
        assert restarted_actors(runtime) == []


@pytest.mark.anyio
async def test_a_session_can_be_closed_after_a_rollback(storage: PostgresStorage, standby: Standby) -> None:
    async with _asked_session(storage, openai(*[Turn(Say("Done."))] * 4)) as (_, session):
        await anyio.to_thread.run_sync(standby.fall_behind)
        assert (await session.ask("Second.")).status == "complete"
        await anyio.to_thread.run_sync(standby.promote)
        await session.close()
    (stored,) = storage.sessions()
    assert stored.state == "closed"
    assert any(isinstance(event, EventsLost) for event in storage.read("one"))
