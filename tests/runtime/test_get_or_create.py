"""`open(..., resume=True)` opens, resumes or returns a session; `async with` releases it."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.config import RuntimeLimits
from actors.core.log.events import Closed
from actors.errors import (
    ConfigError,
    JournalUnavailable,
    SessionClosed,
    SessionClosedForGood,
    SessionExists,
    TooManySessions,
)
from actors.journal.storage import Appended, Entry, Storage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime import session_actors
from actors.runtime.handle import Session
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.session_host import SessionHost
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.journal.storages import FILES
from tests.runtime.every_await import cancels
from tests.runtime.test_edges import BlockingStorage
from tests.runtime.test_ownership import assert_nothing_left, runtime_on
from tests.runtime.test_recovery_of_sessions import HeldStorage
from tests.runtime_support import Gate, openai, runtime_with

pytestmark = pytest.mark.anyio

STORAGES = pytest.mark.parametrize("kept", ["memory", "slow memory", "sqlite-process"])
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
WORK = Turn(Call("work", {"name": "a"}))


def storage_of(kept: str, folder: Path) -> Storage:
    """Return an empty storage."""
    return BlockingStorage() if kept == "slow memory" else FILES[kept](folder)


async def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for work that the host does in the background."""
    while not is_so():  # noqa: ASYNC110  # the host does not report it
        await anyio.sleep(0.001)


@STORAGES
async def test_concurrent_callers_receive_the_same_session(kept: str, tmp_path: Path) -> None:
    got = list[Session]()

    async def get(runtime: Runtime) -> None:
        got.append(await runtime.open("a", id="one", resume=True))

    async with runtime_with(a=openai(Turn(Say("Hi."))), storage=storage_of(kept, tmp_path)) as runtime:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(get, runtime)
        assert len(got) == 5
        assert len(set(map(id, got))) == 1
        assert runtime.sessions["one"] is got[0]
        assert (await got[3].ask("Hello.")).text == "Hi."


@STORAGES
async def test_callers_that_open_and_release_concurrently_all_get_a_session(
    kept: str, tmp_path: Path
) -> None:
    answers = list[str]()

    async def use(runtime: Runtime) -> None:
        async with runtime.open("a", id="one", resume=True) as session:
            answers.append((await session.ask("Hello.")).text)

    server = openai(*[Turn(Say("Hi.")) for _ in range(12)])
    async with runtime_with(a=server, storage=storage_of(kept, tmp_path)) as runtime:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(6):
                    tasks.start_soon(use, runtime)
        assert answers == ["Hi."] * 12


async def test_a_resumed_session_keeps_the_target_and_prompt_of_its_log(tmp_path: Path) -> None:
    storage = FILES["sqlite-process"](tmp_path)
    async with runtime_with(a=openai(Turn(Say("one"))), b=openai(), storage=storage) as runtime:
        session = await runtime.open("a", id="one", system="Be brief.", tenant="t", resume=True)
        await session.ask("First?")
    async with runtime_with(a=openai(Turn(Say("two"))), b=openai(), storage=storage) as runtime:
        session = await runtime.open("b", id="one", tools=[LOOK], tenant="t", resume=True)
        assert session.target == "a"
        assert (await session.ask("Second?")).text == "two"
        history = await session.history()
        assert (len(history), history.system) == (4, "Be brief.")
        with pytest.raises(SessionExists, match="another tenant"):
            await runtime.open("a", id="one", tenant="other", resume=True)
        await session.close()
        with pytest.raises(SessionClosedForGood, match="was closed and cannot be resumed"):
            await runtime.open("a", id="one", resume=True)


@STORAGES
async def test_a_session_is_passivated_when_its_last_user_releases_it(kept: str, tmp_path: Path) -> None:
    async with runtime_with(a=openai(*[Turn(Say("Hi."))] * 2), storage=storage_of(kept, tmp_path)) as runtime:
        async with runtime.open("a", id="one", resume=True) as session:
            async with runtime.open("a", id="one", resume=True) as same:
                assert same is session
                await same.ask("Hello.")
            assert runtime.stats().hibernated == 0
            await session.ask("Still here?")
        await assert_passivated(runtime, kept)


async def assert_passivated(runtime: Runtime, kept: str) -> None:
    """Wait until session `one` is hibernated, or closed if its log is in memory."""
    with anyio.fail_after(60):
        if kept == "sqlite-process":
            await wait_until(lambda: runtime.stats().hibernated == 1)
            assert list(runtime.sessions) == ["one"]
        else:
            await wait_until(lambda: "one" not in runtime.sessions)
            (stored,) = await runtime.journal.list()
            assert stored.state == "closed"


@STORAGES
async def test_a_session_opened_with_await_stays_open_when_other_users_release_it(
    kept: str, tmp_path: Path
) -> None:
    async with runtime_with(a=openai(Turn(Say("Hi."))), storage=storage_of(kept, tmp_path)) as runtime:
        session = await runtime.open("a", id="one")
        async with runtime.open("a", id="one", resume=True):
            pass
        assert runtime.sessions["one"] is session
        assert (await session.ask("Hello.")).text == "Hi."


@STORAGES
async def test_releasing_a_session_does_not_cancel_a_running_turn(kept: str, tmp_path: Path) -> None:
    gate, results = Gate(), list[str]()

    async def ask(session: Session) -> None:
        results.append((await session.ask("Do it.")).status)

    server = openai(WORK, Turn(Say("Done.")))
    async with (
        runtime_with(a=server, storage=storage_of(kept, tmp_path)) as runtime,
        anyio.create_task_group() as tasks,
    ):
        async with runtime.open("a", id="one", tools=[gate.tool]) as session:
            tasks.start_soon(ask, session)
            await gate.started("a")
        assert (session.busy, results) == (True, [])
        gate.open("a")
        await assert_passivated(runtime, kept)
    assert results == ["complete"]


@STORAGES
async def test_releasing_a_session_does_not_cancel_a_waiting_turn(kept: str, tmp_path: Path) -> None:
    server = openai(Turn(Call("look", {})), Turn(Say("Found.")))
    async with runtime_with(a=server, storage=storage_of(kept, tmp_path)) as runtime:
        async with runtime.open("a", id="one", tools=[LOOK]) as session:
            asked = await session.ask("Look.")
        assert asked.status == "awaiting"
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        async with runtime.open("a", id="one", resume=True) as same:
            assert same is session
            (waits,) = same.pending
            assert (await same.ask(results={waits.call.id: 1})).text == "Found."
        await assert_passivated(runtime, kept)


@pytest.mark.parametrize("kept", ["memory", "slow memory"])
async def test_a_session_closed_in_memory_storage_is_opened_again_from_scratch(
    kept: str, tmp_path: Path
) -> None:
    async with runtime_with(a=openai(*[Turn(Say("Hi."))] * 2), storage=storage_of(kept, tmp_path)) as runtime:
        for _ in range(2):
            async with runtime.open("a", id="one", resume=True) as session:
                await session.ask("Hello.")
                assert len(await session.history()) == 2


async def test_a_caller_that_arrives_during_a_close_receives_a_new_open_session() -> None:
    storage, answers = HeldStorage(Closed), list[str]()

    async def use(words: str) -> None:
        async with runtime.open("a", id="one", resume=True) as session:
            answers.append((await session.ask(words)).text)

    server = openai(Turn(Say("one")), Turn(Say("two")))
    async with runtime_with(a=server, storage=storage) as runtime, anyio.create_task_group() as tasks:
        tasks.start_soon(use, "First?")
        await storage.begun.wait()
        tasks.start_soon(use, "Second?")
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        storage.freed.set()
    assert answers == ["one", "two"]


@STORAGES
@pytest.mark.parametrize("way", ["open", "claim"])
async def test_a_caller_that_arrives_during_a_release_receives_a_session_that_stays_usable(
    kept: str, way: str, tmp_path: Path
) -> None:
    gate, texts = Gate(), list[str]()

    async def ask(session: Session, words: str) -> None:
        texts.append((await session.ask(words)).text)

    async def use() -> None:
        opening = runtime.open("a", id="one", resume=True) if way == "open" else runtime.claim("one")
        await ask(await opening, "Second?")

    server = openai(Turn(Call("work", {"name": "x"})), Turn(Say("one")), Turn(Say("two")))
    async with runtime_with(a=server, storage=storage_of(kept, tmp_path)) as runtime:
        session = await runtime.open("a", id="one", tools=[gate.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, session, "First?")
            await gate.started("x")
            tasks.start_soon(session.release)
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(use)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            gate.open("x")
    assert texts == ["one", "two"]


async def test_a_tool_can_look_up_its_own_session_while_the_session_is_released() -> None:
    releasing, found = anyio.Event(), list[Session]()

    @tool
    async def work(name: str) -> str:
        """Look up the session that runs this tool."""
        await releasing.wait()
        found.append(await runtime.open("a", id="one", resume=True))
        return name

    server = openai(Turn(Call("work", {"name": "x"})), Turn(Say("Done.")))
    async with runtime_with(a=server) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", id="one", tools=[work])

        async def release() -> None:
            tasks.start_soon(session.release)
            await anyio.lowlevel.checkpoint()
            releasing.set()

        tasks.start_soon(release)
        assert (await session.ask("Work.")).text == "Done."
    assert found == [session]


@STORAGES
async def test_open_with_resume_cancelled_at_any_await_leaves_no_handle_or_claim(
    kept: str, tmp_path: Path
) -> None:
    async with runtime_on(storage_of(kept, tmp_path)) as runtime:

        async def work() -> None:
            async with runtime.open("openai:m", id="one", resume=True):
                await anyio.lowlevel.checkpoint()

        async with aclosing(cancels(work)) as moments:
            async for _ in moments:
                with anyio.fail_after(60):
                    await wait_until(lambda: not runtime._registry._reserved)
                    await wait_until(lambda: kept == "sqlite-process" or not runtime.sessions)
                assert all(runtime.sessions[name]._lifecycle.handles == 0 for name in runtime.sessions)
                await runtime.journal.delete("one")
                await assert_nothing_left(runtime)


async def test_a_missing_id_an_unknown_session_and_an_open_session_raise_short_errors() -> None:
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ConfigError, match="resume=True needs id="):
            await runtime.open("a", resume=True)
        with pytest.raises(SessionClosed, match="No session 'one' is open; open"):
            runtime.sessions["one"]
        await runtime.open("a", id="one")
        with pytest.raises(SessionExists, match="is already open; use another id, or pass resume=True"):
            await runtime.open("a", id="one")


async def test_a_released_session_makes_room_for_another_session(tmp_path: Path) -> None:
    server = openai(*[Turn(Say("Hi.")) for _ in range(7)])
    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=2)
    async with runtime_with(a=server, storage=storage, limits=limits) as runtime:
        for name in ("one", "two", "three", "one"):
            async with runtime.open("a", id=name, resume=True) as session:
                await session.ask("Hello.")
            await wait_until(lambda: runtime.stats().active == 0)
        assert list(runtime.sessions) == ["three", "one"]
        assert len(await runtime.sessions["one"].history()) == 4
        with pytest.raises(SessionClosed):
            runtime.session("two")
        async with runtime.open("a", id="three", resume=True):
            mine = await runtime.open("a", id="two", resume=True)
            with pytest.raises(TooManySessions, match="2 sessions are open"):
                await runtime.open("a", id="four", resume=True)
        await mine.ask("Mine?")
        assert {each.id: each.state for each in await runtime.journal.list()} == dict.fromkeys(
            ("one", "two", "three"), "idle"
        )


async def test_a_waiting_or_subscribed_session_is_never_closed_to_make_room(tmp_path: Path) -> None:
    server = openai(Turn(Call("look", {})), Turn(Say("Hi.")))
    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=1)
    async with runtime_with(a=server, storage=storage, limits=limits) as runtime:
        async with runtime.open("a", id="one", tools=[LOOK], resume=True) as session:
            await session.ask("Look it up.")
        await wait_until(lambda: runtime.stats().active == 0)
        with pytest.raises(TooManySessions):
            await runtime.open("a", id="two", resume=True)
        async with runtime.open("a", id="one", resume=True):
            await session.cancel()
        async with aclosing(session.events()) as events:
            await anext(events)
            await wait_until(lambda: runtime.stats().active == 0)
            for _ in range(2):
                with pytest.raises(TooManySessions):
                    await runtime.open("a", id="two", resume=True)
        await runtime.open("a", id="two", resume=True)
        assert list(runtime.sessions) == ["two"]


async def test_a_subscribed_session_does_not_prevent_eviction_of_released_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.runtime.residency.TRIES", 1)
    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=2)
    async with runtime_with(a=openai(), storage=storage, limits=limits) as runtime:
        for name in ("one", "two"):
            async with runtime.open("a", id=name, resume=True):
                pass
        async with aclosing(runtime.sessions["one"].events()) as events:
            await anext(events)
            with pytest.raises(TooManySessions):
                await runtime.open("a", id="three", resume=True)
            await runtime.open("a", id="three", resume=True)
            assert list(runtime.sessions) == ["one", "three"]


async def test_a_session_in_which_an_ask_begins_is_not_closed_to_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begins, answers = anyio.Event(), anyio.Event(), list[str]()

    async def begin(_: SessionHost, tenant: str) -> None:
        begun.set()
        await begins.wait()

    async def ask(session: Session) -> None:
        answers.append((await session.ask("Hello.")).text)

    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=1)
    async with runtime_with(a=openai(Turn(Say("Hi."))), storage=storage, limits=limits) as runtime:
        async with runtime.open("a", id="one", resume=True):
            pass
        async with anyio.create_task_group() as tasks:
            with monkeypatch.context() as patched:
                patched.setattr(SessionHost, "wait_to_begin", begin)
                tasks.start_soon(ask, runtime.sessions["one"])
                await begun.wait()
            with pytest.raises(TooManySessions):
                await runtime.open("a", id="two", resume=True)
            begins.set()
        assert answers == ["Hi."]
        await wait_until(lambda: runtime.stats().active == 0)
        await runtime.open("a", id="two", resume=True)


class FailingStorage(SqliteStorage):
    """A file that cannot be written while `is_full` is set."""

    is_full = False

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if self.is_full:
            raise JournalUnavailable("The disk is full")
        return super().append(entries)


async def test_a_session_interrupted_by_an_outage_makes_room_for_another_session(tmp_path: Path) -> None:
    storage, limits = FailingStorage(tmp_path / "sessions.db"), RuntimeLimits(sessions=1)
    server = openai(Turn(Say("Hi.")), Turn(Say("Back.")))
    async with runtime_with(a=server, storage=storage, limits=limits) as runtime:
        async with runtime.open("a", id="one", resume=True) as session:
            await session.ask("Hello.")
            storage.is_full = True
            with pytest.raises(JournalUnavailable):
                await session.ask("Again.")
        storage.is_full = False
        async with runtime.open("a", id="two", resume=True):
            assert list(runtime.sessions) == ["two"]
        async with runtime.open("a", id="one", resume=True) as session:
            assert (await session.ask("Still there?")).text == "Back."


async def test_a_session_released_during_a_failed_close_makes_room_for_another_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, fails = anyio.Event(), anyio.Event()

    async def fail(_: SessionLifecycle) -> None:
        begun.set()
        await fails.wait()
        raise JournalUnavailable("The disk is full")

    async def close(session: Session) -> None:
        with pytest.raises(JournalUnavailable):
            await session.close()

    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=1)
    async with runtime_with(a=openai(), storage=storage, limits=limits) as runtime:
        with monkeypatch.context() as patched:
            patched.setattr(session_actors, "_log_end", fail)
            async with anyio.create_task_group() as tasks:
                async with runtime.open("a", id="one", resume=True) as session:
                    tasks.start_soon(close, session)
                    await begun.wait()
                fails.set()
        await runtime.open("a", id="two", resume=True)
