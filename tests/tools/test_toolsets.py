"""Toolsets: opened once in their own task, shared or not, reopened after a loss, and closed in order."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors import LiveTools, ToolSource, tool
from actors.errors import ToolDefinitionError, ToolsetFailed
from actors.kernel.event_loop import event_loop
from actors.testing import Call, Say, Turn
from actors.tools import Tool, Toolset
from actors.tools.toolset_owner import ToolsetOwner
from actors.tools.toolsets import SessionTools, valid_name
from tests.runtime_support import actors, bodies, openai, results, runtime_with, wait_for_toolsets
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

AnyTool = Tool[..., Any]  # Any: any function


class Bench:
    """A toolset under test, which records its openings and tasks, and can be lost, changed or made to fail."""

    def __init__(self, name: str = "bench", *, notes: list[str] | None = None) -> None:
        self.name = name
        self.notes = [] if notes is None else notes
        self.tasks: list[object] = []
        self.refuses: BaseException | None = None
        self.holds: anyio.Event | None = None
        self.stays = False
        self.opening = anyio.Event()
        self._changed = anyio.Event()
        self._lost: BaseException | None = None
        self.offers: list[AnyTool] = [self.make_tool("work")]

    def make_tool(self, name: str, description: str = "Works.") -> AnyTool:
        async def work() -> str:
            return f"{name} of opening {len(self.tasks) // 2 + 1}"

        return tool(name=name, description=description)(work)

    @property
    def tools(self) -> Iterable[AnyTool]:
        return self.offers

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed = anyio.Event()
        if self._lost is not None:
            error, self._lost = self._lost, None
            raise error

    def change(self, *names: str) -> None:
        self.offers = [self.make_tool(name) for name in names]
        self._changed.set()

    def lose(self, error: BaseException) -> None:
        self._lost = error
        self._changed.set()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[LiveTools]:
        self.tasks.append(event_loop().task())
        self.opening.set()
        if self.holds is not None:
            await self.holds.wait()
        if self.refuses is not None:
            raise self.refuses
        self.notes.append(f"{self.name} opened")
        try:
            async with anyio.create_task_group():  # anyio raises if another task leaves it
                yield self
        finally:
            self.tasks.append(event_loop().task())
            self.notes.append(f"{self.name} closed")
            if self.stays:
                self.stays = False
                await anyio.sleep_forever()

    def source(self, **options: Any) -> ToolSource:  # Any: fields of the source
        return ToolSource(self.block, self.name, **options)


class Restless(Bench):
    """A toolset that reports a change each time it is asked, without waiting, up to a limit."""

    asked = 0
    LIMIT = 1000

    async def changed(self) -> None:
        self.asked += 1
        if self.asked == self.LIMIT:
            await anyio.sleep_forever()


WORK = Turn(Call("work", {}))


async def test_a_toolset_that_reports_changes_all_the_time_does_not_block_the_event_loop() -> None:
    bench = Restless()
    async with runtime_with(a=openai(WORK, Turn(Say("ok")))) as runtime:
        session = await runtime.open("a", tools=[bench.source()])
        assert (await session.ask("Do it.")).status == "complete"
    assert 1 < bench.asked < bench.LIMIT


async def test_a_shared_toolset_is_open_while_sessions_use_it() -> None:
    bench = Bench()
    source = bench.source()
    async with runtime_with(a=openai(WORK, Turn(Say("ok")))) as runtime:
        one = await runtime.open("a", tools=[source])
        two = await runtime.open("a", tools=[source])
        assert (await one.ask("Do it.")).status == "complete"
        await one.close()
        await anyio.wait_all_tasks_blocked()  # a close does not wait for toolsets
        assert bench.notes == ["bench opened"]
        await two.close()
        await wait_for_toolsets(runtime)
        assert bench.notes == ["bench opened", "bench closed"]
        await runtime.open("a", tools=[source])
        assert bench.notes == ["bench opened", "bench closed", "bench opened"]
    assert bench.notes[3:] == ["bench closed"]
    assert bench.tasks[0] is bench.tasks[1]
    assert bench.tasks[2] is bench.tasks[3]


async def test_each_session_opens_its_own_instance_of_an_unshared_toolset() -> None:
    bench = Bench()
    source = bench.source(shared=False)
    async with runtime_with(a=openai()) as runtime:
        one, _ = [await runtime.open("a", tools=[source]) for _ in range(2)]
        assert bench.notes == ["bench opened"] * 2
        await one.close()
        await wait_for_toolsets(runtime)
        assert bench.notes == ["bench opened"] * 2 + ["bench closed"]
    assert bench.notes[3:] == ["bench closed"]


async def test_toolsets_are_closed_in_reverse_order() -> None:
    notes: list[str] = []
    sources = [Bench(name, notes=notes).source() for name in "abc"]
    offers = [Bench(name, notes=notes) for name in "xyz"]
    async with runtime_with(m=openai()) as runtime:
        session = await runtime.open("m", tools=sources)
        await session.close()
        await wait_for_toolsets(runtime)
        closed = [note[0] for note in notes if "closed" in note]
        await runtime.open("m", tools=[bench.source() for bench in offers])
    assert closed == ["c", "b", "a"]
    assert [note[0] for note in notes if "closed" in note][3:] == ["z", "y", "x"]


async def test_a_toolset_that_does_not_close_is_cancelled_and_blocks_no_other_toolset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[str] = []

    @asynccontextmanager
    async def sticks() -> AsyncIterator[list[AnyTool]]:
        try:
            yield [make_tool("stuck")]
        finally:
            try:
                await anyio.sleep_forever()
            finally:
                ends.append("cancelled")

    monkeypatch.setattr("actors.tools.toolsets.CLOSE_WAIT", 0.01)
    bench = Bench(notes=ends)
    async with runtime_with(a=openai(), seconds=10) as runtime:
        session = await runtime.open("a", tools=[bench.source(), ToolSource(sticks, "sticks", closing=0.2)])
        await session.close()
        await wait_for_toolsets(runtime)
        assert ends == ["bench opened", "bench closed", "cancelled"]


async def test_a_passivated_session_keeps_its_toolsets_open() -> None:
    bench = Bench()
    async with runtime_with(a=openai(WORK, Turn(Say("ok")))) as runtime:
        session = await runtime.open("a", tools=[bench.source()])
        assert (await session.ask("Do it.")).status == "complete"
        assert session._lifecycle.passivate()
        assert bench.notes == ["bench opened"]
        await session.close()
        await wait_for_toolsets(runtime)
        assert bench.notes == ["bench opened", "bench closed"]


async def test_exiting_the_runtime_waits_for_toolsets_and_closing_a_session_does_not() -> None:
    ended, left = anyio.Event(), list[str]()

    @asynccontextmanager
    async def slow() -> AsyncIterator[list[AnyTool]]:
        yield [make_tool("work")]
        await ended.wait()
        left.append("slow")

    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a", tools=[ToolSource(slow, "slow", closing=300)])
        with anyio.fail_after(10):
            await session.close()
        assert session.id not in runtime.sessions
        assert [name for name in actors(runtime) if name.startswith(session.id)] == []
        assert left == []
        ended.set()
    assert left == ["slow"]


async def test_a_toolset_that_ignores_its_cancellation_is_reported_and_not_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended, told = anyio.Event(), list[str]()

    @asynccontextmanager
    async def deaf() -> AsyncIterator[list[AnyTool]]:
        yield [make_tool("work")]
        with anyio.CancelScope(shield=True):
            await ended.wait()

    monkeypatch.setattr("actors.tools.toolsets.CLOSE_WAIT", 0.01)
    monkeypatch.setattr("actors.telemetry.logger.toolset_stuck", told.append)
    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a", tools=[ToolSource(deaf, "deaf", closing=0.01)])
        await session.close()
        await wait_for_toolsets(runtime)
        assert told == ["deaf"]
        assert runtime._system.contained_tasks.names == ["toolset/deaf"]
        ended.set()


async def test_a_context_manager_is_a_toolset_and_may_yield_functions() -> None:
    ended: list[str] = []

    @asynccontextmanager
    async def plain() -> AsyncIterator[list[Callable[[], str]]]:
        def work() -> str:
            """Work."""
            return "worked in a thread"

        yield [work]
        ended.append("closed")

    server = openai(WORK, Turn(Say("ok")))
    async with runtime_with(a=server) as runtime:
        with pytest.raises(
            ToolDefinitionError,
            match=r"'plain' is a function that creates a toolset; pass ToolSource\(plain, name\)",
        ):
            await runtime.open("a", tools=[plain])
        session = await runtime.open("a", tools=[plain()])
        assert (await session.ask("Do it.")).status == "complete"
    assert list(results(bodies(server)[-1]).values()) == ["worked in a thread"]
    assert ended == ["closed"]


@pytest.mark.parametrize(
    "given", [None, 5, "work", {"work": 1}, Tool.external("one", "One.", {"type": "object"})]
)
async def test_a_toolset_that_does_not_yield_a_list_of_tools_is_rejected(given: Any) -> None:
    @asynccontextmanager
    async def bench() -> AsyncIterator[Any]:  # Any: the case under test
        yield given

    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ToolsetFailed) as raised:
            await runtime.open("a", tools=[ToolSource(bench, "bench")])
    gave = f"the toolset yielded {type(given).__name__} instead of a list of tools"
    assert str(raised.value) == f"Toolset 'bench' cannot be opened: {gave}"


async def test_a_toolset_that_fails_to_open_raises_and_the_toolsets_opened_before_are_closed() -> None:
    notes: list[str] = []
    good, bad = Bench("good", notes=notes), Bench("bad", notes=notes)
    bad.refuses = ExceptionGroup("two", [ExceptionGroup("one", [OSError("no such\nprogram: 'nope'")])])
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ToolsetFailed) as raised:
            await runtime.open("a", tools=[good.source(), bad.source()], id="s")
        assert str(raised.value) == "Toolset 'bad' cannot be opened: OSError: no such program: 'nope'"
        assert notes == ["good opened", "good closed"]
        assert "s" not in runtime.sessions
        bad.refuses = None
        await runtime.open("a", tools=[bad.source()], id="s")
    assert notes[2:] == ["bad opened", "bad closed"]


async def test_a_toolset_that_takes_too_long_to_open_is_abandoned() -> None:
    bench = Bench()
    bench.holds = anyio.Event()
    async with runtime_with(a=openai(), seconds=10) as runtime:
        with pytest.raises(ToolsetFailed, match=r"'bench' cannot be opened: it did not open within 0\.01 s"):
            await runtime.open("a", tools=[bench.source(opening=0.01)])
        assert runtime._system.contained_tasks.names == []


async def test_a_cancelled_open_of_a_toolset_leaves_nothing_behind() -> None:
    bench = Bench()
    bench.holds = anyio.Event()
    async with runtime_with(a=openai()) as runtime:
        async with anyio.create_task_group() as tasks:

            async def open_session() -> None:
                await runtime.open("a", tools=[bench.source()], id="s")

            tasks.start_soon(open_session)
            await bench.opening.wait()
            tasks.cancel_scope.cancel()
        assert runtime._system.contained_tasks.names == []
        assert list(runtime.sessions) == []
        bench.holds.set()
        await runtime.open("a", tools=[bench.source()], id="s")
    assert bench.notes == ["bench opened", "bench closed"]


async def test_a_call_waits_until_its_lost_toolset_is_open_again() -> None:
    bench = Bench()
    async with scripted("openai_chat", WORK, Turn(Say("ok")), tools=[bench.source()]) as (server, _, session):
        bench.lose(ConnectionError("gone"))
        await wait_for_close(bench)
        assert (await session.ask("Do it.")).status == "complete"
    assert list(results(bodies(server)[-1]).values()) == ["work of opening 2"]
    assert bench.notes == ["bench opened", "bench closed"] * 2


@pytest.mark.parametrize("is_live", [True, False])
async def test_a_toolset_is_unavailable_while_it_shuts_down_after_an_error(is_live: bool) -> None:
    bench = Bench()
    fails, leaving, left = anyio.Event(), anyio.Event(), anyio.Event()

    async def fail() -> None:
        await fails.wait()
        raise OSError("lost")

    @asynccontextmanager
    async def block() -> AsyncIterator[LiveTools | list[AnyTool]]:
        async with anyio.create_task_group() as tasks:
            if not leaving.is_set():
                tasks.start_soon(fail)
            bench.tasks.append(None)
            try:
                yield bench if is_live else bench.offers
            finally:
                leaving.set()
                with anyio.CancelScope(shield=True):
                    await left.wait()

    server = openai(WORK, Turn(Say("ok")))
    async with scripted(server, tools=[ToolSource(block, "bench")]) as (_, runtime, session):
        assert runtime._host is not None
        (owner,) = runtime._host.toolsets._owners
        states = [owner.state]
        fails.set()
        with anyio.fail_after(20):
            await leaving.wait()
        states.append(owner.state)
        left.set()
        assert (await session.ask("Do it.")).status == "complete"
        assert owner.openings == 2
    assert states == ["up", "down"]


async def test_a_call_fails_with_an_error_for_the_model_while_its_toolset_stays_down() -> None:
    bench = Bench()
    server = openai(WORK, Turn(Say("I see.")))
    async with scripted(server, tools=[bench.source(waiting=0.05)]) as (_, _, session):
        bench.refuses = OSError("still gone")
        bench.lose(ConnectionError("gone"))
        await wait_for_close(bench)
        assert (await session.ask("Do it.")).status == "complete"
    (result,) = results(bodies(server)[-1]).values()
    assert "Toolset 'bench' is not available now (ConnectionError: gone)" in result
    assert "so the call did not run" in result


async def test_a_call_of_a_plain_function_also_waits_for_its_lost_toolset() -> None:
    bench = Bench()

    def work() -> str:
        """Work."""
        return "worked in a thread"

    bench.offers = [tool(work)]
    async with scripted("openai_chat", WORK, Turn(Say("ok")), tools=[bench.source()]) as (server, _, session):
        bench.lose(ConnectionError("gone"))
        await wait_for_close(bench)
        assert (await session.ask("Do it.")).status == "complete"
    assert list(results(bodies(server)[-1]).values()) == ["worked in a thread"]
    assert bench.notes == ["bench opened", "bench closed"] * 2


async def test_tools_changed_during_a_turn_are_offered_from_the_next_turn_on() -> None:
    bench = Bench()
    changed = anyio.Event()

    async def change() -> str:
        bench.change("later", "work", "change")
        await changed.wait()
        return "changed"

    bench.offers = [bench.make_tool("work"), tool(change)]
    server = openai(Turn(Call("change", {})), Turn(Say("ok")), Turn(Call("later", {})), Turn(Say("ok")))
    async with scripted(server, tools=[bench.source()]) as (_, runtime, session):
        (owner,) = runtime._running_host().toolsets._owners
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Change.")
            await owner._changes.wait_until(lambda: owner.version == 2)
            changed.set()
        assert (await session.ask("And now?")).status == "complete"
        history = await session.history()
        assert "later of opening 1" in str(history[-2])
    offered = [[each["function"]["name"] for each in body["tools"]] for body in bodies(server)]
    assert offered == [["work", "change"]] * 2 + [["work", "change", "later"]] * 2


async def test_a_toolset_that_corrupts_its_own_task_is_reopened_and_harms_no_session() -> None:
    entered: list[anyio.CancelScope] = []

    @asynccontextmanager
    async def spoils() -> AsyncIterator[list[AnyTool]]:
        scope = anyio.CancelScope()
        if not entered:
            scope.__enter__()  # and is never left
        entered.append(scope)
        yield [Bench().make_tool("work")]
        await anyio.lowlevel.checkpoint()

    server = openai(WORK, Turn(Say("ok")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[ToolSource(spoils, "spoils")])
        entered[0].cancel()
        assert (await session.ask("Do it.")).status == "complete"
        other = await runtime.open("a", tools=[])
        assert not other.busy


async def test_attempts_to_reopen_a_toolset_have_growing_delays_and_a_call_triggers_an_attempt() -> None:
    bench = Bench()
    async with runtime_with(a=openai(), seconds=15) as runtime:
        await runtime.open("a", tools=[bench.source()])
        (owner,) = runtime._running_host().toolsets._owners
        bench.refuses = OSError("gone")
        delays = []
        for _ in range(12):
            owner._on_end(OSError("gone"))  # as if one more try had failed
            delays.append(owner._delay)
            owner._cancel_timer()
        assert delays[:4] == [0.4, 0.8, 1.6, 3.2]
        assert delays[-1] == 30.0
        owner._timer = runtime._system.deadlines.call_at(runtime._system.now() + 1000, owner._start_opening)
        bench.refuses = None
        owner.state = "down"
        assert (await owner.current_tool("work")).name == "work"


async def wait_for_close(bench: Bench) -> None:
    """Wait until a loss has reached the owner and the block has exited."""
    with anyio.fail_after(5):
        while bench.notes[-1] != f"{bench.name} closed":
            await anyio.lowlevel.checkpoint()


def make_tool(name: str) -> AnyTool:
    return Bench().make_tool(name)


def test_changed_tools_keep_the_order_of_existing_names_and_append_new_names() -> None:
    one, two = owner_of_tools("one", "b", "a"), owner_of_tools("two", "c")
    offer = SessionTools([make_tool("host"), one, two])
    assert [*offer.tools.names] == ["host", "b", "a", "c"]
    assert not offer.refresh()
    set_tools(one, "z", "a", "b")
    assert offer.refresh()
    assert [*offer.tools.names] == ["host", "b", "a", "c", "z"]
    set_tools(one, "z", "a")
    assert offer.refresh()
    assert [*offer.tools.names] == ["host", "a", "c", "z"]


def test_the_later_of_two_equal_tool_names_gets_the_prefix_of_its_toolset() -> None:
    one, two, three = (
        owner_of_tools("one", "read"),
        owner_of_tools("two", "read", "write"),
        owner_of_tools("two", "read"),
    )
    offer = SessionTools([one, two, three, make_tool("write")])
    assert [*offer.tools.names] == ["read", "two__read", "two__write", "two__read_2", "write"]
    set_tools(one, "write")
    offer.refresh()
    assert [*offer.tools.names] == ["two__read", "two__write", "two__read_2", "write", "one__write"]
    with pytest.raises(ToolDefinitionError, match="Two tools are named 'write'"):
        SessionTools([make_tool("write"), make_tool("write")])


@pytest.mark.parametrize(
    ("name", "usable"),
    [("read", "read"), ("a.b/c d", "a_b_c_d"), ("7up", "t_7up"), ("", "t_"), ("é", "t__")],
)
def test_a_tool_name_of_a_toolset_is_made_valid_for_every_provider(name: str, usable: str) -> None:
    assert valid_name(name) == usable
    assert Toolset([Tool.from_schema(usable, "", {"type": "object"}, len)]).names == (usable,)


def test_long_tool_names_are_shortened_and_stay_distinct() -> None:
    cut = {valid_name("x" * 70 + end) for end in ("a", "b")}
    assert [len(name) for name in cut] == [64, 64]


def owner_of_tools(name: str, *names: str) -> ToolsetOwner:
    owner = object.__new__(ToolsetOwner)
    owner.source = ToolSource(Bench(name).block, name)
    owner.version, owner.bound_tools = 0, {}
    set_tools(owner, *names)
    return owner


def set_tools(owner: ToolsetOwner, *names: str) -> None:
    owner.tools = {name: make_tool(name) for name in names}
    owner.version += 1


async def test_a_lost_toolset_that_does_not_exit_is_cancelled_and_reopened() -> None:
    bench = Bench()
    bench.stays = True
    async with runtime_with(a=openai(WORK, Turn(Say("ok")))) as runtime:
        session = await runtime.open("a", tools=[bench.source(closing=0.01)])
        bench.lose(OSError("gone"))
        assert (await session.ask("Do it.")).status == "complete"
        assert bench.notes == ["bench opened", "bench closed", "bench opened"]
