"""The life of a runtime: sessions open and close, and its exit takes bounded time no matter what is running."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from actors.config import Config, FileSettings, ReasoningSettings, RuntimeLimits
from actors.core.history.history import History
from actors.core.log.events import Closed, LogEvent, Opened, SwitchApplied, TurnEnded
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import Media, Message, Text, ToolCall, ToolResult
from actors.core.values.identity import CallId
from actors.errors import (
    ConfigError,
    JournalError,
    SessionClosed,
    SessionError,
    SessionExists,
    TranscriptError,
    UnknownTarget,
)
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Stall, Turn, serve
from tests.commands.at_scale import extent
from tests.runtime.test_rebuild import crash
from tests.runtime.test_recovery_of_sessions import HeldStorage
from tests.runtime_support import (
    Gate,
    actors,
    anthropic,
    assert_paired,
    backend_at,
    blocks,
    bodies,
    calls,
    gather_events,
    log,
    openai,
    restarted_actors,
    results,
    runtime_with,
)
from tests.scripted import scripted
from tests.session.test_cancel import ONE, cancel_when, shielded_tool

pytestmark = pytest.mark.anyio

WORK = Turn(Call("work", {"name": "a"}))


async def test_two_runtimes_in_one_process_are_independent() -> None:
    one, two = openai(Turn(Say("one"))), openai(Turn(Say("two")))
    async with runtime_with(a=one) as first, runtime_with(a=two) as second:
        mine, yours = await first.open("a", id="same"), await second.open("a", id="same")
        assert (await mine.ask("Who?")).text == "one"
        assert (await yours.ask("Who?")).text == "two"
        assert list(first.sessions) == list(second.sessions) == ["same"]


async def test_session_ids_are_validated_generated_and_never_reused() -> None:
    async with runtime_with(a=openai()) as runtime:
        for bad in ("", "../x", "a b", "x" * 65, "-x"):
            with pytest.raises(ConfigError, match="is invalid"):
                await runtime.open("a", id=bad)
        with pytest.raises(UnknownTarget):
            await runtime.open("nowhere")
        first, second = await runtime.open("a"), await runtime.open("a")
        assert first.id != second.id
        assert runtime.session(first.id) is first
        with pytest.raises(SessionExists, match="is already open"):
            await runtime.open("a", id=first.id)
        await first.close()
        with pytest.raises(SessionExists, match="already has a log; pass resume=True"):
            await runtime.open("a", id=first.id)
        with pytest.raises(SessionClosed, match="open or resume it"):
            runtime.session(first.id)
        assert list(runtime.sessions) == [second.id]


async def test_generated_session_ids_skip_ids_in_the_storage() -> None:
    storage = MemoryStorage()
    async with runtime_with(a=openai(), storage=storage) as runtime:
        first = await runtime.open("a")
    async with runtime_with(a=openai(), storage=storage) as runtime:
        assert (await runtime.open("a")).id != first.id


@pytest.mark.requirement("PROMISE-9")
async def test_methods_of_a_closed_session_raise_session_closed() -> None:
    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a")
        await session.ask("Hello.")
        await session.close()
        await session.close()
        assert isinstance(log(runtime, session)[-1], Closed)
        assert sum(isinstance(event, Closed) for event in log(runtime, session)) == 1
        for call in (session.cancel, session.history, session.ledger):
            with pytest.raises(SessionClosed, match="has ended"):
                await call()
        with pytest.raises(SessionClosed):
            await session.ask("Still there?")
        with pytest.raises(SessionClosed):
            await session.switch("a")
        with pytest.raises(SessionClosed):
            await session.preview("a")
        with pytest.raises(SessionClosed):
            async with session.stream("Still there?"):
                pass
        assert [name for name in actors(runtime) if session.id in name] == []


@pytest.mark.requirement("PROMISE-10")
async def test_closing_a_session_cancels_its_running_ask_and_drops_its_queued_asks() -> None:
    gate = Gate()
    async with scripted("openai_chat", WORK, tools=[gate.tool]) as (_, runtime, session):
        async with session.stream("First.") as first, session.stream("Second.") as second:
            await gate.started("a")
            await session.close()
            seen = [event async for event in first]
            assert seen[-1].type == "complete"
            assert seen[-1].result.status == "cancelled"
            with pytest.raises(SessionClosed):
                _ = [event async for event in second]
        events = log(runtime, session)
        assert isinstance(events[-1], Closed)
        assert [event.status for event in events if isinstance(event, TurnEnded)] == ["cancelled"]


@pytest.mark.requirement("PROMISE-2", "PROMISE-10")
async def test_a_result_that_arrives_during_a_close_is_not_logged_after_the_closed_event() -> None:
    begun, released = anyio.Event(), anyio.Event()
    storage = HeldStorage(Closed)
    async with runtime_with(a=openai(ONE), storage=storage) as runtime:
        session = await runtime.open("a", tools=[shielded_tool(begun, released)])
        await cancel_when(session, begun.wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.close)
            tasks.start_soon(session.close)
            await storage.begun.wait()
            released.set()
            await anyio.wait_all_tasks_blocked()
            storage.freed.set()
        assert isinstance(log(runtime, session)[-1], Closed)


async def open_two_sessions(runtime: Runtime, gate: Gate) -> tuple[Session, ...]:
    """Return a session for a running tool and one for a silent provider."""
    running = await runtime.open("work", tools=[gate.tool])
    silent = await runtime.open("silent")
    return running, silent


@pytest.mark.requirement("PROMISE-8", "PROMISE-11")
async def test_exiting_a_runtime_ends_all_running_turns() -> None:
    gate, ends = Gate(), list[str]()
    work, silent = openai(WORK), anthropic(faults={0: Stall()})

    async def ask(session: Session) -> None:
        ends.append((await session.ask("Do it.")).status)

    async with anyio.create_task_group() as tasks, runtime_with(work=work, silent=silent) as runtime:
        for session in await open_two_sessions(runtime, gate):
            tasks.start_soon(ask, session)
        await gate.started("a")
        while not silent.received:
            await anyio.lowlevel.checkpoint()
        for name in runtime.sessions:  # sessions cannot be compared while they change
            runtime._registry.open.pop(name)
    assert ends == ["cancelled", "cancelled"]
    for stored in runtime._storage.sessions():
        assert isinstance(runtime._storage.read(stored.id)[-1], TurnEnded)
    _assert_nothing_runs()


def _assert_nothing_runs() -> None:
    """Check that asyncio runs no tasks of a runtime; trio cannot leave any."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        return
    names = {task.get_name() for task in tasks if not task.done()}
    assert not [name for name in names if name.startswith(("runner", "deadlines", "work"))], names


@pytest.mark.requirement("PROMISE-8")
async def test_an_error_or_cancellation_inside_a_runtime_stops_its_turns_and_propagates() -> None:

    async def host(end: Callable[[], object]) -> None:
        gate = Gate()
        async with runtime_with(work=openai(WORK)) as runtime:
            session = await runtime.open("work", tools=[gate.tool])
            async with session.stream("Do it."):
                await gate.started("a")
                end()
                await anyio.lowlevel.checkpoint()

    with pytest.raises(ZeroDivisionError):
        await host(lambda: 1 / 0)
    with anyio.CancelScope() as scope:
        await host(scope.cancel)
    assert scope.cancelled_caught
    _assert_nothing_runs()


async def test_exiting_a_runtime_does_not_wait_for_a_blocked_thread() -> None:
    begun, released = threading.Event(), threading.Event()

    def work(name: str) -> str:
        """Block."""
        begun.set()
        released.wait(20)
        return name

    try:
        async with runtime_with(work=openai(WORK)) as runtime:
            session = await runtime.open("work", tools=[work])
            async with session.stream("Do it."):
                while not begun.is_set():
                    await anyio.lowlevel.checkpoint()
                runtime._registry.open.pop(session.id)  # the session cannot be compared while it changes
        assert not released.is_set()
    finally:
        released.set()


async def test_a_session_continues_from_an_imported_history() -> None:
    call = CallId("hist_tool_7")
    imported = [
        Message("user", (Text("Look."),)),
        Message("assistant", (ToolCall(call, "work", {"name": "z"}), ToolCall(CallId("other"), "work", {}))),
        Message("tool", (ToolResult(call, "z is done"),)),
    ]
    gate = Gate()
    gate.open("a")
    one, two = openai(WORK, Turn(Say("Yes."))), anthropic()
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", tools=[gate.tool], messages=imported)
        assert (await session.ask("And?")).text == "Yes."
        assert (await session.ledger()).interactions()[-1].call_id == "hist_tool_8"
        await session.switch("b")
        assert (await session.ask("And?")).status == "complete"
    assert one.refusals == two.refusals == []
    for body in (*bodies(one), *bodies(two)):
        assert_paired(body)
        assert len(calls(body)) >= 2
    assert "z is done" in results(bodies(two)[0]).values()


@pytest.mark.requirement("U-07", "REQ-915-005", "REQ-915-006")
async def test_results_without_a_call_are_sent_as_text_and_reported() -> None:
    call = CallId("one")
    imported = [
        Message("user", (Text("Look."),)),
        Message("assistant", (ToolCall(call, "work", {"name": "z"}),)),
        Message("tool", (ToolResult(CallId("nobody"), "orphan"), ToolResult(call, "z is done"))),
    ]
    server = anthropic()
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", messages=imported)
        assert [finding.code for finding in History(imported).report.findings] == ["orphan_result"]
        assert (await session.ask("And?")).status == "complete"
    assert server.refusals == []
    (body,) = bodies(server)
    assert list(results(body).values()) == ["z is done"]
    assert any("orphan" in block for _, block in blocks(body))


async def test_an_ask_accepts_only_user_messages() -> None:
    async with scripted("openai_chat") as (server, _, session):
        assert (await session.ask(Message("user", (Text("one"), Text("two"))))).status == "complete"
        with pytest.raises(SessionError, match="assistant"):
            await session.ask(Message("assistant", (Text("x"),)))
        with pytest.raises(SessionError, match="tool"):
            await session.ask(Message("tool", (Text("x"),)))
        assert len(await session.history()) == 2
    assert server.received == 1


ODD: Any = b"\x89PNG"  # Any: an argument of the wrong type
NO_MESSAGES: list[Any] = [  # Any: as above
    5,
    None,
    ODD,
    {"role": "user", "content": "x"},
    History(),
    Message("user", (ODD,)),
    Message("user", (Media("image/png", ODD),)),
    Message("user", (Text(json=ODD[0]),)),
]


@pytest.mark.parametrize("value", NO_MESSAGES, ids=lambda value: str(value)[:40])
async def test_an_invalid_message_is_rejected_before_it_reaches_an_actor(value: Any) -> None:  # Any: as above
    server = openai()
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a")
        error, match = (
            (ConfigError, "without a message needs results=")
            if value is None
            else (SessionError, "The message of an ask must be a string or a valid Message: ")
        )
        with pytest.raises(error, match=match):
            await session.ask(value)
        with pytest.raises(TranscriptError, match=r"messages\[0\] is invalid: .*from_wire"):
            await runtime.open("a", messages=[value])
        assert (await session.ask("Hello.")).status == "complete"
        assert restarted_actors(runtime) == []


async def test_a_target_or_system_prompt_of_the_wrong_type_is_rejected() -> None:
    nothing: Any = 5  # Any: an argument of the wrong type
    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a")
        for refused in (session.switch, session.preview, runtime.open):
            with pytest.raises(UnknownTarget, match="A target is a string"):
                await refused(nothing)
        with pytest.raises(ConfigError, match="system= takes a string, not int"):
            await runtime.open("a", system=nothing)
        assert (await session.ask("Hello.")).status == "complete"
        assert restarted_actors(runtime) == []


@pytest.mark.long
async def test_many_sessions_can_open_and_ask_at_the_same_time() -> None:
    server, count = openai(), extent(25, 50)
    async with runtime_with(a=server) as runtime:

        async def talk() -> None:
            session = await runtime.open("a")
            for _ in range(3):
                assert (await session.ask("Hello.")).status == "complete"

        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(talk)
        assert len(set(runtime.sessions)) == count
    assert server.received == 3 * count


@pytest.mark.alternating
@pytest.mark.long
@pytest.mark.requirement("PROMISE-9")
async def test_cancelling_hundreds_of_asks_at_once_overflows_no_mailbox() -> None:
    server = openai(faults=lambda number, request: Stall())
    count = extent(300, 600)  # more than a mailbox can hold
    async with runtime_with(a=server) as runtime:
        sessions = [await runtime.open("a") for _ in range(count)]
        ends: list[str] = []

        async def ask(session: Session, *, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with session.stream("Hello.") as events:
                task_status.started()  # an earlier cancel would find no ask
                ends.append([event async for event in events][-1].result.status)  # type: ignore[union-attr]  # the terminal event

        async with anyio.create_task_group() as tasks:
            for session in sessions:
                await tasks.start(ask, session)
            while server.received < 64:  # the limit of one backend; the other asks are queued
                await anyio.lowlevel.checkpoint()
            for session in sessions:
                tasks.start_soon(session.cancel)
        assert ends == ["cancelled"] * count
        server.faults = {}
        assert (await sessions[0].ask("Hello.")).status == "complete"


class Failing(MemoryStorage):
    """A storage that fails on request."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0
        self.after = 0
        self.refused: type[LogEvent] | None = None
        """The kind of event whose next append fails."""

    def append(self, entries: Sequence[Entry]) -> Sequence[Appended]:
        kinds = [type(event) for entry in entries for event in entry.events]
        if self.refused in kinds:
            self.refused = None
            raise OSError("no space left on device")
        if self.after:
            self.after -= 1
        elif self.failures:
            self.failures -= 1
            raise OSError("no space left on device")
        return super().append(entries)


@pytest.mark.requirement("PROMISE-6")
async def test_a_session_whose_first_event_cannot_be_written_is_not_open() -> None:
    storage = Failing()
    async with runtime_with(a=openai(), storage=storage) as runtime:
        storage.failures = 1
        with pytest.raises(JournalError, match="no space left"):
            await runtime.open("a", id="x")
        assert list(runtime.sessions) == []
        session = await runtime.open("a", id="x")
        assert (await session.ask("Hello.")).status == "complete"


@pytest.mark.requirement("PROMISE-6", "PROMISE-8")
async def test_an_ask_fails_if_its_event_cannot_be_written(
    anyio_backend: str,
) -> None:
    for after in extent(range(anyio_backend == "trio", 16, 2), range(16)):
        storage, gate = Failing(), Gate()
        gate.open("a")
        server, calm = openai(WORK, Turn(Say("Done."))), openai()
        async with runtime_with(a=server, calm=calm, storage=storage) as runtime:
            session, other = await runtime.open("a", tools=[gate.tool]), await runtime.open("calm")
            storage.after, storage.failures = after, 1
            with suppress(JournalError):
                events: list[SessionEvent] = await gather_events(session, "Do it.")
                assert events[-1].type in ("complete", "error")
            storage.failures = 0
            assert (await session.ask("And now?")).status == "complete"
            assert (await other.ask("Hello.")).status == "complete"
            assert all(item.status != "pending" for item in (await session.ledger()).interactions())
        assert server.refusals == []


@pytest.mark.requirement("PROMISE-6")
async def test_a_switch_that_cannot_be_written_does_not_happen() -> None:
    storage = Failing()
    async with runtime_with(a=openai(), b=anthropic(), storage=storage) as runtime:
        session = await runtime.open("a")
        storage.failures = 1
        with pytest.raises(JournalError, match="no space left"):
            await session.switch("b")
        assert (await session.ask("Hello.")).binding.backend == "a"


@pytest.mark.requirement("PROMISE-6", "REQ-915-050")
async def test_a_queued_switch_that_cannot_be_written_applies_after_a_restart() -> None:
    storage, gate = Failing(), Gate()
    async with runtime_with(a=openai(WORK, Turn(Say("Done."))), b=anthropic(), storage=storage) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        async with session.stream("Do it.") as events:
            await gate.started("a")
            await session.switch("b")
            storage.refused = SwitchApplied
            gate.open("a")
            seen = [event async for event in events]
        assert seen[-1].type == "complete"
        assert (await session.ask("Hello.")).binding.backend == "b"
        applied = [event.target for event in log(runtime, session) if isinstance(event, SwitchApplied)]
        assert applied == ["b"]


@pytest.mark.requirement("PROMISE-8")
async def test_a_session_that_crashes_too_often_is_closed() -> None:
    async with runtime_with(a=openai()) as runtime:
        session, other = await runtime.open("a"), await runtime.open("a")
        assert (await session.ask("Hello.")).status == "complete"
        for _ in range(50):  # a crash during the wait before a restart counts only after that restart
            with suppress(SessionError):
                await crash(session, "renderer")
                await session.history()
            if session.id not in runtime.sessions:
                break
        with pytest.raises(SessionClosed):
            await session.ask("Hello.")
        assert list(runtime.sessions) == [other.id]
        assert (await other.ask("Hello.")).status == "complete"


async def test_a_runtime_works_without_a_configuration_file() -> None:
    async with Runtime(Config(FileSettings(), {})) as runtime:
        with pytest.raises(UnknownTarget):
            await runtime.open("nowhere")
    async with Runtime(environ={}) as runtime:
        assert list(runtime.sessions) == []


async def test_system_prompt_and_tools_are_in_every_request() -> None:
    one, two = openai(), anthropic()
    async with runtime_with(a=one, b=two) as runtime:
        session = await runtime.open("a", system="Be brief.", tools=[Gate().tool])
        await session.ask("Hello.")
        await session.switch("b")
        await session.ask("Hello.")
        first = log(runtime, session)[0]
        assert isinstance(first, Opened)
        assert first.system == "Be brief."
    sent: list[dict[str, Any]] = [*bodies(one), *bodies(two)]  # Any: request bodies
    assert all("Be brief." in str(body) for body in sent)
    assert all(len(body["tools"]) == 1 for body in sent)


async def test_a_preview_opens_no_backend_and_an_ask_beyond_the_limit_of_backends_fails() -> None:
    server = openai()
    async with serve(server):
        limits = RuntimeLimits(backends=1)
        backends = {name: backend_at(server) for name in ("a", "b")}
        config = Config(FileSettings(backends=backends, limits=limits), {})
        async with Runtime(config) as runtime:
            session = await runtime.open("a")
            assert (await session.ask("Hello.")).status == "complete"
            before = actors(runtime)
            preview = await session.preview("b")
            assert (preview.size, preview.kept) == (len(preview.body), 0)
            assert actors(runtime) == before
            await session.switch("b")
            refused = await session.ask("And you?", check=False)
            assert (refused.status, refused.error) == (
                "failed", "Cannot use backend 'b', because 1 backends are in use already; raise limits.backends"
            )  # fmt: skip
            await session.switch("a")
            assert (await session.ask("Still there?")).status == "complete"


async def test_a_preview_reports_the_settings_that_its_target_does_not_support() -> None:
    server = anthropic()
    async with serve(server):
        made = backend_at(server).model_copy(
            update={"temperature": 0.5, "reasoning": ReasoningSettings(mode="adaptive")}
        )
        config = Config(FileSettings(backends={"a": made}), {})
        async with Runtime(config) as runtime:
            session = await runtime.open("a")
            assert (await session.preview("a")).losses == {"temperature": 1}
            assert (await session.ask("Hello.")).status == "complete"
    (body,) = bodies(server)
    assert body["thinking"] == {"type": "adaptive"}
    assert "temperature" not in body


async def test_a_slow_handler_is_logged_by_name_without_its_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="actors")
    async with scripted("openai_chat", Turn(Say("Here."))) as (_, runtime, session):
        runtime._system.slow = 0.0  # from now on, every handler counts as slow
        assert (await session.ask("A secret.")).text == "Here."
        runtime._system.slow = 3600.0
    told = [record.getMessage() for record in caplog.records if "slow_handler" in record.getMessage()]
    assert any("actor='session-1/session'" in line and "command='Submit'" in line for line in told)
    assert not any("secret" in line for line in told)
