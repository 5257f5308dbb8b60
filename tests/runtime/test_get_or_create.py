"""`open(..., resume=True)` opens, resumes or returns the session of an id, and `async with` gives it back."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.config import RuntimeLimits
from actors.core.log.events import Closed
from actors.errors import ConfigError, JournalUnavailable, SessionClosed, SessionExists, TooManySessions
from actors.journal.storage import Appended, Entry, Storage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.runtime.lifecycle import SessionLifecycle
from actors.runtime.session_host import SessionHost
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.journal.storages import FILES
from tests.runtime.every_await import cancels
from tests.runtime.test_edges import Slow
from tests.runtime.test_ownership import nothing_left, runtime_on
from tests.runtime.test_recovery_of_sessions import Held
from tests.runtime_support import Gate, hosting, openai

pytestmark = pytest.mark.anyio

KEPT = pytest.mark.parametrize("kept", ["memory", "slow memory", "sqlite-process"])
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
WORK = Turn(Call("work", {"name": "a"}))


def storage_of(kept: str, folder: Path) -> Storage:
    """Return a storage that is empty."""
    return Slow() if kept == "slow memory" else FILES[kept](folder)


async def until(is_so: Callable[[], object]) -> None:
    """Wait for what the host does behind its callers' backs."""
    while not is_so():  # noqa: ASYNC110  nobody tells
        await anyio.sleep(0.001)


@KEPT
async def test_callers_that_come_at_once_get_one_session(kept: str, tmp_path: Path) -> None:
    got = list[Session]()

    async def get(runtime: Runtime) -> None:
        got.append(await runtime.open("a", id="one", resume=True))

    async with hosting(a=openai(Turn(Say("Hi."))), storage=storage_of(kept, tmp_path)) as runtime:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(get, runtime)
        assert len(got) == 5
        assert len(set(map(id, got))) == 1
        assert runtime.sessions["one"] is got[0]
        assert (await got[3].ask("Hello.")).text == "Hi."


@KEPT
async def test_callers_that_come_and_go_at_once_all_get_a_session(kept: str, tmp_path: Path) -> None:
    answers = list[str]()

    async def use(runtime: Runtime) -> None:
        async with runtime.open("a", id="one", resume=True) as session:
            answers.append((await session.ask("Hello.")).text)

    server = openai(*[Turn(Say("Hi.")) for _ in range(12)])
    async with hosting(a=server, storage=storage_of(kept, tmp_path)) as runtime:
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(6):
                    tasks.start_soon(use, runtime)
        assert answers == ["Hi."] * 12


async def test_a_session_is_resumed_from_its_log_and_keeps_what_the_log_has(tmp_path: Path) -> None:
    storage = FILES["sqlite-process"](tmp_path)
    async with hosting(a=openai(Turn(Say("one"))), b=openai(), storage=storage) as runtime:
        session = await runtime.open("a", id="one", system="Be brief.", tenant="t", resume=True)
        await session.ask("First?")
    async with hosting(a=openai(Turn(Say("two"))), b=openai(), storage=storage) as runtime:
        session = await runtime.open("b", id="one", tools=[LOOK], tenant="t", resume=True)
        assert session.target == "a"
        assert (await session.ask("Second?")).text == "two"
        history = await session.history()
        assert (len(history), history.system) == (4, "Be brief.")
        with pytest.raises(SessionExists, match="another tenant"):
            await runtime.open("a", id="one", tenant="other", resume=True)
        await session.close()
        with pytest.raises(SessionClosed, match="closed for good"):
            await runtime.open("a", id="one", resume=True)


@KEPT
async def test_the_last_one_who_gives_a_session_back_has_it_put_away(kept: str, tmp_path: Path) -> None:
    async with hosting(a=openai(*[Turn(Say("Hi."))] * 2), storage=storage_of(kept, tmp_path)) as runtime:
        async with runtime.open("a", id="one", resume=True) as session:
            async with runtime.open("a", id="one", resume=True) as same:
                assert same is session
                await same.ask("Hello.")
            assert runtime.stats().hibernated == 0
            await session.ask("Still here?")
        await assert_put_away(runtime, kept)


async def assert_put_away(runtime: Runtime, kept: str) -> None:
    """Wait until session `one` sleeps, or is closed if its log is in memory."""
    with anyio.fail_after(60):
        if kept == "sqlite-process":
            await until(lambda: runtime.stats().hibernated == 1)
            assert list(runtime.sessions) == ["one"]
        else:
            await until(lambda: "one" not in runtime.sessions)
            (stored,) = await runtime.journal.list()
            assert stored.state == "closed"


@KEPT
async def test_a_session_that_somebody_awaited_stays_when_others_give_it_back(
    kept: str, tmp_path: Path
) -> None:
    async with hosting(a=openai(Turn(Say("Hi."))), storage=storage_of(kept, tmp_path)) as runtime:
        session = await runtime.open("a", id="one")
        async with runtime.open("a", id="one", resume=True):
            pass
        assert runtime.sessions["one"] is session
        assert (await session.ask("Hello.")).text == "Hi."


@KEPT
async def test_giving_back_cancels_no_turn_that_runs(kept: str, tmp_path: Path) -> None:
    gate, results = Gate(), list[str]()

    async def ask(session: Session) -> None:
        results.append((await session.ask("Do it.")).status)

    server = openai(WORK, Turn(Say("Done.")))
    async with (
        hosting(a=server, storage=storage_of(kept, tmp_path)) as runtime,
        anyio.create_task_group() as tasks,
    ):
        async with runtime.open("a", id="one", tools=[gate.tool]) as session:
            tasks.start_soon(ask, session)
            await gate.started("a")
        assert (session.busy, results) == (True, [])
        gate.open("a")
        await assert_put_away(runtime, kept)
    assert results == ["complete"]


@KEPT
async def test_giving_back_cancels_no_turn_that_waits(kept: str, tmp_path: Path) -> None:
    server = openai(Turn(Call("look", {})), Turn(Say("Found.")))
    async with hosting(a=server, storage=storage_of(kept, tmp_path)) as runtime:
        async with runtime.open("a", id="one", tools=[LOOK]) as session:
            asked = await session.ask("Look.")
        assert asked.status == "awaiting"
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        async with runtime.open("a", id="one", resume=True) as same:
            assert same is session
            (waits,) = same.pending
            assert (await same.ask(results={waits.call.id: 1})).text == "Found."
        await assert_put_away(runtime, kept)


@pytest.mark.parametrize("kept", ["memory", "slow memory"])
async def test_a_session_in_memory_that_was_closed_is_begun_anew(kept: str, tmp_path: Path) -> None:
    async with hosting(a=openai(*[Turn(Say("Hi."))] * 2), storage=storage_of(kept, tmp_path)) as runtime:
        for _ in range(2):
            async with runtime.open("a", id="one", resume=True) as session:
                await session.ask("Hello.")
                assert len(await session.history()) == 2


async def test_who_comes_while_a_session_is_closed_gets_one_that_is_open() -> None:
    storage, answers = Held(Closed), list[str]()

    async def use(words: str) -> None:
        async with runtime.open("a", id="one", resume=True) as session:
            answers.append((await session.ask(words)).text)

    server = openai(Turn(Say("one")), Turn(Say("two")))
    async with hosting(a=server, storage=storage) as runtime, anyio.create_task_group() as tasks:
        tasks.start_soon(use, "First?")
        await storage.begun.wait()
        tasks.start_soon(use, "Second?")
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        storage.freed.set()
    assert answers == ["one", "two"]


@KEPT
async def test_an_open_that_may_resume_leaves_nothing_when_it_is_cancelled_at_any_await(
    kept: str, tmp_path: Path
) -> None:
    async with runtime_on(storage_of(kept, tmp_path)) as runtime:

        async def work() -> None:
            async with runtime.open("openai:m", id="one", resume=True):
                await anyio.lowlevel.checkpoint()

        async with aclosing(cancels(work)) as moments:
            async for _ in moments:
                with anyio.fail_after(60):
                    await until(lambda: not runtime._registry._reserved)
                    await until(lambda: kept == "sqlite-process" or not runtime.sessions)
                assert all(runtime.sessions[name]._lifecycle.handles == 0 for name in runtime.sessions)
                await runtime.journal.delete("one")
                await nothing_left(runtime)


async def test_what_cannot_be_got_is_told_in_one_line() -> None:
    async with hosting(a=openai()) as runtime:
        with pytest.raises(ConfigError, match="resume=True takes an id="):
            await runtime.open("a", resume=True)
        with pytest.raises(SessionClosed, match="No session 'one' is open; open"):
            runtime.sessions["one"]
        await runtime.open("a", id="one")
        with pytest.raises(
            SessionExists, match="is open already; take another id, or open it with resume=True"
        ):
            await runtime.open("a", id="one")


async def test_a_session_that_nobody_has_makes_place_for_another(tmp_path: Path) -> None:
    server = openai(*[Turn(Say("Hi.")) for _ in range(7)])
    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=2)
    async with hosting(a=server, storage=storage, limits=limits) as runtime:
        for name in ("one", "two", "three", "one"):
            async with runtime.open("a", id=name, resume=True) as session:
                await session.ask("Hello.")
            await until(lambda: runtime.stats().active == 0)
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


async def test_a_session_that_waits_or_is_read_keeps_its_place(tmp_path: Path) -> None:
    server = openai(Turn(Call("look", {})), Turn(Say("Hi.")))
    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=1)
    async with hosting(a=server, storage=storage, limits=limits) as runtime:
        async with runtime.open("a", id="one", tools=[LOOK], resume=True) as session:
            await session.ask("Look it up.")
        await until(lambda: runtime.stats().active == 0)
        with pytest.raises(TooManySessions):
            await runtime.open("a", id="two", resume=True)
        async with runtime.open("a", id="one", resume=True):
            await session.cancel()
        async with aclosing(session.events()) as events:
            await anext(events)
            await until(lambda: runtime.stats().active == 0)
            for _ in range(2):
                with pytest.raises(TooManySessions):
                    await runtime.open("a", id="two", resume=True)
        await runtime.open("a", id="two", resume=True)
        assert list(runtime.sessions) == ["two"]


async def test_a_session_that_is_read_hides_none_that_nobody_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.runtime.residency.TRIES", 1)
    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=2)
    async with hosting(a=openai(), storage=storage, limits=limits) as runtime:
        for name in ("one", "two"):
            async with runtime.open("a", id=name, resume=True):
                pass
        async with aclosing(runtime.sessions["one"].events()) as events:
            await anext(events)
            with pytest.raises(TooManySessions):
                await runtime.open("a", id="three", resume=True)
            await runtime.open("a", id="three", resume=True)
            assert list(runtime.sessions) == ["one", "three"]


async def test_a_session_that_was_looked_up_keeps_its_place_while_its_ask_waits_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, begins, answers = anyio.Event(), anyio.Event(), list[str]()

    async def begin(_: SessionHost, tenant: str) -> None:
        begun.set()
        await begins.wait()

    async def ask(session: Session) -> None:
        answers.append((await session.ask("Hello.")).text)

    storage, limits = FILES["sqlite-process"](tmp_path), RuntimeLimits(sessions=1)
    async with hosting(a=openai(Turn(Say("Hi."))), storage=storage, limits=limits) as runtime:
        async with runtime.open("a", id="one", resume=True):
            pass
        async with anyio.create_task_group() as tasks:
            with monkeypatch.context() as patched:
                patched.setattr(SessionHost, "begin", begin)
                tasks.start_soon(ask, runtime.sessions["one"])
                await begun.wait()
            with pytest.raises(TooManySessions):
                await runtime.open("a", id="two", resume=True)
            begins.set()
        assert answers == ["Hi."]
        await until(lambda: runtime.stats().active == 0)
        await runtime.open("a", id="two", resume=True)


class Failing(SqliteStorage):
    """A file that can be read but, while `is_full`, not written."""

    is_full = False

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if self.is_full:
            raise JournalUnavailable("The disk is full")
        return super().append(entries)


async def test_a_session_that_an_outage_broke_off_makes_place_for_another(tmp_path: Path) -> None:
    storage, limits = Failing(tmp_path / "sessions.db"), RuntimeLimits(sessions=1)
    server = openai(Turn(Say("Hi.")), Turn(Say("Back.")))
    async with hosting(a=server, storage=storage, limits=limits) as runtime:
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


async def test_a_session_that_was_given_back_during_a_close_that_failed_makes_place_for_another(
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
    async with hosting(a=openai(), storage=storage, limits=limits) as runtime:
        with monkeypatch.context() as patched:
            patched.setattr(SessionLifecycle, "_write_end", fail)
            async with anyio.create_task_group() as tasks:
                async with runtime.open("a", id="one", resume=True) as session:
                    tasks.start_soon(close, session)
                    await begun.wait()
                fails.set()
        await runtime.open("a", id="two", resume=True)
