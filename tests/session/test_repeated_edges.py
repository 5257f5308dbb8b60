"""Asks with keys when something else happens: a crash, a handoff, a cancel, the end of a runtime, a lost journal."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime, ToolChoice, handoff
from actors.config import Config, FileSettings, PoolSettings
from actors.core.data.persistent import EMPTY, append
from actors.core.log.call_events import Returned
from actors.core.log.events import LogEvent, TurnEnded, TurnPaused
from actors.errors import JournalBehind, SessionError
from actors.events import CompleteEvent, ResyncEvent
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.sync.calls import InterruptibleAsk
from actors.testing import SERVER_ERROR, AnthropicServer, Call, OpenAIServer, Say, Turn, serve
from tests.runtime.test_rebuild import UnknownCommand
from tests.runtime_support import Gate, backend_at, bodies, log, openai, runtime_with
from tests.scripted import scripted
from tests.session.test_repeated_asks import pay, serving, storage_with, up_to

pytestmark = pytest.mark.anyio

Hook = Callable[[], object]


class HookedStorage(MemoryStorage):
    """A storage that calls a function when an event of one kind has been written.

    Attributes:
        kind: The kind of event.
        hook: The function; None to call nothing. It is called once.
    """

    kind: type[LogEvent] = TurnEnded
    hook: Hook | None = None

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        written = super().append(entries)
        hook = self.hook
        if hook is not None and any(
            isinstance(each, self.kind) for entry in entries for each in entry.events
        ):
            self.hook = None
            hook()
        return written


async def test_asks_that_joined_a_cancelled_ask_are_answered_after_a_crash() -> None:
    gate, storage = Gate(), HookedStorage()
    server = openai(Turn(Call("work", {"name": "one"})), Turn(Say("Next.")))
    async with runtime_with(a=server, storage=storage) as runtime:
        session = await runtime.open("a", tools=[replace(gate.tool, approval="ask")])
        assert (await session.ask("Go.", key="k1")).status == "awaiting"
        statuses: list[str] = []

        async def repeat() -> None:
            while (status := (await session.ask("Go.", key="k1", check=False)).status) == "awaiting":
                await anyio.lowlevel.checkpoint()  # the cancel has not arrived
            statuses.append(status)

        async def cancel() -> None:
            with suppress(SessionError):  # the actor crashes before it replies
                await session.cancel()

        storage.hook = lambda: session._session.send_nowait(UnknownCommand())  # type: ignore[arg-type]  # a crash
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel)
                tasks.start_soon(repeat)
        assert statuses == ["cancelled"]
        assert (await session.ask("And then?", key="k2")).text == "Next."
        assert (await session.ask("Go.", key="k1")).status == "cancelled"


async def test_a_handoff_that_happened_before_a_kill_is_kept() -> None:
    first, second = (
        openai(Turn(Call("to_b")), Turn(Say("A answers."))),
        openai(*[Turn(Say("B answers."))] * 2),
    )
    tools = [handoff("to_b", "Hand over to B.", target="b")]
    async with serve(first, second):
        config = Config(FileSettings(backends={"a": backend_at(first), "b": backend_at(second)}), {})
        start = partial(Runtime, config, seed=1)
        async with start(journal=MemoryStorage()) as runtime:
            session = await runtime.open("a", id="trip", tools=tools)
            assert (await session.ask("Go.", key="k1")).text == "B answers."
            events = up_to(log(runtime, session), Returned)
        async with start(journal=storage_with(events)) as runtime:
            session = await runtime.resume("trip", tools=tools)
            result = await session.ask("Go.", key="k1")
            assert (result.text, session.target) == ("B answers.", "b")


class SlowPauseStorage(SqliteStorage):
    """A storage that takes a moment to write that a turn waits. `is_pausing` is set when it begins."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_pausing = Event()

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        if any(isinstance(each, TurnPaused) for entry in entries for each in entry.events):
            self.is_pausing.set()
            time.sleep(0.3)  # the write of a slow disk
        return super().append(entries)


async def test_a_turn_that_pauses_while_its_runtime_exits_still_waits(tmp_path: Path) -> None:
    path, gate = tmp_path / "sessions.db", Gate()
    tools = [replace(gate.tool, approval="ask")]
    async with serving(openai(Turn(Call("work", {"name": "one"})))) as start:
        storage = SlowPauseStorage(path)
        async with start(storage) as runtime:
            session = await runtime.open("a", id="trip", tools=tools)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(session.ask, "Go.", key="k1"))
                while not storage.is_pausing.is_set():  # noqa: ASYNC110  set by a thread
                    await anyio.sleep(0.001)
                tasks.cancel_scope.cancel()
        async with start(SqliteStorage(path)) as runtime:
            session = await runtime.resume("trip", tools=tools)
            result = await session.ask("Go.", key="k1")
            assert (result.status, [call.name for call in result.pending_calls]) == ("awaiting", ["work"])


async def test_the_stream_of_a_repeated_ask_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.session.streams.BUFFER", 16)
    monkeypatch.setattr("actors.session.repeats._SLICE", 8)
    calls = [Turn(Say(f"[{number}]"), Call("pay", {"amount": number})) for number in range(8)]
    async with scripted("openai_chat", *calls, Turn(Say("The end.")), tools=[pay]) as (_, _, session):
        assert (await session.ask("Go.", key="k1")).text == "The end."
        async with session.stream("Go.", key="k1") as events:
            seen = [event async for event in events]
        assert len(seen) > 32
        assert [event for event in seen if isinstance(event, ResyncEvent)] == []
        assert [event for event in seen if isinstance(event, CompleteEvent)] == seen[-1:]
        text = "".join([piece async for piece in session.stream_text("Go.", key="k1")])
        assert text.split() == [*[f"[{number}]" for number in range(8)], "The", "end."]


async def test_an_abandoned_stream_of_a_repeated_ask_does_not_keep_the_session_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actors.session.streams.BUFFER", 4)
    monkeypatch.setattr("actors.session.repeats._SLICE", 2)
    calls = [Turn(Say(f"[{number}]"), Call("pay", {"amount": number})) for number in range(4)]
    async with scripted("openai_chat", *calls, Turn(Say("The end.")), tools=[pay]) as (_, _, session):
        await session.ask("Go.", key="k1")
        with anyio.fail_after(30):
            async with session.stream("Go.", key="k1") as events:
                assert (await anext(aiter(events))).type == "ask_started"
            while not session._lifecycle.passivate():  # noqa: ASYNC110  no event marks it
                await anyio.sleep(0.001)


async def test_a_failover_still_forces_a_tool_that_was_not_called() -> None:
    def find() -> str:
        """Find it."""
        return "found"

    first = AnthropicServer([Turn(Say("No need.")), Turn(Say("Still not."))], faults={1: SERVER_ERROR})
    second = OpenAIServer(
        lambda request: Turn(Call("find")) if "tool_choice" in str(request) else Turn(Say("Found."))
    )
    pools = {"all": PoolSettings(members=("a", "b"))}
    async with runtime_with(models={"a": "claude-opus-5-5"}, pools=pools, a=first, b=second) as runtime:
        session = await runtime.open("all", tools=[find])
        await session.ask("Find it.", tool_choice=ToolChoice("find"))
        assert ["tool_choice" in body for body in bodies(second)] == [True, False]


async def test_a_key_can_be_used_again_if_the_journal_lost_its_ask() -> None:
    storage = MemoryStorage()
    async with runtime_with(a=openai(*[Turn(Say(text)) for text in "123"]), storage=storage) as runtime:
        session = await runtime.open("a", id="trip")
        await session.ask("One?", key="k1")
        kept = log(runtime, session)
        await session.ask("Two?", key="k2")
        storage._logs["trip"] = append(EMPTY, kept)
        with pytest.raises(JournalBehind):
            await session.ask("Two?", key="k2")
        assert (await session.ask("Two?", key="k2")).text == "3"
        assert [message.text for message in await session.history() if message.role == "user"] == [
            "One?",
            "Two?",
        ]


async def test_an_interrupted_blocking_caller_leaves_an_ask_with_a_key_running() -> None:
    gate = Gate()
    async with runtime_with(a=openai(Turn(Call("work", {"name": "one"})), Turn(Say("Done.")))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        texts: list[str] = []

        async def ask() -> None:
            texts.append((await session.ask("Go.", key="k1")).text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await gate.started("one")
            blocking = InterruptibleAsk(session, is_shared=True)
            prepare = partial(session._prepare_stream, "Go.", None, None, {}, None, "k1")
            tasks.start_soon(blocking.outcome, prepare)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(10):
                await blocking.interrupt()
            gate.open("one")
        assert texts == ["Done."]
