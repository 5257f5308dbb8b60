"""Hibernated sessions: only a stub stays in memory, and callers notice only latency."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.config import RuntimeLimits
from actors.core.settings.spending import Budget
from actors.core.values.content import Message, Text
from actors.core.values.packed import pack
from actors.errors import JournalDamaged, JournalUnavailable, TooManySessions
from actors.events import ApprovalDecision
from actors.journal.storage import PAGE, Durability, LogPage, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.kernel.cell import Cell
from actors.runtime.handle import Session
from actors.testing import Call, OpenAIServer, Say, Think, Turn
from actors.tools import Tool, tool
from tests.journal.storages import open_storage
from tests.runtime.test_activation import bodies_sent
from tests.runtime_support import Gate, anthropic, openai, runtime_with

pytestmark = pytest.mark.anyio

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
WORK = Turn(Think("hm"), Call("work", {"name": "a"}), Call("work", {"name": "b"}))
LONG = "x" * 30_000


@tool(approval="ask")
def remove(path: str) -> str:
    """Remove a file."""
    return f"{path} is gone"


@pytest.fixture(params=["sqlite-process", "postgres"])
def storage(request: pytest.FixtureRequest) -> Iterator[Storage]:
    with closing(open_storage(request.param, request)) as storage:  # the judge reads it again at the end
        yield storage


async def hibernate(session: Session) -> None:
    """Passivate a session and drop everything but its log."""
    while not session._lifecycle.passivate():
        await anyio.lowlevel.checkpoint()
    session._lifecycle.evict()
    assert is_hibernated(session)


def is_hibernated(session: Session) -> bool:
    """Return True if nothing of a session is in memory that its log contains."""
    return session._lifecycle.state == "stored" and session._lifecycle.memory_use.total == 0


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-3", "PROMISE-4", "PROMISE-6")
async def test_a_session_hibernated_between_asks_sends_the_same_bytes(storage: Storage) -> None:
    async def keep_active(session: Session) -> None:
        """Leave the session active."""

    awake, asleep = await bodies_sent(keep_active), await bodies_sent(hibernate, storage)
    assert len(awake) == 8
    assert asleep == awake


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-6")
async def test_reading_a_session_returns_the_same_data_before_and_after_hibernation(storage: Storage) -> None:
    gate = Gate()
    gate.open("a", "b")
    reads: list[Callable[[Session], Awaitable[object]]] = [
        Session.history,
        Session.ledger,
        lambda session: session.preview("two"),
        _events,
    ]
    async with runtime_with(
        storage=storage, one=anthropic(WORK, Turn(Say("Done."))), two=openai()
    ) as runtime:
        session = await runtime.open("one", tools=[gate.tool], budget=Budget(rounds=5))
        await session.ask("Do it.")
        await session.switch("two")
        before = [await read(session) for read in reads]
        for read, was in zip(reads, before, strict=True):
            await hibernate(session)
            assert (session.target, session.busy, session.pending) == ("two", False, ())
            assert await read(session) == was
        await hibernate(session)
        assert [each.id for each in await runtime.journal.list()] == [session.id]
        assert not await session.cancel()
        await hibernate(session)
        assert (await session.ask("And now?")).binding.backend == "two"


async def _events(session: Session) -> list[object]:
    return [event async for event in session.events(follow=False)]


@pytest.mark.alternating
async def test_reading_the_events_of_a_hibernated_session_does_not_wake_it(storage: Storage) -> None:
    async with runtime_with(storage=storage, a=openai()) as runtime:
        session = await runtime.open("a")
        await session.ask("Hello?")
        await hibernate(session)
        assert await _events(session)
        assert is_hibernated(session)


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-6")
@pytest.mark.parametrize("given", ["results", "a decision", "a cancel", "an end"])
async def test_a_waiting_turn_survives_hibernation(storage: Storage, given: str) -> None:
    call = Call("remove", {"path": "/a"}) if given == "a decision" else Call("look", {"n": 1})
    async with runtime_with(storage=storage, a=openai(Turn(call), Turn(Say("Done.")))) as runtime:
        session = await runtime.open("a", tools=[LOOK, remove])
        assert (await session.ask("Do it.")).status == "awaiting"
        (waits,) = session.pending
        await hibernate(session)
        assert (session.busy, session.pending) == (True, (waits,))
        came_of: object = None
        seen = list[tuple[object, ...]]()

        async def resolve() -> None:
            nonlocal came_of
            match given:
                case "results":
                    came_of = (await session.ask(results={waits.call.id: "21 C"})).text
                case "a decision":
                    came_of = (await session.ask(approvals={waits.call.id: ApprovalDecision("allow")})).text
                case "a cancel":
                    came_of = await session.cancel()
                case _:
                    await session.close()
            seen.append(())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resolve)
            while not seen and is_hibernated(session):
                await anyio.lowlevel.checkpoint()
            assert (session.busy, session.pending) == (True, (waits,))  # the log is being read
        assert came_of == {"a cancel": True, "an end": None}.get(given, "Done.")
        assert session.pending == ()


@pytest.mark.alternating
async def test_a_hibernated_session_stays_claimed_by_its_host(storage: Storage) -> None:
    async with runtime_with(storage=storage, a=openai()) as runtime:
        session = await runtime.open("a", id="one")
        fence = session._lifecycle.fence
        await session.ask("Hello?")
        await hibernate(session)
        (stored,) = await runtime.journal.list()
        assert stored.owner is not None
        await session.ask("Still there?")
        assert session._lifecycle.fence == fence


@pytest.mark.alternating
async def test_cache_affinity_and_output_type_survive_hibernation(
    storage: Storage,
) -> None:
    answers = Turn(Call("look", {"n": 1})), Turn(Say('{"celsius": 21}'))
    async with runtime_with(storage=storage, a=openai(*answers)) as runtime:
        session = await runtime.open("a", tools=[LOOK])
        session._lifecycle.activate().affinity.last_requests["a"] = (1.0, 9)
        assert (await session.ask("How warm?", output=dict[str, int])).status == "awaiting"
        await hibernate(session)
        answer = await session.ask(results={session.pending[0].call.id: 21})
        assert answer.output == {"celsius": 21}
        await hibernate(session)
        assert session._lifecycle.activate().affinity.last_requests["a"][1] == 9


@pytest.mark.parametrize("error", [JournalUnavailable, JournalDamaged])
async def test_a_hibernated_session_wakes_once_its_unreadable_log_is_readable_again(
    error: type[Exception],
) -> None:
    class Unreadable(MemoryStorage):
        blocking = True
        durability: Durability = "power"
        fails = False

        def page(self, session: str, after: int = 0, limit: int = PAGE) -> LogPage:
            if self.fails:
                raise error("The disk is on fire")
            return super().page(session, after, limit)

    storage = Unreadable()
    async with runtime_with(storage=storage, a=openai(Turn(Say("Hello.")), Turn(Say("Here.")))) as runtime:
        session = await runtime.open("a")
        await session.ask("Hello?")
        await hibernate(session)
        storage.fails = True
        for _ in range(10):  # without counting as restarts
            with pytest.raises(error, match="on fire"):
                await session.history()
            with pytest.raises(error, match="on fire"):
                await session.ask("Still there?")
        storage.fails = False
        assert (await session.ask("And now?")).text == "Here."


@pytest.mark.alternating
async def test_sessions_are_passivated_after_a_burst_of_asks(storage: Storage) -> None:
    gate, names = Gate(), [f"n{number}" for number in range(8)]
    limits = RuntimeLimits(max_active_sessions=2)
    async with runtime_with(storage=storage, limits=limits, a=OpenAIServer(_call_then_answer)) as runtime:
        sessions = [await runtime.open("a", tools=[gate.tool]) for _ in names]
        async with anyio.create_task_group() as tasks:
            for session, name in zip(sessions, names, strict=True):
                tasks.start_soon(session.ask, name)
            await gate.started(*names)
            assert runtime.stats().active == 8
            for session, name in zip(sessions, names, strict=True):
                gate.open(name)
                while session.busy or not _is_idle(session):
                    await anyio.lowlevel.checkpoint()
        stats = runtime.stats()
        assert stats.active <= 4
        assert stats.sessions == stats.active + stats.hibernated == 8


def _call_then_answer(request: dict[str, Any]) -> Turn:
    """Call the tool with the user's message; then answer."""
    last = request["messages"][-1]
    return Turn(Call("work", {"name": last["content"]})) if last["role"] == "user" else Turn(Say("Done."))


def _is_idle(session: Session) -> bool:
    """Return True if all actors of a session are idle."""
    acting = session._lifecycle.actors
    return acting is None or all(
        isinstance(ref.receiver, Cell) and ref.receiver.idle for ref in acting._all_refs
    )


@asynccontextmanager
async def crowded_runtime(storage: Storage, limits: RuntimeLimits) -> AsyncIterator[tuple[Runtime, Gate]]:
    """Yield a runtime on a server whose model calls the tool `work` once."""
    gate = Gate()
    one = Turn(Call("work", {"name": "a"}))
    async with runtime_with(
        storage=storage, limits=limits, a=openai(one, Turn(Say("Done."))), b=openai()
    ) as runtime:
        yield runtime, gate


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-9")
@pytest.mark.parametrize("storage", ["memory", "sqlite-process", "postgres"], indirect=True)
async def test_the_number_of_open_sessions_is_limited(storage: Storage) -> None:
    async with runtime_with(storage=storage, limits=RuntimeLimits(sessions=2), a=openai()) as runtime:
        first, _ = [await runtime.open("a", id=name) for name in ("one", "two")]
        for refused in (runtime.open("a"), runtime.resume("three")):
            with pytest.raises(
                TooManySessions, match=r"2 sessions are open, the most that limits\.sessions allows"
            ):
                await refused
        await first.close()
        await runtime.open("a", id="three")


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-9")
async def test_the_least_recently_used_session_is_hibernated_to_free_memory(storage: Storage) -> None:
    limits = RuntimeLimits(memory=100_000)
    async with runtime_with(storage=storage, limits=limits, a=openai()) as runtime:
        sessions = [await runtime.open("a", id=f"s{number}") for number in range(4)]
        for session in sessions:
            await session.ask(LONG)
            await anyio.wait_all_tasks_blocked()
        assert [is_hibernated(session) for session in sessions] == [True, True, True, False]
        assert 60_000 < runtime.stats().memory < 100_000


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-9")
async def test_new_asks_are_rejected_while_busy_sessions_use_all_memory(storage: Storage) -> None:
    async with crowded_runtime(storage, RuntimeLimits(memory=70_000)) as (runtime, gate):
        busy, other = await runtime.open("a", tools=[gate.tool]), await runtime.open("b")
        async with busy.stream(LONG + LONG) as events:
            await gate.started("a")
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: other.ask("Hello?"),
                lambda: other.switch("a"),
                lambda: runtime.open("b"),
                lambda: runtime.resume("elsewhere"),
            ]
            for call in calls:
                with pytest.raises(
                    TooManySessions, match=r"limits\.memory is 70000; try again when some asks have ended"
                ):
                    await call()
            assert len(await other.history()) == 0  # reads are served
            gate.open("a")
            assert [event.type async for event in events][-1] == "complete"
        await anyio.wait_all_tasks_blocked()
        assert (await other.ask("Hello?")).status == "complete"
        assert is_hibernated(busy)


@pytest.mark.requirement("PROMISE-9")
async def test_logs_in_memory_storage_count_as_memory_that_hibernation_cannot_free() -> None:
    async with runtime_with(limits=RuntimeLimits(memory=100_000), a=openai(), b=openai()) as runtime:
        session = await runtime.open("a", messages=[Message("user", (Text(LONG),))])
        session._lifecycle.evict()
        said = runtime.stats().memory
        assert len(pack(Message("user", (Text(LONG),)))) == said
        await session.ask("Hello?")
        await anyio.wait_all_tasks_blocked()
        assert runtime.stats().memory > 2 * said
        while not session._lifecycle.passivate():
            await anyio.lowlevel.checkpoint()
        session._lifecycle.evict()
        assert said < runtime.stats().memory < said + 1000
        other = await runtime.open("b", messages=[Message("user", (Text(LONG * 3),))])
        with pytest.raises(TooManySessions, match="close some sessions, or store the journal in a file"):
            await session.ask("Hello?")
        await other.close()
        assert (await session.ask("Hello?")).status == "complete"
        await session.close()
        assert runtime.stats().memory == 0


@pytest.mark.alternating
async def test_the_memory_used_for_passivated_sessions_is_limited(storage: Storage) -> None:
    limits = RuntimeLimits(max_active_sessions=1, memory=210_000)
    async with (
        runtime_with(storage=storage, limits=limits, a=openai()) as runtime,
        AsyncExitStack() as stack,
    ):
        sessions = [await runtime.open("a") for _ in range(5)]
        for session in sessions:
            await session.ask(LONG)
            await anyio.wait_all_tasks_blocked()
        residency = runtime._running_host().residency
        assert len(residency.folded) == 2
        assert 140_000 < residency.held.total < 210_000
        for session in sessions:
            stack.push_async_callback(session.close)
        await sessions[0].close()
    assert (residency.held.total, residency.folded) == (0, {})
