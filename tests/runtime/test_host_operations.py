"""Closing and deletion are the host's: a caller waits for them and cannot undo them."""

import asyncio
import gc
import random
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from functools import cache, partial
from types import CodeType, FrameType, ModuleType
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from actors import Runtime
from actors.core.log.events import Closed, LogEvent, TurnEnded, TurnStarted
from actors.errors import JournalError, SessionClosed, SessionExists, WrongEventLoop
from actors.journal.journal_actor import ReleaseSession
from actors.journal.storage.memory import MemoryStorage
from actors.kernel.tasks import Work
from actors.runtime.handle import Session
from actors.runtime.session_host import SessionHost
from actors.scheduler.threads import THREADS
from actors.strict.rules.reading import clear_cache
from actors.testing import Call, Say, ServerLimits, Stall, Turn
from tests.runtime.test_recovery_of_sessions import Held
from tests.runtime_support import Gate, actors, anthropic, gathered, hosting, log, openai

pytestmark = pytest.mark.anyio

WORK = Turn(Call("work", {"name": "a"}))


def assert_no_turn_is_open(events: list[LogEvent]) -> None:
    bound = sum(isinstance(event, TurnStarted) for event in events)
    assert bound == sum(isinstance(event, TurnEnded) for event in events)
    assert isinstance(events[-1], Closed)


async def ended(runtime: Runtime, name: str) -> None:
    """Wait until a session has ended."""
    while name in runtime.sessions:
        await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("PROMISE-12")
async def test_a_close_whose_caller_is_cancelled_at_any_moment_leaves_no_turn_open() -> None:
    for turns in range(0, 24, 2):
        gate = Gate()
        async with hosting(a=openai(WORK)) as runtime:
            session = await runtime.open("a", tools=[gate.tool])
            async with session.stream("Do it."):
                await gate.started("a")
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(_cancel_after, turns, scope)
                        await session.close()
                await ended(runtime, session.id)
            assert_no_turn_is_open(log(runtime, session))


async def _cancel_after(turns: int, scope: anyio.CancelScope) -> None:
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.requirement("PROMISE-12")
async def test_a_close_whose_caller_is_cancelled_natively_leaves_no_turn_open() -> None:
    for turns in range(1, 12, 2):  # by then it has asked
        gate = Gate()
        async with hosting(a=openai(WORK)) as runtime:
            session = await runtime.open("a", tools=[gate.tool])
            async with session.stream("Do it."):
                await gate.started("a")
                task = asyncio.create_task(session.close())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                await ended(runtime, session.id)
            assert_no_turn_is_open(log(runtime, session))


@pytest.mark.requirement("PROMISE-12", "PROMISE-10")
async def test_leaving_closes_the_turns_in_flight_in_the_log() -> None:
    gate, storage = Gate(), MemoryStorage()
    silent = anthropic(faults={0: Stall()})
    async with hosting(a=openai(WORK), silent=silent, storage=storage) as runtime:
        for target in ("a", "silent"):
            session = await runtime.open(target, tools=[gate.tool], id=target)
            async with session.stream("Do it."), session.stream("And this."):
                pass  # they go on
        await gate.started("a")
        while not silent.received:
            await anyio.lowlevel.checkpoint()
        runtime._registry.open.clear()  # they cannot be compared while they move
    for name in ("a", "silent"):
        assert [event.status for event in storage.read(name) if isinstance(event, TurnEnded)] == ["cancelled"]


# ---- deletion


@pytest.mark.requirement("PROMISE-12")
async def test_a_session_that_is_deleted_has_ended_and_its_log_is_gone() -> None:
    gate, storage = Gate(), MemoryStorage()
    async with hosting(a=openai(WORK, Turn(Say("new"))), storage=storage) as runtime:
        old = await runtime.open("a", tools=[gate.tool], id="one")
        async with old.stream("Do it.") as events:
            await gate.started("a")
            assert (old.busy, old.target) == (True, "a")
            await runtime.journal.delete("one")
            assert [event async for event in events][-1].type == "complete"
        assert (storage.sessions(), list(runtime.sessions)) == ([], [])
        new = await runtime.open("a", tools=[gate.tool], id="one")
        assert (await new.ask("Who are you?")).text == "new"
        assert len(await new.history()) == 2
        for use in (
            old.history,
            old.cancel,
            partial(old.ask, "x"),
            partial(old.switch, "a"),
            partial(old.preview, "a"),
        ):
            with pytest.raises(SessionClosed):
                await use()
        await old.close()
        assert list(runtime.sessions) == ["one"]
        assert (old.busy, old.target, new.busy) == (False, "a", False)


ELSEWHERE = (ModuleType, FrameType, CodeType, pytest.Item, pytest.Collector, pytest.Config)
"""Other modules, and what runs the tests, which has all of them."""
OURS = {"actors", "anyio", "h11", "jiter", "jsonschema_rs", "msgspec", "pydantic", "structlog", "trio"}
"""Whose modules, and Python's own, words of a session come to; not those that other tests have loaded."""


ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
"""Kinds of value that hold no other."""


@cache
def is_ours(kind: Any) -> bool:  # Any: a type
    return not issubclass(kind, ELSEWHERE)


def held_by_modules() -> list[object]:
    """All that is reached from our modules: the garbage collector may no longer list it (tests/conftest.py)."""
    known = OURS | sys.stdlib_module_names
    others = [vars(module) for name, module in sys.modules.items() if name.partition(".")[0] not in known]
    found: dict[int, object] = {id(each): each for each in others}
    left: list[object] = [vars(module) for name, module in sys.modules.items() if name.startswith("actors")]
    while left:
        some = {id(each): each for each in left if type(each) not in ATOMS}
        kinds: dict[int, Any] = {key: type(each) for key, each in some.items()}  # Any: a type
        new = {key: some[key] for key in some.keys() - found.keys() if is_ours(kinds[key])}
        found |= new
        left = gc.get_referents(*new.values())
    return list(found.values())


def holding(secret: str) -> Iterator[str]:
    """Every text in memory that has a secret in it, whoever keeps it; what modules keep comes last."""
    clear_cache()  # what the servers read, who are somebody else
    raw = secret.encode()
    for holders in (gc.get_objects, held_by_modules):
        for each in gc.get_referents(*holders()):
            if type(each) is str and secret in each and each != secret:
                yield each
            elif type(each) is bytes and raw in each and each != raw:
                yield each.decode("latin-1")


CALLER: ContextVar[str] = ContextVar("caller")


async def asked_for(secret: str, session: Session) -> None:
    CALLER.set(f"who asks: {secret}")
    await session.ask(f"Do it for {secret}.")


async def test_no_word_of_a_session_that_is_deleted_stays_in_memory() -> None:
    secret = random.randbytes(8).hex()
    turns = Turn(Call("work", {"name": "a"})), Turn(Say("done")), Turn(Say("no"))
    server = openai(*turns, limits=ServerLimits(recordings=1))

    async def work(name: str) -> str:
        return f"the result of {name}: {secret}"

    async with hosting(a=server) as runtime:
        other = await runtime.open("a", id="other")
        session = await runtime.open("a", tools=[work], system=f"You are {secret}.", id="one")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked_for, secret, session)  # its variables go with it
        assert next(holding(secret))
        await runtime.journal.delete("one")
        del session
        await other.ask("Anything?")  # by the same connection, so that its server forgets too
        gc.collect()
        assert [*holding(secret)] == []
        await other.close()


async def test_a_session_that_was_closed_can_be_deleted_and_one_that_never_was_too() -> None:
    storage = MemoryStorage()
    async with hosting(a=openai(), storage=storage) as runtime:
        session = await runtime.open("a", id="one")
        await session.close()
        with pytest.raises(SessionExists):
            await runtime.open("a", id="one")
        await runtime.journal.delete("one")
        await runtime.journal.delete("one")
        await runtime.journal.delete("nobody")
        assert storage.sessions() == []
        await runtime.open("a", id="one")


async def test_a_deleted_session_costs_nothing() -> None:
    storage = MemoryStorage()
    async with hosting(a=openai(), storage=storage) as runtime:
        session = await runtime.open("a", system="You are helpful.")
        await gathered(session, "Hello.")
        kept = weakref.ref(session)
        name = session.id
        await runtime.journal.delete(name)
        del session
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        gc.collect()
        assert kept() is None
        assert [actor for actor in actors(runtime) if name in actor] == []


async def test_deletion_is_finished_though_its_caller_is_cancelled_and_nobody_takes_the_id_meanwhile() -> (
    None
):
    storage = Held(Closed)
    async with hosting(a=openai(), storage=storage) as runtime:
        await (await runtime.open("a", id="one")).ask("Hello.")
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(runtime.journal.delete, "one")
                await storage.begun.wait()
                for refused in (partial(runtime.open, "a", id="one"), partial(runtime.journal.delete, "one")):
                    with pytest.raises(SessionExists):
                        await refused()
                scope.cancel()
        storage.freed.set()
        while storage.sessions():
            await anyio.lowlevel.checkpoint()
        assert list(runtime.sessions) == []


class Stuck(MemoryStorage):
    """A storage that cannot delete."""

    def delete(self, *sessions: str) -> None:
        raise OSError("read-only")


async def test_a_log_that_cannot_be_deleted_is_an_error_of_its_own() -> None:
    async with hosting(a=openai(), storage=Stuck()) as runtime:
        await runtime.open("a", id="one")
        with pytest.raises(JournalError, match="could not be deleted: OSError: read-only"):
            await runtime.journal.delete("one")
        assert list(runtime.sessions) == []


async def test_a_runtime_that_is_left_while_a_session_lets_go_of_its_log_reports_no_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The journal has no room for that, and ends; it lets go of all logs then."""
    crashes, waiting, storage, start = list[str](), list[str](), MemoryStorage(), SessionHost.start

    def started(host: SessionHost, work: Work, name: str) -> None:
        waiting.append(name)
        start(host, work, name)

    monkeypatch.setattr(SessionHost, "start", started)
    monkeypatch.setattr("actors.telemetry.logger.crashed", lambda name, _: crashes.append(name))
    async with hosting(a=openai(), storage=storage) as runtime:
        await runtime.open("a", id="one")
        await runtime.open("a", id="two")
        host, life = runtime._running_host(), runtime._system.cells["journal"].life
        assert life is not None
        life.hold()
        while host.journal.offer(ReleaseSession("nobody", 0)):
            pass
    assert sorted(waiting) == ["one/release", "two/release"]
    assert crashes == []
    assert [stored.owner for stored in storage.sessions()] == [None, None]


async def test_sessions_are_known_by_their_ids_in_a_view_that_may_change_under_a_loop() -> None:
    async with hosting(a=openai()) as runtime:
        known = runtime.sessions
        for number in range(4):
            await runtime.open("a", id=f"s{number}")
        assert ("s2" in known, "s9" in known, len(known)) == (True, False, 4)
        for name in known:
            await runtime.journal.delete(name)
        assert list(known) == []


async def test_a_session_knows_its_target_also_after_a_switch_and_at_rest() -> None:
    async with hosting(a=openai(), b=openai()) as runtime:
        session = await runtime.open("a")
        assert session.target == "a"
        await session.switch("b")
        assert session.target == "b"
        assert session._lifecycle.passivate()
        assert (session.target, session.busy) == ("b", False)


# ---- whose loop


def uses(runtime: Runtime, session: Session, events: Any) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return every public way to use these. Any: an open stream."""

    async def stream() -> None:
        async with session.stream("x"):
            pass

    async def known() -> object:
        return runtime.session(session.id)

    return {
        "ask": partial(session.ask, "x"),
        "stream": stream,
        "an event": lambda: anext(events),
        "switch": partial(session.switch, "a"),
        "cancel": session.cancel,
        "history": session.history,
        "ledger": session.ledger,
        "preview": partial(session.preview, "a"),
        "close": session.close,
        "open": partial(runtime.open, "a"),
        "session": known,
        "delete": partial(runtime.journal.delete, session.id),
        "leave": partial(runtime.__aexit__, None, None, None),
    }


@pytest.mark.parametrize("foreign", ["asyncio", "trio", "none"])
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_a_call_from_another_thread_or_loop_is_a_typed_error_at_once(foreign: str) -> None:
    gate = Gate()
    async with hosting(a=openai(WORK, Turn(Say("done")))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await gate.started("a")
            for name, use in uses(runtime, session, events).items():
                elsewhere = partial(anyio.run, _bounded, use, backend=foreign)
                run = partial(_stepped, use) if foreign == "none" else elsewhere
                with pytest.raises(WrongEventLoop, match="thread and event loop that entered"):
                    await anyio.to_thread.run_sync(run)
                assert name
            gate.open("a")
            assert [event async for event in events][-1].type == "complete"
        assert (await session.ask("Still there?")).status == "complete"


def _stepped(use: Callable[[], Awaitable[object]]) -> None:
    """Take the first step of a call in a thread without a loop."""
    use().__await__().send(None)


async def _bounded(use: Callable[[], Awaitable[object]]) -> None:
    """Make a call that may wait for ever: nothing of its own loop would wake it."""
    with anyio.fail_after(10):
        await use()


async def test_a_thread_may_call_through_its_loop() -> None:
    async with hosting(a=openai(Turn(Say("by a thread")))) as runtime:
        session = await runtime.open("a")
        answer = await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(session.ask, "Who?"))
        assert answer.text == "by a thread"
        assert threading.current_thread() is threading.main_thread()


# ---- a cancel that came too late


async def test_a_cancel_that_came_too_late_says_so() -> None:
    storage = Held(TurnEnded)
    async with hosting(a=openai(Turn(Say("done"))), storage=storage) as runtime:
        session = await runtime.open("a")
        answers: list[object] = []

        async def cancel() -> None:
            answers.append(await session.cancel())

        async with session.stream("Go.") as events:
            await storage.begun.wait()  # its end is being written
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel)
                await anyio.wait_all_tasks_blocked()
                storage.freed.set()
            last = [event async for event in events][-1]
        assert last.type == "complete"
        assert last.result.status == "complete"
        assert answers == [False]


@pytest.mark.requirement("PROMISE-12")
async def test_a_runtime_whose_entering_is_cancelled_uses_no_threads_and_gives_none_back() -> None:
    users = THREADS.users
    for turns in range(8):
        with anyio.fail_after(60), anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_after, turns, scope)
                async with Runtime(environ={"OPENAI_API_KEY": "k"}):
                    await anyio.sleep_forever()
        assert THREADS.users == users
