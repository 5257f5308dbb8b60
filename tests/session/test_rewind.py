"""`rewind`: the history that models see after it, and the records that remain."""

import json
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime
from actors.config import RuntimeLimits
from actors.core.history.compaction import Compaction
from actors.core.log.events import EpochBegan, Rewound, TurnPaused
from actors.core.settings.spending import Budget
from actors.core.stream_events.ask_events import AskResult
from actors.core.stream_events.events import RewoundEvent
from actors.core.values.identity import CallId
from actors.errors import AskFailed, ConfigError, JournalUnavailable, OverBudget, QueueFull, SessionError
from actors.journal.storage import Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, OpenAIServer, Say, Script, Status, Think, Turn
from actors.tools import Tool
from tests.journal.test_outages import Outage
from tests.runtime.test_rebuild import crash
from tests.runtime.test_recovery_of_sessions import HeldStorage
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    bodies,
    log,
    openai,
    runtime_with,
    wait_for_result,
)
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
ONE = CallId("hist_tool_1")


async def talk(session: Session, *words: str) -> list[AskResult]:
    """Send the messages one after another."""
    return [await session.ask(each) for each in words]


async def texts(session: Session) -> list[str]:
    return [message.text for message in await session.history() if message.text]


def numbered_answers(count: int = 20) -> LoopbackServer:
    """Return a server whose model numbers its answers."""
    return openai(*[Turn(Say(f"Answer {number}.")) for number in range(1, count + 1)])


def last_messages(server: LoopbackServer) -> list[str]:
    """Return the messages of the last request as JSON."""
    return [json.dumps(message) for message in bodies(server)[-1]["messages"]]


async def wait_for_queue(session: Session, count: int) -> None:
    """Wait until an ask of the session is running and `count` others are queued."""
    while True:
        actors = session._lifecycle.actors
        if actors is not None and session.busy and len(actors.pending.waiting) == count:
            return
        await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("PROMISE-1", "PROMISE-2", "PROMISE-4")
async def test_a_rewind_removes_later_messages_and_every_lane_begins_an_epoch() -> None:
    gate = Gate()
    gate.open("a")
    work = Turn(Think("hm"), Call("work", {"name": "a"}))
    gpt, claude = openai(work, Turn(Say("Done."))), anthropic(work, Turn(Say("Done.")))
    async with runtime_with(gpt=gpt, claude=claude) as runtime:
        session = await runtime.open("gpt", tools=[gate.tool], budget=Budget(tokens=1_000_000))
        first = (await talk(session, "First?"))[0]
        await session.switch("claude")
        last = (await talk(session, "Second?", "Third?"))[-1]
        assert (first.turn, last.turn) == (1, 3)
        used, known = session._lifecycle.activate().state.used, await session.ledger()
        assert await session.rewind(to=first.turn) == 5
        assert await session.rewind(to=first.turn) == 0  # a second rewind to the same turn does nothing
        assert await texts(session) == ["First?", "Done."]
        assert await session.ledger() == known
        assert session._lifecycle.activate().state.used == used
        assert session.target == "claude"
        answers = await talk(session, "Fourth?")
        await session.switch("gpt")
        answers += await talk(session, "Fifth?")
        assert [answer.turn for answer in answers] == [4, 5]
        ids = [item.call_id for item in (await session.ledger()).interactions()]
        assert ids == list(dict.fromkeys(ids))
        events = log(runtime, session)
        begun = [event for event in events if isinstance(event, EpochBegan)]
        assert [(event.binding.backend, event.reason) for event in begun] == [
            ("claude", "rewind"),
            ("gpt", "rewind"),
        ]
        assert [event for event in events if isinstance(event, Rewound)] == [Rewound(1)]
    for server in (gpt, claude):
        assert server.refusals == []
        assert_paired(bodies(server)[-1])
        assert "Second?" not in str(last_messages(server))
        assert "First?" in str(last_messages(server))


async def test_a_rewind_is_queued_like_an_ask_and_shown_to_subscribers() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"})), *[Turn(Say("Done."))] * 4)
    async with scripted(server, tools=[gate.tool]) as (_, _, session), anyio.create_task_group() as tasks:
        shown: list[RewoundEvent] = []

        async def read() -> None:
            async for event in session.events():
                shown.extend([event] if isinstance(event, RewoundEvent) else [])

        tasks.start_soon(read)
        tasks.start_soon(session.ask, "First?")
        await gate.started("a")
        tasks.start_soon(session.ask, "Second?")
        await wait_for_queue(session, 1)
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(session.rewind, 0)
            await wait_for_queue(session, 2)
            leaving.cancel_scope.cancel()  # cancelling the caller does not cancel the rewind
        gate.open("a")
        assert (await session.ask("Third?")).turn == 3
        assert await texts(session) == ["Third?", "Done."]
        await session.close()
    assert [(event.to, event.turn) for event in shown] == [(0, 2)]


async def test_a_rewind_is_rejected_if_the_queue_is_full() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")))
    limits = RuntimeLimits(max_queued_asks=1)
    async with runtime_with(a=server, limits=limits) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=[gate.tool])
        tasks.start_soon(session.ask, "First?")
        await gate.started("a")
        tasks.start_soon(session.rewind, 0)
        await wait_for_queue(session, 1)
        with pytest.raises(QueueFull):
            await session.rewind(0)
        gate.open("a")


async def test_a_rewind_to_an_impossible_turn_raises_a_short_error() -> None:
    async with scripted(numbered_answers()) as (_, _, session):
        await talk(session, "First?", "Second?", "Third?", "Fourth?")
        await session.rewind(to=3)
        (fifth,) = await talk(session, "Fifth?")
        before = await texts(session)
        for place, why in ((4, "rewind to turn 3 or 5"), (9, "the session has had 5 turns")):
            with pytest.raises(ConfigError, match=f"turn {place}: .*{why}"):
                await session.rewind(to=place)
        for wrong in (-1, True, "1", 1.0, None):
            with pytest.raises(ConfigError, match="must be the number of a turn, or 0"):
                await session.rewind(to=wrong)  # type: ignore[arg-type]  # the mistake under test
        assert await texts(session) == before
        assert fifth.turn == 5


async def test_a_rewind_can_reach_only_turns_after_the_summary_or_the_start() -> None:
    def spoken(request: object) -> Turn:
        return Turn(Say("In short." if "Write that summary now" in str(request) else "An answer. " * 30))

    server = OpenAIServer(Script(spoken))
    async with runtime_with(a=server, compaction=Compaction(keep_turns=1)) as runtime:
        session = await runtime.open("a")
        await talk(session, "First?", "Second?", "Third?")
        assert (await session.compact()).messages == 4
        await talk(session, "Fourth?")
        for place in (1, 2):
            with pytest.raises(ConfigError, match="a summary replaced the messages"):
                await session.rewind(to=place)
        assert await session.rewind(to=3) == 2
        assert [words[:12] for words in await texts(session)] == ["[Summary of ", "Third?", "An answer. A"]
        assert await session.rewind(to=0) == 3
        (answer,) = await talk(session, "Anew?")
        assert len(last_messages(server)) == 1
        assert answer.turn == 6  # the summary took a turn number


async def test_a_rewind_cancels_a_waiting_turn_first() -> None:
    gate = Gate()
    both = Turn(Call("look", {"n": 1}), Call("work", {"name": "a"}))
    server = openai(both, Turn(Say("Done.")), Turn(Say("Done.")))
    async with scripted(server, tools=[LOOK, gate.tool]) as (_, runtime, session):
        refused: list[str] = []

        async def rewind() -> None:
            try:
                await session.rewind(0)
            except SessionError as error:
                refused.append(str(error))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "How warm?")
            await gate.started("a")
            tasks.start_soon(rewind)  # waits until the turn awaits its caller
            await wait_for_queue(session, 1)
            gate.open("a")
            while not session.pending:
                await anyio.lowlevel.checkpoint()
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await rewind()
        assert len(refused) == 2
        assert all("while turn 1 is paused; call cancel() first" in each for each in refused)
        assert runtime.stats().asks_waiting == 0
        assert await session.cancel()
        assert await session.rewind(0) == 2
        late = await session.ask(results={ONE: "21 C."})  # recorded, but not part of the history
        assert late.status == "late"
        await talk(session, "And now?")
        known = (await session.ledger()).get(ONE)
        assert known is not None
        assert known.completion is not None
    assert last_messages(server) == ['{"role": "user", "content": "And now?"}']


@pytest.mark.requirement("PROMISE-2")
@pytest.mark.usefixtures("short_graces")
async def test_a_late_result_of_a_rewound_turn_is_kept_and_not_sent() -> None:
    begun, released = anyio.Event(), anyio.Event()

    async def work(name: str) -> str:
        """Work, whatever happens."""
        begun.set()
        with anyio.CancelScope(shield=True):
            await released.wait()
        return f"{name} came late"

    server = openai(Turn(Call("work", {"name": "a"})), *[Turn(Say("Done."))] * 3)
    async with scripted(server, tools=[work]) as (_, _, session), anyio.create_task_group() as tasks:
        tasks.start_soon(session.ask, "Work.")
        await begun.wait()
        await session.cancel()
        await talk(session, "Go on.")  # seals the synthetic result
        assert await session.rewind(0) > 0
        released.set()
        assert (await wait_for_result(session, ONE)).late is not None
        await talk(session, "And now?", "And then?")
    assert "came late" not in str(last_messages(server))


async def test_a_rewind_works_when_the_budget_is_used_up() -> None:
    async with runtime_with(a=numbered_answers()) as runtime:
        session = await runtime.open("a", budget=Budget(rounds=1))
        await talk(session, "First?")
        with pytest.raises(OverBudget):
            await session.ask("Second?")
        assert await session.rewind(0) == 2
        with pytest.raises(OverBudget):  # a rewind does not restore the budget
            await session.ask("Second?")


@pytest.mark.parametrize("which", ["session", "renderer"])
async def test_a_queued_rewind_survives_a_crash(which: str) -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"})), *[Turn(Say("Done."))] * 3)
    async with scripted(server, tools=[gate.tool]) as (_, _, session), anyio.create_task_group() as tasks:
        tasks.start_soon(session.ask, "First?")
        await gate.started("a")
        done: list[int] = []

        async def rewind() -> None:
            done.append(await session.rewind(0))

        tasks.start_soon(rewind)
        await wait_for_queue(session, 1)
        await crash(session, which)
        while not done:
            await anyio.lowlevel.checkpoint()
        assert done == [2]
        await talk(session, "Second?")
        assert await texts(session) == ["Second?", "Done."]


@pytest.mark.parametrize("which", ["session", "renderer"])
async def test_a_queued_rewind_is_rejected_if_a_turn_waits_after_a_crash(
    which: str,
) -> None:
    storage = HeldStorage(TurnPaused)
    server = openai(Turn(Call("look", {"n": 1})), Turn(Say("Done.")), Turn(Say("More.")))
    async with runtime_with(a=server, storage=storage) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=[LOOK])
        tasks.start_soon(session.ask, "How warm?")
        await storage.begun.wait()
        refused = list[str]()

        async def rewind() -> None:
            with pytest.raises(SessionError) as caught:
                await session.rewind(0)
            refused.append(str(caught.value))

        tasks.start_soon(rewind)
        await wait_for_queue(session, 1)
        await crash(session, which)
        storage.freed.set()
        with anyio.fail_after(60):
            while not refused:
                await anyio.lowlevel.checkpoint()
        assert "while turn 1 is paused; call cancel() first" in refused[0]
        assert runtime.stats().asks_waiting == 0
        assert (await session.ask(results={ONE: "21 C."})).text == "Done."
        assert await session.rewind(0) == 3


@pytest.mark.requirement("PROMISE-3", "PROMISE-6")
async def test_a_rewound_session_is_resumed_forked_and_imported_unchanged(tmp_path: Path) -> None:
    server = numbered_answers()

    async def sent_after_resume(runtime: Runtime, name: str) -> list[str]:
        """Return the messages that the resumed session sends for its next ask."""
        session = await runtime.resume(name)
        await session.rewind(1)
        await talk(session, "On?")
        with pytest.raises(ConfigError):
            await session.rewind(3)
        await session.rewind(2)  # possible, because the new turn ended where turn 2 had ended
        return last_messages(server)

    def stored_log() -> Storage:
        return SqliteStorage(tmp_path / "sessions.db")

    async with runtime_with(a=server, storage=stored_log()) as runtime:
        session = await runtime.open("a", id="trip")
        await talk(session, "First?", "Second?", "Third?")
        before = len(log(runtime, session))
        await session.rewind(to=2)
        await session.rewind(to=1)
    with closing(stored_log()) as storage:
        storage.open()
        assert storage.read("trip")[-1] == Rewound(1)
    async with runtime_with(a=server, storage=stored_log()) as runtime:
        file = await runtime.journal.export("trip")
        fork = await runtime.resume(await runtime.journal.fork("trip", before, id="whole"))
        assert len(await fork.history()) == 6
        await runtime.journal.fork("trip", id="fork")
    async with runtime_with(a=server, storage=MemoryStorage()) as elsewhere:
        name = await elsewhere.journal.import_session(file, id="carried")
        moved = await elsewhere.resume(name)
        assert await texts(moved) == ["First?", "Answer 1."]


async def test_a_rewind_without_effect_writes_nothing_even_if_tools_changed() -> None:
    async with runtime_with(a=numbered_answers()) as runtime:
        session = await runtime.open("a", id="trip", tools=[LOOK])
        await talk(session, "First?")
        resumed = await runtime.resume(await runtime.journal.fork("trip", id="other"))  # without tools
        before = log(runtime, resumed)
        assert await resumed.rewind(to=1) == 0
        with pytest.raises(ConfigError):
            await resumed.rewind(to=2)
        assert log(runtime, resumed) == before
        assert resumed._lifecycle.passivate()
        await talk(resumed, "Second?")


@pytest.mark.parametrize("in_doubt", [False, True])
async def test_a_rewind_can_be_repeated_after_a_journal_failure(
    in_doubt: bool,
) -> None:
    server, storage = numbered_answers(), Outage(in_doubt=in_doubt)
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a")
        await talk(session, "First?", "Second?")
        storage.at = 0
        with pytest.raises(JournalUnavailable):
            await session.rewind(to=1)
        storage.works()
        assert await session.rewind(to=1) == (0 if in_doubt else 2)
        assert await texts(session) == ["First?", "Answer 1."]
        await talk(session, "Third?")
    assert len(last_messages(server)) == 3


REFUSAL = Status(
    400,
    body=json.dumps(
        {"error": {"message": "Invalid parameter: messages with role 'tool' must be a response"}}
    ).encode(),
)


async def test_an_error_caused_by_the_history_suggests_a_rewind() -> None:
    async with scripted("openai_chat", Turn(Say("Fine."))) as (server, _, session):
        (first,) = await talk(session, "First?")
        server.faults = lambda number, request: REFUSAL
        with pytest.raises(AskFailed, match=r"session.rewind\(to=1\)") as failed:
            await session.ask("Second?")
        server.faults = {}
        assert failed.value.result.turn == 2
        await session.rewind(to=first.turn)
        assert (await session.ask("Third?")).status == "complete"


async def test_a_suggested_rewind_skips_turns_that_were_rewound() -> None:
    async with scripted("openai_chat", Turn(Say("Fine.")), Turn(Say("Fine."))) as (server, _, session):
        first, _second = await talk(session, "First?", "Second?")
        await session.rewind(to=first.turn)
        server.faults = lambda number, request: REFUSAL
        with pytest.raises(AskFailed, match=r"session.rewind\(to=1\)") as failed:
            await session.ask("Third?")
        assert (failed.value.result.turn, failed.value.result.turn_before) == (3, 1)
        assert await session.rewind(to=1) > 0
