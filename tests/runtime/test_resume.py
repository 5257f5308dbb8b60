"""Resuming a session from its log: after its runtime exited, while another host owns it, or after a kill.

A kill is simulated: the log is copied at that moment, and another runtime resumes it. `tests/commands/killing` kills
real processes.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pydantic
import pytest

from actors import Runtime, ToolContext, tool
from actors.config import Config, FileSettings
from actors.core.data.jsonio import Json
from actors.core.log.call_events import Effects, Returned, Started
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import (
    Configured,
    LogEvent,
    Opened,
    SwitchApplied,
    SwitchQueued,
    TurnEnded,
    TurnStarted,
)
from actors.core.stream_events.ask_events import CompleteEvent
from actors.core.values.identity import CallId
from actors.errors import (
    ConfigError,
    InvalidIdentifier,
    JournalDamaged,
    SessionClosedForGood,
    SessionExists,
    SessionLeased,
    SessionUnknown,
)
from actors.events import ApprovalDecision
from actors.journal.storage import Entry, Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Think, Turn, serve
from actors.tools import Tool
from tests.journal.storages import FILES, MakeStorage
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_prefixes,
    assert_rebuilds,
    backend_at,
    bodies,
    log,
    openai,
    results,
)

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
STORAGES = pytest.mark.parametrize(
    "kept", [FILES["memory"], FILES["sqlite-process"]], ids=["memory", "sqlite"]
)
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
ONE = CallId("hist_tool_1")


@tool(effects="pure")
def weather(city: str) -> str:
    """Current weather of a city."""
    return f"{city}: 21 C"


def copy_log(events: Iterable[LogEvent], storage: Storage, session: str = "trip") -> None:
    """Write the log of a killed host to a storage."""
    claim = storage.claim(session)
    storage.append([Entry(session, claim.fence, tuple(decode_event(encode_event(each)) for each in events))])
    storage.release(session, claim.fence)


MakeRuntime = Callable[[Storage], Runtime]


@asynccontextmanager
async def running_server(server: LoopbackServer) -> AsyncIterator[MakeRuntime]:
    """Run a server; yield a function that creates runtimes on it, also several at the same time."""
    with anyio.fail_after(60):
        async with serve(server):
            config = Config(FileSettings(backends={"a": backend_at(server)}), {})
            yield lambda storage: Runtime(config, journal=storage, seed=1)


@SERVERS
@STORAGES
async def test_a_resumed_session_sends_the_same_bytes(
    make_server: MakeServer, kept: MakeStorage, tmp_path: Path
) -> None:
    script = [Turn(Think("hm"), Call("weather", {"city": "Oslo"})), Turn(Say("21 C.")), Turn(Say("Rome."))]
    storage, server = kept(tmp_path), make_server(*script)
    async with running_server(server) as hosted:
        async with hosted(storage) as runtime:
            session = await runtime.open("a", tools=[weather], id="trip", system="Be brief.")
            await session.ask("Weather in Oslo?")
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip", tools=[weather])
            assert (session.id, session.target, session.busy) == ("trip", "a", False)
            assert (await session.ask("Which is warmer?")).text == "Rome."
            assert not any(isinstance(event, Configured) for event in log(runtime, session))
            await assert_rebuilds(runtime, session)
    assert_prefixes(server)
    assert server.refusals == []


@asynccontextmanager
async def cut_off(
    hosted: MakeRuntime, tools: Iterable[Any], storage: Storage, wait: Callable[[list[LogEvent]], bool]
) -> AsyncIterator[None]:
    """Ask, and copy the log to a storage once `wait` returns True, as if the host were killed then."""
    async with hosted(MemoryStorage()) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=tools, id="trip", system="Be brief.")
        tasks.start_soon(session.ask, "Do it.")
        while not wait(log(runtime, session)):
            await anyio.lowlevel.checkpoint()
        copy_log(log(runtime, session), storage)
        yield
        tasks.cancel_scope.cancel()


def has_events(kind: type[LogEvent], count: int = 1) -> Callable[[list[LogEvent]], bool]:
    """Return a predicate: whether a log contains at least `count` events of a kind."""
    return lambda events: sum(isinstance(event, kind) for event in events) >= count


@STORAGES
async def test_an_interrupted_turn_is_closed_before_a_session_is_resumed(
    kept: MakeStorage, tmp_path: Path
) -> None:
    gate, storage = Gate(), kept(tmp_path)
    gate.open("a")
    server = openai(Turn(Call("work", {"name": "a"}), Call("work", {"name": "b"})), Turn(Say("I see.")))
    async with running_server(server) as hosted:
        async with cut_off(hosted, [gate.tool], storage, has_events(Returned)):
            gate.open("b")
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip", tools=[gate.tool])
            done, unknown = (await session.ledger()).interactions()
            assert (done.status, unknown.reason) == ("complete", "outcome_unknown")
            ended = log(runtime, session)[-1]
            assert isinstance(ended, TurnEnded)
            assert ended.status == "interrupted"
            assert sorted(gate.runs) == ["a", "b"]
            assert (await session.ask("And?")).status == "complete"
            told = list(results(bodies(server)[-1]).values())
            assert told[0] == "a is done"
            assert "No result was recorded" in told[1]
            await assert_rebuilds(runtime, session)


@STORAGES
async def test_an_idempotent_call_is_run_again_when_its_session_is_resumed(
    kept: MakeStorage, tmp_path: Path
) -> None:
    keys, storage = list[str](), kept(tmp_path)

    @tool(effects="idempotent", approval="allow")
    async def work(name: str, context: ToolContext[None]) -> str:
        """Do a piece of work."""
        keys.append(context.idempotency_key)
        if len(keys) == 1:
            await anyio.sleep_forever()
        return f"{name} is done"

    async with running_server(openai(Turn(Call("work", {"name": "a"})))) as hosted:
        async with cut_off(hosted, [work], storage, has_events(Started)):
            while not keys:
                await anyio.lowlevel.checkpoint()
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip", tools=[work])
            [known] = (await session.ledger()).interactions()
    assert known.status == "complete"
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_a_call_is_not_run_again_by_a_changed_or_missing_tool() -> None:
    runs = list[str]()

    def tool_with(effects: Effects) -> Tool[..., Any]:
        async def work(name: str) -> str:
            """Do a piece of work."""
            runs.append(effects)
            await anyio.sleep_forever()
            return name

        return tool(effects=effects, approval="allow")(work)

    for tools in ([tool_with("once")], []):
        storage = MemoryStorage()
        async with running_server(openai(Turn(Call("work", {"name": "a"})))) as hosted:
            async with cut_off(hosted, [tool_with("pure")], storage, has_events(Started)):
                pass
            async with hosted(storage) as runtime:
                session = await runtime.resume("trip", tools=tools)
                [known] = (await session.ledger()).interactions()
                assert known.reason == "outcome_unknown"
    assert set(runs) <= {"pure"}


@SERVERS
@STORAGES
async def test_a_resumed_turn_continues_with_the_same_binding(
    make_server: MakeServer, kept: MakeStorage, tmp_path: Path
) -> None:
    storage, server = kept(tmp_path), make_server(Turn(Call("look", {"n": 1})), Turn(Say("21 C.")))
    async with running_server(server) as hosted:
        async with hosted(storage) as runtime:
            session = await runtime.open("a", tools=[LOOK], id="trip")
            asked = await session.ask("How warm is it?")
            assert asked.status == "awaiting"
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip", tools=[LOOK])
            assert (session.busy, [each.call.id for each in session.pending]) == (True, [ONE])
            answer = await session.ask(results={ONE: {"celsius": 21}})
            assert (answer.status, answer.text, answer.rounds) == ("complete", "21 C.", 2)
            assert [attempt.binding for attempt in answer.attempts] == [asked.binding]
            events = log(runtime, session)
            assert [type(event) for event in events].count(TurnStarted) == 1
            assert not any(isinstance(event, Configured) for event in events)
            await assert_rebuilds(runtime, session)
    assert_prefixes(server)
    assert server.refusals == []


@STORAGES
async def test_a_call_approved_after_its_session_resumed_in_another_runtime_runs_once(
    kept: MakeStorage, tmp_path: Path
) -> None:
    runs, storage = list[str](), kept(tmp_path)

    @tool(approval="ask")
    def pay(amount: int) -> str:
        """Pay."""
        runs.append(str(amount))
        return "paid"

    server = openai(Turn(Call("pay", {"amount": 3})), Turn(Say("Done.")))
    async with running_server(server) as hosted:
        async with hosted(storage) as runtime:
            session = await runtime.open("a", tools=[pay], id="trip")
            assert (await session.ask("Pay.")).status == "awaiting"
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip", tools=[pay])
            [waits] = session.pending
            assert (waits.kind, runs) == ("approval", [])
            assert (await session.ask(approvals={waits.call.id: ApprovalDecision("allow")})).text == "Done."
    assert runs == ["3"]


async def test_a_turn_whose_results_were_all_recorded_resumes_without_its_caller() -> None:
    storage, server = MemoryStorage(), openai(Turn(Call("look", {"n": 1})), Turn(Say("21 C.")))
    async with running_server(server) as hosted:
        async with hosted(MemoryStorage()) as runtime:
            session = await runtime.open("a", tools=[LOOK], id="trip")
            await session.ask("How warm is it?")
            copy_log([*log(runtime, session), Returned(ONE, Json(b'"21"'))], storage)
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip", tools=[LOOK])
            await wait_until_idle(session)
            last = [event async for event in session.events(follow=False)][-1]
            assert isinstance(last, CompleteEvent)
            assert last.result.text == "21 C."


async def wait_until_idle(session: Session) -> None:
    """Wait until a session is idle."""
    while session.busy:
        await anyio.lowlevel.checkpoint()


async def test_a_switch_still_queued_at_the_end_of_the_log_is_applied_on_resume() -> None:
    storage, server = MemoryStorage(), openai(Turn(Say("Yes.")))
    async with running_server(server) as hosted:
        async with hosted(MemoryStorage()) as runtime:
            session = await runtime.open("a", id="trip")
            await session.ask("Well?")
            *events, end = log(runtime, session)
            copy_log([*events, SwitchQueued(1, "a"), end], storage)
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip")
            assert isinstance(log(runtime, session)[-1], SwitchApplied)


@pytest.mark.parametrize("waits", [False, True])
@SERVERS
async def test_changed_tools_are_declared_from_the_next_request_on(
    make_server: MakeServer, waits: bool
) -> None:
    @tool
    def other() -> str:
        """Do something else."""
        return ""

    call = Call("look", {"n": 1}) if waits else Say("Hm.")
    server, storage = (
        make_server(Turn(Think("hm"), call), Turn(Call("look", {"n": 2})), Turn(Say("Well."))),
        MemoryStorage(),
    )
    async with running_server(server) as hosted:
        async with hosted(storage) as runtime:
            session = await runtime.open("a", tools=[LOOK], id="trip")
            await session.ask("How warm is it?")
        async with hosted(storage) as runtime:
            session = await runtime.resume("trip", tools=[other], system="Be brief.")
            answer = await (session.ask(results={ONE: 21}) if waits else session.ask("And now?"))
            assert answer.text == "Well."
            [configured] = [event for event in log(runtime, session) if isinstance(event, Configured)]
            assert (configured.tools, configured.system) == (("other",), "Be brief.")
            last = (await session.ledger()).interactions()[-1]
            assert last.status == "error"  # it called a tool that was removed
            await assert_rebuilds(runtime, session)
    assert server.refusals == []


async def test_a_session_that_cannot_be_resumed_raises_a_short_error() -> None:
    storage, server = MemoryStorage(), openai(Turn(Say("Yes.")))
    async with running_server(server) as hosted, hosted(storage) as runtime:
        with pytest.raises(SessionUnknown, match="'nobody' has a log"):
            await runtime.resume("nobody")
        assert storage.claim("nobody").fence == 1  # the failed resume left nothing behind
        session = await runtime.open("a", id="trip")
        with pytest.raises(SessionExists, match="is already open"):
            await runtime.resume("trip")
        with pytest.raises(InvalidIdentifier, match="is invalid"):
            await runtime.resume("../trip")
        await session.close()
        with pytest.raises(SessionClosedForGood, match="was closed and cannot be resumed"):
            await runtime.resume("trip")
        copy_log([TurnEnded(1, "complete")], storage, "odd")
        with pytest.raises(JournalDamaged, match="does not begin"):
            await runtime.resume("odd")
        assert list(runtime.sessions) == []
        assert [each.owner for each in storage.sessions()] == [None, None]


class City(pydantic.BaseModel):
    name: str


async def test_a_pending_answer_has_the_output_type_passed_to_resume() -> None:
    server = openai(*[Turn(Call("look", {}))] * 2, *[Turn(Say('{"name": "Oslo"}'))] * 2)
    storage = MemoryStorage()
    async with running_server(server) as hosted:
        async with hosted(storage) as runtime:
            for name in ("one", "two"):
                session = await runtime.open("a", tools=[LOOK], id=name)
                assert (await session.ask("Which city?", output=City)).status == "awaiting"
        async with hosted(storage) as runtime:
            with pytest.raises(ConfigError, match="differs from the output type"):
                await runtime.resume("one", tools=[LOOK], output=int)
            typed = await runtime.resume("one", tools=[LOOK], output=City)
            assert (await typed.ask(results={ONE: 1})).output == City(name="Oslo")
            plain = await runtime.resume("two", tools=[LOOK])
            assert (await plain.ask(results={ONE: 1})).output == {"name": "Oslo"}


async def test_a_session_whose_target_is_gone_can_be_resumed_with_another_target() -> None:
    storage, server = MemoryStorage(), openai(Turn(Say("Yes.")))
    copy_log([Opened("trip", "gone")], storage)
    async with running_server(server) as hosted, hosted(storage) as runtime:
        with pytest.raises(ConfigError, match="gone"):
            await runtime.resume("trip")
        session = await runtime.resume("trip", target="a")
        assert session.target == "a"
        assert (await session.ask("Well?")).text == "Yes."


async def test_resume_can_wait_until_another_host_releases_the_session(tmp_path: Path) -> None:
    server = openai(Turn(Say("Yes.")))
    here, there = SqliteStorage(tmp_path / "s.db"), SqliteStorage(tmp_path / "s.db")
    async with running_server(server) as hosted, hosted(here) as runtime:
        resumed = list[Session]()

        async def resume() -> None:
            resumed.append(await runtime.resume("trip", wait=30))

        async with anyio.create_task_group() as tasks, hosted(there) as other:
            await other.open("a", id="trip")
            for wait in (0.0, 0.2):
                with pytest.raises(SessionLeased, match="belongs to host"):
                    await runtime.resume("trip", wait=wait)
            tasks.start_soon(resume)
        assert (await resumed[0].ask("Well?")).text == "Yes."
