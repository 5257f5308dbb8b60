"""Close and delete run in the runtime: cancelling their caller does not interrupt them."""

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
from actors.journal.commands import ReleaseSession
from actors.journal.storage.memory import MemoryStorage
from actors.kernel.tasks import Work
from actors.runtime.handle import Session
from actors.runtime.session_host import SessionHost
from actors.scheduler.threads import THREADS
from actors.strict.rules.reading import clear_cache
from actors.testing import Call, Say, ServerLimits, Stall, Turn
from tests.runtime.test_recovery_of_sessions import HeldStorage
from tests.runtime_support import Gate, actors, anthropic, gather_events, log, openai, runtime_with
from tests.scripted import scripted

pytestmark = [pytest.mark.anyio, pytest.mark.alternating]

WORK = Turn(Call("work", {"name": "a"}))


def assert_no_turn_is_open(events: list[LogEvent]) -> None:
    bound = sum(isinstance(event, TurnStarted) for event in events)
    assert bound == sum(isinstance(event, TurnEnded) for event in events)
    assert isinstance(events[-1], Closed)


async def wait_for_end(runtime: Runtime, name: str) -> None:
    """Wait until a session is closed."""
    while name in runtime.sessions:
        await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("PROMISE-12")
async def test_a_close_cancelled_at_any_moment_leaves_no_turn_open() -> None:
    for turns in range(0, 24, 2):
        gate = Gate()
        async with scripted("openai_chat", WORK, tools=[gate.tool]) as (_, runtime, session):
            async with session.stream("Do it."):
                await gate.started("a")
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(_cancel_after, turns, scope)
                        await session.close()
                await wait_for_end(runtime, session.id)
            assert_no_turn_is_open(log(runtime, session))


async def _cancel_after(turns: int, scope: anyio.CancelScope) -> None:
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.requirement("PROMISE-12")
async def test_a_natively_cancelled_close_leaves_no_turn_open() -> None:
    for turns in range(1, 12, 2):  # from 1, because at 0 the close has not begun
        gate = Gate()
        async with scripted("openai_chat", WORK, tools=[gate.tool]) as (_, runtime, session):
            async with session.stream("Do it."):
                await gate.started("a")
                task = asyncio.create_task(session.close())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                await wait_for_end(runtime, session.id)
            assert_no_turn_is_open(log(runtime, session))


@pytest.mark.requirement("PROMISE-12", "PROMISE-10")
async def test_exiting_the_runtime_closes_running_turns_in_the_log() -> None:
    gate, storage = Gate(), MemoryStorage()
    silent = anthropic(faults={0: Stall()})
    async with runtime_with(a=openai(WORK), silent=silent, storage=storage) as runtime:
        for target in ("a", "silent"):
            session = await runtime.open(target, tools=[gate.tool], id=target)
            async with session.stream("Do it."), session.stream("And this."):
                pass  # the asks continue
        await gate.started("a")
        while not silent.received:
            await anyio.lowlevel.checkpoint()
        runtime._registry.open.clear()  # sessions cannot be compared while they change
    for name in ("a", "silent"):
        assert [event.status for event in storage.read(name) if isinstance(event, TurnEnded)] == ["cancelled"]


# ---- deletion


@pytest.mark.requirement("PROMISE-12")
async def test_deleting_a_session_closes_the_session_and_removes_its_log() -> None:
    gate, storage = Gate(), MemoryStorage()
    async with runtime_with(a=openai(WORK, Turn(Say("new"))), storage=storage) as runtime:
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
"""Other modules, and the test runner, which references them."""
OURS = {"actors", "anyio", "h11", "jiter", "jsonschema_rs", "msgspec", "pydantic", "structlog", "trio"}
"""Modules that may hold text of a session, in addition to the standard library."""


ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
"""Types of values that reference no others."""


@cache
def is_ours(kind: Any) -> bool:  # Any: a type
    return not issubclass(kind, ELSEWHERE)


def reachable_from_modules() -> list[object]:
    """Return all objects reachable from our modules. The collector may list fewer (tests/conftest.py)."""
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


def texts_with(secret: str) -> Iterator[str]:
    """Yield every text in memory that contains a secret; texts that modules hold come last."""
    clear_cache()  # clears the buffers of the servers, which are not part of the session
    raw = secret.encode()
    for holders in (gc.get_objects, reachable_from_modules):
        for each in gc.get_referents(*holders()):
            if type(each) is str and secret in each and each != secret:
                yield each
            elif type(each) is bytes and raw in each and each != raw:
                yield each.decode("latin-1")


CALLER: ContextVar[str] = ContextVar("caller")


async def ask_with_secret(secret: str, session: Session) -> None:
    CALLER.set(f"who asks: {secret}")
    await session.ask(f"Do it for {secret}.")


async def test_no_text_of_a_deleted_session_stays_in_memory() -> None:
    secret = random.randbytes(8).hex()
    turns = Turn(Call("work", {"name": "a"})), Turn(Say("done")), Turn(Say("no"))
    server = openai(*turns, limits=ServerLimits(recordings=1))

    async def work(name: str) -> str:
        return f"the result of {name}: {secret}"

    async with runtime_with(a=server) as runtime:
        other = await runtime.open("a", id="other")
        session = await runtime.open("a", tools=[work], system=f"You are {secret}.", id="one")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_with_secret, secret, session)  # with its context variables
        assert next(texts_with(secret))
        await runtime.journal.delete("one")
        del session
        await other.ask("Anything?")  # on the same connection, so that the server forgets too
        gc.collect()
        assert [*texts_with(secret)] == []
        await other.close()


async def test_closed_and_unknown_sessions_can_be_deleted() -> None:
    storage = MemoryStorage()
    async with runtime_with(a=openai(), storage=storage) as runtime:
        session = await runtime.open("a", id="one")
        await session.close()
        with pytest.raises(SessionExists):
            await runtime.open("a", id="one")
        await runtime.journal.delete("one")
        await runtime.journal.delete("one")
        await runtime.journal.delete("nobody")
        assert storage.sessions() == []
        await runtime.open("a", id="one")


async def test_a_deleted_session_is_freed_from_memory() -> None:
    storage = MemoryStorage()
    async with runtime_with(a=openai(), storage=storage) as runtime:
        session = await runtime.open("a", system="You are helpful.")
        await gather_events(session, "Hello.")
        kept = weakref.ref(session)
        name = session.id
        await runtime.journal.delete(name)
        del session
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        gc.collect()
        assert kept() is None
        assert [actor for actor in actors(runtime) if name in actor] == []


async def test_a_cancelled_deletion_is_completed_and_reserves_the_session_id_until_then() -> None:
    storage = HeldStorage(Closed)
    async with runtime_with(a=openai(), storage=storage) as runtime:
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


class UndeletableStorage(MemoryStorage):
    """A storage that cannot delete."""

    def delete(self, *sessions: str) -> None:
        raise OSError("read-only")


async def test_a_log_that_cannot_be_deleted_raises_a_journal_error() -> None:
    async with runtime_with(a=openai(), storage=UndeletableStorage()) as runtime:
        await runtime.open("a", id="one")
        with pytest.raises(JournalError, match="could not be deleted: OSError: read-only"):
            await runtime.journal.delete("one")
        assert list(runtime.sessions) == []


async def test_no_actor_crashes_if_the_runtime_exits_while_sessions_release_their_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mailbox of the journal is full, and the journal then ends, which releases all logs."""
    crashes, waiting, storage, start = list[str](), list[str](), MemoryStorage(), SessionHost.start

    def note_and_start(host: SessionHost, work: Work, name: str) -> None:
        waiting.append(name)
        start(host, work, name)

    monkeypatch.setattr(SessionHost, "start", note_and_start)
    monkeypatch.setattr("actors.telemetry.logger.actor_crashed", lambda name, _: crashes.append(name))
    async with runtime_with(a=openai(), storage=storage) as runtime:
        await runtime.open("a", id="one")
        await runtime.open("a", id="two")
        host, life = runtime._running_host(), runtime._system.cells["journal"].life
        assert life is not None
        life.hold_messages()
        while host.journal.offer(ReleaseSession("nobody", 0)):
            pass
    assert sorted(waiting) == ["one/release", "two/release"]
    assert crashes == []
    assert [stored.owner for stored in storage.sessions()] == [None, None]


async def test_sessions_may_be_opened_and_closed_while_the_program_iterates_over_them() -> None:
    async with runtime_with(a=openai()) as runtime:
        known = runtime.sessions
        for number in range(4):
            await runtime.open("a", id=f"s{number}")
        assert ("s2" in known, "s9" in known, len(known)) == (True, False, 4)
        for name in known:
            await runtime.journal.delete(name)
        assert list(known) == []


async def test_a_session_knows_its_target_after_a_switch_and_passivation() -> None:
    async with runtime_with(a=openai(), b=openai()) as runtime:
        session = await runtime.open("a")
        assert session.target == "a"
        await session.switch("b")
        assert session.target == "b"
        assert session._lifecycle.passivate()
        assert (session.target, session.busy) == ("b", False)


# ---- wrong event loops


def public_calls(
    runtime: Runtime, session: Session, events: Any
) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return every public call of these objects. Any: an open stream."""

    async def stream() -> None:
        async with session.stream("x"):
            pass

    async def look_up() -> object:
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
        "session": look_up,
        "delete": partial(runtime.journal.delete, session.id),
        "leave": partial(runtime.__aexit__, None, None, None),
    }


@pytest.mark.parametrize("foreign", ["asyncio", "trio", "none"])
@pytest.mark.requirement("PROMISE-12", "PROMISE-11")
async def test_a_call_from_another_thread_or_loop_raises_wrong_event_loop(foreign: str) -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, Turn(Say("done")), tools=[gate.tool]) as (_, runtime, session):
        async with session.stream("Do it.") as events:
            await gate.started("a")
            for name, use in public_calls(runtime, session, events).items():
                elsewhere = partial(anyio.run, _run_bounded, use, backend=foreign)
                run = partial(_start, use) if foreign == "none" else elsewhere
                with pytest.raises(WrongEventLoop, match="thread and event loop that entered"):
                    await anyio.to_thread.run_sync(run)
                assert name
            gate.open("a")
            assert [event async for event in events][-1].type == "complete"
        assert (await session.ask("Still there?")).status == "complete"


def _start(use: Callable[[], Awaitable[object]]) -> None:
    """Start a coroutine in a thread without an event loop."""
    use().__await__().send(None)


async def _run_bounded(use: Callable[[], Awaitable[object]]) -> None:
    """Make a call with a timeout, because nothing in its own loop would wake it."""
    with anyio.fail_after(10):
        await use()


async def test_a_thread_may_call_through_the_event_loop() -> None:
    async with scripted("openai_chat", Turn(Say("by a thread"))) as (_, _, session):
        answer = await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(session.ask, "Who?"))
        assert answer.text == "by a thread"
        assert threading.current_thread() is threading.main_thread()


# ---- a cancel that comes too late


async def test_cancelling_an_ask_that_has_just_ended_returns_false() -> None:
    storage = HeldStorage(TurnEnded)
    async with runtime_with(a=openai(Turn(Say("done"))), storage=storage) as runtime:
        session = await runtime.open("a")
        answers: list[object] = []

        async def cancel() -> None:
            answers.append(await session.cancel())

        async with session.stream("Go.") as events:
            await storage.begun.wait()  # while the end of the turn is being written
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel)
                await anyio.wait_all_tasks_blocked()
                storage.freed.set()
            last = [event async for event in events][-1]
        assert last.type == "complete"
        assert last.result.status == "complete"
        assert answers == [False]


@pytest.mark.requirement("PROMISE-12")
async def test_a_runtime_cancelled_while_entering_releases_its_threads() -> None:
    users = THREADS.users
    for turns in range(8):
        with anyio.fail_after(60), anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_after, turns, scope)
                async with Runtime(environ={"OPENAI_API_KEY": "k"}):
                    await anyio.sleep_forever()
        assert THREADS.users == users
