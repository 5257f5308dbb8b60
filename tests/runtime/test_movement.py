"""Sessions move between the hosts of a journal: nothing is lost or repeated, and no caller waits for a lease."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime, Session, ToolContext, tool
from actors.config import Config, FileSettings
from actors.core.log.call_events import Cancelled
from actors.core.log.events import TurnEnded, TurnStarted
from actors.core.values.identity import CallId
from actors.errors import (
    ConfigError,
    HostDraining,
    HostUnavailable,
    JournalUnavailable,
    ReentrantCall,
    SessionClosed,
    SessionLeased,
    SessionUnknown,
)
from actors.events import ApprovalDecision
from actors.journal.storage import Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.postgres import PostgresStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime import mover
from actors.strict.rules.base import Json
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from actors.tools.toolsets import ToolItem
from tests.journal.postgres import Server
from tests.runtime_support import Gate, backend_at, log

pytestmark = [pytest.mark.anyio, pytest.mark.alternating]

MakeStorage = Callable[[], Storage]
LONG = 3600.0
"""Seconds of a lease that does not expire during a test, so that a caller that waits for its end fails the test."""


@pytest.fixture(params=["sqlite", "postgres"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStorage:
    """Return a function that returns another storage of the same journal."""
    if request.param == "sqlite":
        return lambda: SqliteStorage(tmp_path / "sessions.db", durability="process", lease=LONG)
    server: Server = request.getfixturevalue("postgres")
    url = server.url(server.schema())
    return lambda: PostgresStorage(url, lease=LONG)


def answer(request: Json) -> Turn:
    """Call the tool `work` or `pay` if the last message is a question that names it; otherwise answer."""
    assert isinstance(request, dict)
    messages = request["messages"]
    assert isinstance(messages, list)
    last = messages[-1]
    words = str(last["content"])
    if last["role"] == "user" and words.startswith("Work"):
        return Turn(Call("work", {"name": words.removeprefix("Work ").rstrip(".")}))
    if last["role"] == "user" and words == "Pay.":
        return Turn(Call("pay", {}))
    return Turn(Say(f"Answer to {words}"))


class Cluster:
    """Runtimes with one journal and different addresses, and a server that simulates the model."""

    def __init__(self, stack: AsyncExitStack, server: OpenAIServer, journal: MakeStorage) -> None:
        self._stack, self._server, self._journal = stack, server, journal
        self.hosts: dict[str, Runtime] = {}

    def make(self, address: str, storage: Storage | None = None) -> Runtime:
        """Return a runtime with this address, which is not entered yet."""
        config = Config(FileSettings(backends={"a": backend_at(self._server)}), {})
        return Runtime(config, journal=storage or self._journal(), seed=1, address=address)

    async def start(self, *addresses: str, storage: Storage | None = None) -> list[Runtime]:
        """Enter a runtime for each address, and return the runtimes. They are left in reverse order at the end."""
        for address in addresses:
            made = self.make(address, storage)
            self.hosts[address] = await self._stack.enter_async_context(made)
        return [self.hosts[address] for address in addresses]

    async def follow(self, address: str, name: str, words: str) -> str:
        """Ask with a key, and follow the session to its owner as a client does. Return the text of the answer."""
        while True:
            host = self.hosts[address]
            try:
                session = await host.claim(name)
                result = await session.ask(words, key=words)
            except SessionLeased as error:
                address = error.address or address
            except (SessionClosed, HostDraining):
                address = next(each for each in self.hosts if each != address)
            else:
                if result.status == "complete":
                    return result.text
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def cluster(journal: MakeStorage) -> AsyncIterator[Cluster]:
    server = OpenAIServer(answer)
    with anyio.fail_after(120):
        async with serve(server), AsyncExitStack() as stack:
            yield Cluster(stack, server, journal)


@pytest.fixture
async def hosts(journal: MakeStorage) -> AsyncIterator[Cluster]:
    async with cluster(journal) as found:
        yield found


async def open_session(runtime: Runtime, name: str = "one", *tools: ToolItem) -> Session:
    session = await runtime.open("a", id=name, tools=tools)
    await session.ask("Hello.")
    return session


async def history_texts(session: Session) -> list[str]:
    return [message.text for message in await session.history() if message.text]


async def test_a_claim_returns_the_session_or_names_the_address_of_its_host(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")
    session = await open_session(here)
    assert await here.claim("one") is session
    with pytest.raises(SessionLeased, match="at http://a") as refused:
        await there.claim("one")
    assert refused.value.address == "http://a"
    with pytest.raises(SessionUnknown):
        await here.claim("other")
    await session.release()
    claimed = await there.claim("one")
    assert await history_texts(claimed) == ["Hello.", "Answer to Hello."]
    found = {host.address: (host.state, host.sessions) for host in await here.journal.hosts()}
    assert found == {"http://a": ("serving", 0), "http://b": ("serving", 1)}


async def test_releasing_a_session_ends_its_turn_first_and_then_its_handle_raises_session_closed(
    hosts: Cluster,
) -> None:
    here, there = await hosts.start("http://a", "http://b")
    gate = Gate()
    session = await open_session(here, "one", gate.tool)
    async with anyio.create_task_group() as tasks:
        answers = list[str]()

        async def ask() -> None:
            answers.append((await session.ask("Work x.")).text)

        tasks.start_soon(ask)
        await gate.started("x")
        tasks.start_soon(session.release)
        await anyio.lowlevel.checkpoint()
        assert "one" in here.sessions
        gate.open("x")
    assert answers == ["Answer to x is done"]
    for use in (session.ask("Again."), session.history(), session.release()):
        with pytest.raises(SessionClosed, match="was released by this host; claim the session again"):
            await use
    assert (await history_texts(await there.claim("one")))[-1] == "Answer to x is done"


async def test_a_session_without_a_turn_is_handed_over_without_waiting(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")
    session = await open_session(here)
    await here.hand_over("one", to="http://b")
    with pytest.raises(SessionLeased, match="handed over to host") as moved:
        await session.ask("Again.")
    assert moved.value.address == "http://b"
    with pytest.raises(SessionLeased, match="at http://b, whose lease") as leased:
        await here.claim("one")
    assert leased.value.address == "http://b"
    received = await there.claim("one")
    assert (await received.ask("Again.")).text == "Answer to Again."
    await there.hand_over("one", to="http://a")
    assert await history_texts(await here.claim("one")) == [
        "Hello.",
        "Answer to Hello.",
        "Again.",
        "Answer to Again.",
    ]


async def test_a_hand_over_waits_for_the_running_turn_and_later_asks_name_the_new_host(
    hosts: Cluster,
) -> None:
    here, there = await hosts.start("http://a", "http://b")
    gate, moved = Gate(), list[str]()
    session = await open_session(here, "one", gate.tool)

    async def ask(words: str) -> None:
        try:
            await session.ask(words)
        except SessionLeased as error:
            moved.append(f"{words} {error.address}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "Work x.")
        await gate.started("x")
        tasks.start_soon(ask, "Queued.")
        while not here.session("one")._lifecycle.current.pending.waiting:
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(here.hand_over, "one", "http://b")
        while session._lifecycle.departure is None:
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(ask, "Late.")
        await anyio.lowlevel.checkpoint()
        gate.open("x")
    assert sorted(moved) == ["Late. http://b", "Queued. http://b"]
    received = await there.claim("one", tools=[gate.tool])
    assert (await history_texts(received))[-2:] == ["Work x.", "Answer to x is done"]
    assert gate.runs == ["x"]


async def test_a_hand_over_closes_a_turn_that_overruns_and_a_repeated_ask_continues_the_turn(
    hosts: Cluster,
) -> None:
    here, there = await hosts.start("http://a", "http://b")
    gate, statuses = Gate(), list[str]()
    session = await open_session(here, "one", gate.tool)

    async def ask() -> None:
        statuses.append((await session.ask("Work x.", key="k", check=False)).status)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await gate.started("x")
        await here.hand_over("one", to="http://b", timeout=0)
    assert statuses != ["complete"]
    events = log(there, await there.claim("one", tools=[gate.tool]))
    assert sum(isinstance(event, TurnStarted) for event in events) == sum(
        isinstance(event, TurnEnded) for event in events
    )
    assert any(isinstance(event, Cancelled) for event in events)
    result = await there.session("one").ask("Work x.", key="k")
    assert result.status == "complete"
    assert [text for text in await history_texts(there.session("one")) if text == "Work x."] == ["Work x."]


async def test_a_turn_that_waits_for_an_approval_is_handed_over_unchanged(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")

    @tool(approval="ask")
    async def pay() -> str:
        """Pay."""
        return "paid"

    session = await open_session(here, "one", pay)
    assert (await session.ask("Pay.")).status == "awaiting"
    await here.hand_over("one", to="http://b")
    received = await there.claim("one", tools=[pay])
    (call,) = received.pending
    result = await received.ask(approvals={call.call.id: ApprovalDecision("allow")})
    assert (result.status, result.text) == ("complete", "Answer to paid")
    assert call.call.id == CallId("hist_tool_1")


async def test_a_tool_that_ignores_its_cancellation_does_not_delay_the_hand_over_of_its_session(
    hosts: Cluster,
) -> None:
    here, there = await hosts.start("http://a", "http://b")
    begun, over = anyio.Event(), anyio.Event()

    @tool
    async def work(name: str) -> str:
        """Do a piece of work that cannot be cancelled."""
        begun.set()
        with anyio.CancelScope(shield=True):
            await over.wait()
        return name

    session = await open_session(here, "one", work)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(session.ask, "Work x.", check=False))
        await begun.wait()
        await here.hand_over("one", to="http://b", timeout=0)
        received = await there.claim("one", tools=[work])
        over.set()
    assert (await received.ask("Again.")).text == "Answer to Again."


async def test_a_reader_of_events_learns_which_host_its_session_moved_to(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")
    session, found = await open_session(here), list[str]()
    reading = anyio.Event()

    async def follow() -> None:
        try:
            async for event in session.events():
                found.append(event.type)
                if event.type == "complete":
                    reading.set()
        except SessionLeased as error:
            found.append(error.address)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        await reading.wait()
        await here.hand_over("one", to="http://b")
    assert found[-1] == "http://b"
    assert "one" not in here.sessions
    assert await history_texts(await there.claim("one")) == ["Hello.", "Answer to Hello."]


async def test_two_concurrent_hand_overs_of_a_session_do_not_disturb_each_other(hosts: Cluster) -> None:
    here, *_ = await hosts.start("http://a", "http://b", "http://c")
    session, moved = await open_session(here), list[str]()

    async def hand_over(to: str) -> None:
        try:
            await here.hand_over("one", to)
            moved.append(to)
        except SessionLeased as error:
            moved.append(error.address)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hand_over, "http://b")
        tasks.start_soon(hand_over, "http://c")
    assert len(moved) == 2
    assert len({*moved}) == 1
    await session.close()  # no effect: the session has ended on this host
    assert (await hosts.follow("http://a", "one", "Again.")) == "Answer to Again."


async def test_a_hand_over_continues_if_its_caller_is_cancelled(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")
    gate = Gate()
    session = await open_session(here, "one", gate.tool)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.ask, "Work x.")
        await gate.started("x")
        async with anyio.create_task_group() as moving:
            moving.start_soon(here.hand_over, "one", "http://b")
            while (departure := session._lifecycle.departure) is None:
                await anyio.lowlevel.checkpoint()
            moving.cancel_scope.cancel()
        gate.open("x")
        assert departure is not None
        await departure.result()
    assert (await history_texts(await there.claim("one")))[-1] == "Answer to x is done"


@pytest.mark.parametrize("why", ["unknown", "itself", "draining", "left"])
async def test_a_session_stays_usable_if_no_other_host_serves_at_the_address(
    hosts: Cluster, why: str
) -> None:
    (here,) = await hosts.start("http://a")
    session = await open_session(here)
    to = {"itself": "http://a"}.get(why, "http://b")
    if why == "draining":
        (there,) = await hosts.start("http://b")
        await there.drain()
    if why == "left":
        async with hosts.make("http://b"):
            pass
    with pytest.raises(HostUnavailable, match=f"no other host serves at '{to}'"):
        await here.hand_over("one", to=to)
    assert (await session.ask("Again.")).text == "Answer to Again."


async def test_a_host_that_shuts_down_during_the_hand_over_does_not_get_the_session(
    journal: MakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, other = journal(), journal()
    assign = storage.assign

    def close_and_assign(session: str, fence: int, host: str) -> None:
        other.close()
        assign(session, fence, host)

    monkeypatch.setattr(storage, "assign", close_and_assign)
    async with cluster(journal) as hosts:
        (here,) = await hosts.start("http://a", storage=storage)
        await hosts.start("http://b", storage=other)
        session = await open_session(here)
        with pytest.raises(HostUnavailable, match="is gone or accepts no more sessions"):
            await here.hand_over("one", to="http://b")
        assert (await session.ask("Again.")).text == "Answer to Again."


async def test_a_tool_cannot_move_the_session_that_waits_for_it(hosts: Cluster) -> None:
    here, _ = await hosts.start("http://a", "http://b")
    raised = list[type[Exception]]()

    @tool
    async def work(name: str) -> str:
        """Move the session."""
        for move in (here.hand_over("one", "http://b"), here.session("one").release()):
            try:
                await move
            except ReentrantCall as error:
                raised.append(type(error))
        return name

    session = await open_session(here, "one", work)
    assert (await session.ask("Work x.")).text == "Answer to x"
    assert raised == [ReentrantCall, ReentrantCall]


async def test_a_tool_cannot_drain_the_runtime_that_waits_for_it(hosts: Cluster) -> None:
    here, _ = await hosts.start("http://a", "http://b")

    @tool
    async def work(name: str) -> str:
        """Drain the host."""
        with pytest.raises(ReentrantCall, match="A tool of session 'one' cannot drain its runtime"):
            await here.drain(timeout=0)
        return name

    session = await open_session(here, "one", work)
    assert (await session.ask("Work x.")).text == "Answer to x"
    assert here.stats().is_ready
    assert (await here.drain(rate=1000)).handed_over == ("one",)


@pytest.mark.parametrize("give_up", ["release", "assign"])
async def test_a_session_stays_usable_if_its_hand_over_fails_in_the_journal(
    journal: MakeStorage, give_up: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = journal()

    def fail(*_: object) -> None:
        raise JournalUnavailable("The disk is full")

    async with cluster(journal) as hosts:
        (here,) = await hosts.start("http://a", storage=storage)
        await hosts.start("http://b")
        session = await open_session(here)
        with monkeypatch.context() as patch:
            patch.setattr(storage, give_up, fail)
            with pytest.raises(JournalUnavailable, match="The disk is full"):
                await (session.release() if give_up == "release" else here.hand_over("one", "http://b"))
        assert (await session.ask("Again.")).text == "Answer to Again."
        await here.hand_over("one", "http://b")


async def test_a_drain_moves_every_session_to_the_hosts_with_the_fewest_sessions(hosts: Cluster) -> None:
    old, *others = await hosts.start("http://a", "http://b", "http://c")
    for number in range(6):
        await open_session(old, f"s{number}")
    await open_session(others[0], "there")
    moved = await old.drain(rate=1000)
    assert sorted(moved.handed_over) == [f"s{number}" for number in range(6)]
    assert (moved.released, moved.left) == ((), ())
    found = {host.address: (host.state, host.sessions) for host in await old.journal.hosts()}
    assert found == {
        "http://a": ("draining", 0),
        "http://b": ("serving", 4),
        "http://c": ("serving", 3),
    } or found == {"http://a": ("draining", 0), "http://b": ("serving", 3), "http://c": ("serving", 4)}
    for call in (
        old.open("a"),
        old.open("a", id="new", resume=True),
        old.open("a", id="s1"),
        old.claim("no"),
    ):
        with pytest.raises(HostDraining, match="opens no more sessions"):
            await call


async def test_a_draining_host_names_the_owner_of_a_session_that_has_left(hosts: Cluster) -> None:
    old, other = await hosts.start("http://a", "http://b")
    session = await open_session(old)
    assert (await old.drain(rate=1000)).handed_over == ("one",)
    for call in (old.claim("one"), old.resume("one"), old.open("a", id="one", resume=True)):
        with pytest.raises(SessionLeased, match="at http://b"):
            await call
    assert (await other.claim("one")).id == session.id
    await other.session("one").release()
    with pytest.raises(HostDraining):
        await old.claim("one")
    assert (await other.journal.get("one")).owner is None


async def test_a_draining_host_refuses_sessions_while_the_journal_cannot_be_read(
    journal: MakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = journal()

    def fail(*_: object, **__: object) -> None:
        raise JournalUnavailable("The disk is full")

    async with cluster(journal) as hosts:
        await hosts.start("http://b")
        (old,) = await hosts.start("http://a", storage=storage)
        await open_session(old)
        await old.drain(rate=1000)
        monkeypatch.setattr(storage, "check_owner", fail)
        with pytest.raises(HostDraining):
            await old.claim("one")


class FrozenClock:
    """The module `anyio` with a clock that stands still, and a record of the seconds of each sleep."""

    def __init__(self) -> None:
        self.sleeps = list[float]()

    def __getattr__(self, name: str) -> Any:  # Any: an attribute of the module
        return getattr(anyio, name)

    def current_time(self) -> float:
        return 100.0

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)


async def test_a_drain_moves_at_most_the_given_number_of_sessions_per_second(
    hosts: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = await hosts.start("http://a", "http://b")
    for number in range(4):
        await open_session(here, f"s{number}")
    clock = FrozenClock()
    monkeypatch.setattr(mover, "anyio", clock)
    assert len((await here.drain(rate=4)).handed_over) == 4
    assert clock.sleeps == [0, 0.25, 0.5, 0.75]


async def test_a_drain_also_moves_received_sessions_that_the_host_has_not_opened_yet(hosts: Cluster) -> None:
    first, middle, last = await hosts.start("http://a", "http://b", "http://c")
    await open_session(first)
    await first.hand_over("one", to="http://b")
    for number in range(2):
        await open_session(first, f"s{number}")
    moved = await middle.drain(rate=1000)
    assert moved.handed_over == ("one",)
    assert await history_texts(await last.claim("one")) == ["Hello.", "Answer to Hello."]


async def test_a_drain_waits_for_sessions_that_are_being_opened(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")
    opening, go_on = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def toolset() -> AsyncIterator[list[ToolItem]]:
        opening.set()
        await go_on.wait()
        yield []

    moved = list[str]()

    async def open_one() -> None:
        await here.open("a", id="one", tools=[toolset()])

    async def drain() -> None:
        moved.extend((await here.drain(rate=1000)).handed_over)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_one)
        await opening.wait()
        tasks.start_soon(drain)
        while (await there.journal.hosts())[0].state == (await there.journal.hosts())[1].state:
            await anyio.lowlevel.checkpoint()
        go_on.set()
    assert moved == ["one"]
    assert await history_texts(await there.claim("one")) == []


async def test_a_drain_moves_subagents_after_the_turn_that_uses_them(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")
    begun, go_on = anyio.Event(), anyio.Event()

    @tool
    async def work(name: str, context: ToolContext[Any]) -> str:  # Any: the tool uses no dependencies
        """Ask a subagent twice."""
        async with context.subagent() as child:
            await child.ask("First.")
            begun.set()
            await go_on.wait()
            return (await child.ask("Second.")).text

    session, answers = await open_session(here, "one", work), list[str]()

    async def ask() -> None:
        answers.append((await session.ask("Work x.")).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await begun.wait()
        tasks.start_soon(partial(here.drain, rate=1000))
        while session._lifecycle.departure is None:
            await anyio.lowlevel.checkpoint()
        go_on.set()
    assert answers == ["Answer to Answer to Second."]
    assert not here.sessions
    assert (await history_texts(await there.claim("one")))[-1] == answers[0]


async def test_a_drain_without_another_host_releases_the_sessions(hosts: Cluster) -> None:
    (here,) = await hosts.start("http://a")
    await open_session(here)
    assert (await here.drain(rate=1000)).released == ("one",)
    (there,) = await hosts.start("http://b")
    assert await history_texts(await there.claim("one")) == ["Hello.", "Answer to Hello."]


async def test_sessions_in_an_in_memory_journal_are_never_moved() -> None:
    async with cluster(MemoryStorage) as hosts:
        (here,) = await hosts.start("http://a")
        session = await open_session(here)
        assert (await here.rebalance()).left == ("one",)
        with pytest.raises(HostUnavailable):
            await here.hand_over("one", to="http://b")
        assert (await here.drain()).left == ("one",)
        assert (await session.ask("Again.")).text == "Answer to Again."
        with pytest.raises(HostDraining):
            await here.open("a")


async def test_no_ask_is_lost_or_repeated_while_hosts_drain_under_load(hosts: Cluster) -> None:
    names = [f"s{number}" for number in range(8)]
    first, *_ = await hosts.start("http://a", "http://b", "http://c")
    for name in names:
        await open_session(first, name)
    answers = Counter[str]()

    async def ask_all(name: str) -> None:
        for number in range(6):
            answers[await hosts.follow("http://a", name, f"Question {number}.")] += 1

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(ask_all, name)
        await first.drain(rate=200)
    assert answers == {f"Answer to Question {number}.": len(names) for number in range(6)}
    assert not first.sessions
    for name in names:
        owner = next(host for host in hosts.hosts.values() if name in host.sessions)
        asked = [text for text in await history_texts(owner.session(name)) if text.startswith("Question")]
        assert asked == [f"Question {number}." for number in range(6)]


async def test_a_rebalance_makes_the_load_even_and_moves_no_busy_session(hosts: Cluster) -> None:
    gate = Gate()
    full, *others = await hosts.start("http://a", "http://b", "http://c")
    async with anyio.create_task_group() as tasks:
        for number in range(12):
            session = await open_session(full, f"s{number}", gate.tool)
            if number < 3:
                tasks.start_soon(session.ask, f"Work {number}.")
        await gate.started("0", "1", "2")
        moved = await full.rebalance(rate=1000)
        assert len(moved.handed_over) == 8
        assert {"s0", "s1", "s2"} <= set(moved.left)
        gate.open("0", "1", "2")
    loads = [host.sessions for host in await full.journal.hosts()]
    assert loads == [4, 4, 4]
    for host in (full, *others):
        assert (await host.rebalance(rate=1000)).handed_over == ()
    assert await hosts.follow("http://a", moved.handed_over[0], "Again.") == "Answer to Again."


async def test_a_rebalance_moves_nothing_while_the_load_is_nearly_even(hosts: Cluster) -> None:
    here, there = await hosts.start("http://a", "http://b")
    for number in range(7):
        await here.open("a", id=f"a{number}")
        if number < 5:
            await there.open("a", id=f"b{number}")
    moved = await here.rebalance(rate=1000)
    assert (moved.handed_over, len(moved.left)) == ((), 7)


async def test_a_rebalance_moves_at_most_the_given_number_of_sessions(hosts: Cluster) -> None:
    full, _ = await hosts.start("http://a", "http://b")
    for number in range(6):
        await open_session(full, f"s{number}")
    assert (await full.rebalance(limit=2, rate=1000)).handed_over == ("s0", "s1")


async def test_a_host_restarted_at_the_same_address_claims_its_sessions_at_once(hosts: Cluster) -> None:
    before, other = await hosts.start("http://a", "http://b")
    await open_session(before)
    (after,) = await hosts.start("http://a")  # the first runtime counts as killed
    await open_session(other, "two")
    with pytest.raises(SessionLeased) as leased:
        await after.claim("two")
    assert leased.value.address == "http://b"
    session = await after.claim("one")
    assert (await session.ask("Again.")).text == "Answer to Again."


async def test_an_exiting_runtime_releases_its_sessions_before_it_closes_its_toolsets(hosts: Cluster) -> None:
    (other,) = await hosts.start("http://b")
    closing, claimed = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def slow_toolset() -> AsyncIterator[list[ToolItem]]:
        try:
            yield []
        finally:
            closing.set()
            with anyio.CancelScope(shield=True):
                await claimed.wait()

    async def claim() -> None:
        await closing.wait()
        await other.claim("one")
        claimed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(claim)
        async with hosts.make("http://a") as leaving:
            await open_session(leaving, "one", slow_toolset())
    assert claimed.is_set()


async def test_invalid_arguments_of_release_hand_over_drain_and_rebalance_are_refused(hosts: Cluster) -> None:
    (here,) = await hosts.start("http://a")
    session = await open_session(here)
    for call in (
        session.release(timeout=-1),
        here.hand_over("one", "http://b", timeout=float("nan")),
        here.drain(rate=0),
        here.drain(timeout=-1),
        here.rebalance(limit=-1),
    ):
        with pytest.raises(ConfigError, match="takes a number"):
            await call
    with pytest.raises(ConfigError, match="address= takes a string"):
        Runtime(address=3)  # type: ignore[arg-type]
    with pytest.raises(SessionClosed):
        await here.hand_over("other", "http://b")
    assert (await session.ask("Again.")).text == "Answer to Again."
