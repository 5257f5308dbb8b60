"""Misbehaving tools, threads, approvals and hooks affect only their own call, and the right party is notified."""

import asyncio
import contextvars
import functools
import inspect
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest

from actors import ToolCall, tool
from actors.config import RuntimeLimits
from actors.core.log.call_events import Started
from actors.errors import ThreadsBusy
from actors.kernel.event_loop import event_loop
from actors.scheduler.executor import ToolFailure
from actors.scheduler.threads import THREADS, Threads
from actors.testing import Call, OpenAIServer, Say, Turn
from actors.tools import Tool
from tests.runtime_support import Gate, bodies, log, openai, results, runtime_with, wait_for_result
from tests.scheduler.test_isolation import stray_cancellation
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

ONE = Turn(Call("work", {}))
PATIENCE = 10.0
AnyTool = Tool[..., Any]  # Any: any function


async def results_of(*tools: AnyTool, **options: Any) -> list[str]:  # Any: options of `open`
    """Return the results that the model sees for one call of each tool."""
    server = openai(Turn(*[Call(item.name, {}) for item in tools]), Turn(Say("done")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=tools, **options)
        assert (await session.ask("Do it.")).status == "complete"
    return list(results(bodies(server)[-1]).values())


# ---- tasks


@pytest.mark.requirement("PROMISE-12", "PROMISE-8")
async def test_a_tool_that_leaves_a_task_group_open_affects_no_other_session() -> None:
    ended = anyio.Event()

    async def background() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    @tool
    async def work() -> str:
        """Open a client lazily, as an exit stack would."""
        group = anyio.create_task_group()
        await group.__aenter__()
        group.start_soon(background)
        await anyio.lowlevel.checkpoint()
        return "opened"

    gate = Gate()
    calm = openai(Turn(Call("work", {"name": "a"})), Turn(Say("calm")))
    server = openai(ONE, Turn(Say("done")), ONE, Turn(Say("again")))
    async with runtime_with(a=server, calm=calm) as runtime:
        other = await runtime.open("calm", tools=[gate.tool])
        session = await runtime.open("a", tools=[work])
        async with other.stream("Go on.") as events:
            await gate.started("a")
            assert (await session.ask("Do it.")).text == "done"
            await ended.wait()  # tasks that the call started end with it
            assert (await session.ask("Again.")).text == "again"
            gate.open("a")
            assert [event async for event in events][-1].type == "complete"
    assert list(results(bodies(server)[-1]).values()) == ["opened", "opened"]


@pytest.mark.requirement("PROMISE-12", "PROMISE-10")
@pytest.mark.usefixtures("short_graces")
async def test_a_tool_that_swallows_cancellation_is_not_woken_after_its_call_is_closed() -> None:
    wakes: list[int] = []
    begun = anyio.Event()

    @tool
    async def work() -> str:
        """Go on and on."""
        begun.set()
        while True:
            try:
                await anyio.sleep_forever()
            except GeneratorExit:
                raise
            except BaseException:
                wakes.append(1)

    async with scripted("openai_chat", ONE, Turn(Say("again")), tools=[work]) as (_, _, session):
        async with session.stream("Do it."):
            await begun.wait()
            assert await session.cancel()
        known = len(wakes)
        assert known
        assert (await session.ask("And now?")).status == "complete"
        assert len(wakes) == known


@pytest.mark.requirement("PROMISE-12")
@pytest.mark.usefixtures("short_graces")
async def test_a_tool_that_swallows_its_timeout_still_fails_in_time() -> None:
    @tool(timeout=0.05)
    async def work() -> str:
        """Go on and on."""
        while True:
            try:
                await anyio.sleep_forever()
            except GeneratorExit:
                raise
            except BaseException:
                pass

    (words,) = await results_of(work)
    assert "did not return within 0.05 s" in words


# ---- functions


async def _double(value: int) -> int:
    await anyio.lowlevel.checkpoint()
    return 2 * value


class CustomAwaitable:
    """An awaitable that is not a coroutine."""

    def __await__(self) -> Any:  # Any: traps of the event loop
        return _double(4).__await__()


@pytest.mark.parametrize(
    ("function", "words"),
    [(lambda: _double(2), "4"), (functools.partial(_double, 3), "6"), (CustomAwaitable, "8")],
    ids=["lambda", "partial", "awaitable"],
)
async def test_an_awaitable_returned_by_a_plain_function_is_awaited(
    function: Callable[[], object], words: str
) -> None:
    made = Tool.from_schema("work", "Work.", {"type": "object"}, function)
    assert await results_of(made) == [words]


@pytest.mark.requirement("PROMISE-10")
async def test_an_awaitable_returned_by_a_function_is_subject_to_its_timeout() -> None:
    ended: list[str] = []

    async def forever() -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("")
        return ""

    made = Tool.from_schema("work", "Work.", {"type": "object"}, lambda: forever(), timeout=0.05)
    async with scripted("openai_chat", ONE, Turn(Say("done")), tools=[made]) as (server, _, session):
        assert (await session.ask("Do it.")).status == "complete"
        assert ended == [""]  # cancelled at its timeout, not when the runtime is left
    assert "did not return within" in next(iter(results(bodies(server)[-1]).values()))


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="nothing")


@tool
async def reads() -> str:
    """Read."""
    return VARIABLE.get()


@tool
def reads_in_a_thread() -> str:
    """Read, in a thread."""
    return VARIABLE.get()


async def test_tools_see_the_context_variables_of_the_caller_of_their_ask() -> None:
    seen: list[list[str]] = []
    server = OpenAIServer(_both_then_done)
    async with scripted(server, tools=[reads, reads_in_a_thread]) as (_, _, session):

        async def ask(value: str) -> None:
            VARIABLE.set(value)
            assert (await session.ask(value)).status == "complete"
            seen.append(list(results(bodies(server)[-1]).values())[-2:])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "mine")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(ask, "yours")
    assert sorted(seen) == [["mine", "mine"], ["yours", "yours"]]


def _both_then_done(request: dict[str, Any]) -> Turn:  # Any: a request body
    if request["messages"][-1]["role"] == "tool":
        return Turn(Say("done"))
    return Turn(Call("reads", {}), Call("reads_in_a_thread", {}))


# ---- threads


@contextmanager
def blocking_tool() -> Iterator[tuple[AnyTool, list[str], threading.Event]]:
    """Yield a tool that blocks its thread, a list with one item per started call, and the event that releases them."""
    released, begun = threading.Event(), list[str]()

    def work() -> str:
        """Block."""
        begun.append("")
        released.wait()
        return "late"

    try:
        yield tool(work), begun, released
    finally:
        released.set()


async def wait_until(condition: Callable[[], object]) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("PROMISE-12", "PROMISE-9")
@pytest.mark.usefixtures("short_graces")
async def test_a_call_is_rejected_if_tools_of_closed_calls_block_every_thread() -> None:
    with blocking_tool() as (work, begun, _):
        server = openai(ONE, ONE, Turn(Say("done")))
        failures: list[ToolFailure] = []
        limits = RuntimeLimits(tool_threads=1 + THREADS.taken, thread_wait_timeout=3600)
        async with runtime_with(
            a=server, limits=limits, on_tool_error=failures.append, seconds=30
        ) as runtime:
            stuck = await runtime.open("a", tools=[work])
            async with stuck.stream("Do it."):
                await wait_until(lambda: begun)
                await stuck.cancel()
            assert THREADS.stuck == 1
            assert (await stuck.ask("Again.")).status == "complete"
            kinds = [type(event).__name__ for event in log(runtime, stuck)]
        assert len(begun) == 1
        assert kinds.count("Started") == 1
        assert [type(failure.error) for failure in failures] == [ThreadsBusy]
        words = list(results(bodies(server)[-1]).values())[-1]
        assert '"kind":"no_thread"' in words
        assert "limits.tool_threads" not in words


@pytest.mark.requirement("PROMISE-12")
async def test_a_closed_call_keeps_its_thread_slot_until_its_tool_returns() -> None:
    with blocking_tool() as (work, begun, released):
        slow = Tool.from_schema("work", "Work.", {"type": "object"}, work.function, timeout=0.05)
        async with runtime_with(a=openai(ONE, Turn(Say("done")))) as runtime:
            taken = THREADS.taken
            session = await runtime.open("a", tools=[slow])
            assert (await session.ask("Do it.")).status == "complete"
            assert THREADS.taken == taken + 1
            await wait_until(lambda: begun)  # on a busy machine a thread may start after its call was closed
            released.set()
            await wait_until(lambda: THREADS.taken <= taken)
            assert THREADS.stuck == 0


async def test_a_call_that_waits_for_a_thread_is_not_logged_as_started() -> None:
    with blocking_tool() as (work, begun, released):
        server = openai(Turn(Call("work", {}), Call("work", {})), Turn(Say("done")))
        async with runtime_with(a=server, limits=RuntimeLimits(tool_threads=1 + THREADS.taken)) as runtime:
            session = await runtime.open("a", tools=[work])
            async with session.stream("Do it.") as events:
                await wait_until(lambda: begun)
                started = [event for event in log(runtime, session) if isinstance(event, Started)]
                assert [event.call_id for event in started] == ["hist_tool_1"]
                released.set()
                assert [event async for event in events][-1].type == "complete"
            started = [event for event in log(runtime, session) if isinstance(event, Started)]
            assert [event.call_id for event in started] == ["hist_tool_1", "hist_tool_2"]
    assert list(results(bodies(server)[-1]).values()) == ["late", "late"]


async def test_a_call_that_finds_no_thread_in_time_is_rejected() -> None:
    with blocking_tool() as (work, begun, released):
        limits = RuntimeLimits(tool_threads=1 + THREADS.taken, thread_wait_timeout=0.05)
        server = openai(Turn(Call("work", {}), Call("work", {})), Turn(Say("done")))
        async with runtime_with(a=server, limits=limits) as runtime:
            session = await runtime.open("a", tools=[work])
            async with session.stream("Do it.") as events:
                await wait_for_result(session, "hist_tool_2")
                released.set()
                assert [event async for event in events][-1].type == "complete"
        assert len(begun) == 1
    assert '"kind":"no_thread"' in list(results(bodies(server)[-1]).values())[1]


@pytest.mark.requirement("PROMISE-9")
async def test_the_sessions_of_a_process_share_its_threads() -> None:
    with blocking_tool() as (work, begun, released):
        limits = RuntimeLimits(tool_threads=3 + THREADS.taken)
        both = [openai(*[Turn(Call("work", {}), Call("work", {})), Turn(Say("done"))]) for _ in range(2)]
        async with (
            runtime_with(a=both[0], limits=limits) as one,
            runtime_with(a=both[1], limits=limits) as two,
        ):
            sessions = [await runtime.open("a", tools=[work]) for runtime in (one, two)]
            async with sessions[0].stream("Do it.") as first, sessions[1].stream("Do it.") as second:
                await wait_until(lambda: len(begun) == 3)
                await anyio.wait_all_tasks_blocked()
                assert len(begun) == 3
                released.set()
                for events in (first, second):
                    assert [event async for event in events][-1].type == "complete"
        assert len(begun) == 4


# ---- awaitables returned by a thread that are not awaited any more


@contextmanager
def late_coroutine_tool() -> Iterator[
    tuple[AnyTool, list[str], threading.Event, list[Coroutine[Any, Any, object]]]
]:
    """Yield a tool that blocks its thread and then returns a coroutine, and a list of these coroutines."""
    made: list[Coroutine[Any, Any, object]] = []
    with blocking_tool() as (block, begun, released):

        def work() -> Coroutine[Any, Any, object]:
            block.function()
            made.append(_double(2))
            return made[0]

        yield Tool.from_schema("work", "Work.", {"type": "object"}, work), begun, released, made


@pytest.mark.requirement("PROMISE-12")
@pytest.mark.usefixtures("short_graces")
async def test_a_coroutine_returned_after_the_runtime_exited_is_closed() -> None:
    taken = THREADS.taken
    with late_coroutine_tool() as (work, begun, released, made):
        async with scripted("openai_chat", ONE, tools=[work]) as (_, _, session), session.stream("Do it."):
            await wait_until(lambda: begun)
        released.set()
        await wait_until(lambda: THREADS.taken <= taken)
        event_loop().soon((heard := anyio.Event()).set)
        await heard.wait()  # runs after the callback of the thread
        assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


@pytest.mark.usefixtures("short_graces")
def test_a_coroutine_returned_after_the_loop_has_ended_is_closed(anyio_backend: str) -> None:
    async def program(work: AnyTool, begun: list[str]) -> None:
        async with scripted("openai_chat", ONE, tools=[work]) as (_, _, session), session.stream("Do it."):
            await wait_until(lambda: begun)

    taken = THREADS.taken
    with late_coroutine_tool() as (work, begun, released, made):
        anyio.run(program, work, begun, backend=anyio_backend)
        released.set()
        while THREADS.taken > taken:
            time.sleep(0)
        assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio does not cancel a task that was already woken
async def test_a_coroutine_returned_together_with_a_cancellation_is_closed() -> None:
    taken, loop = THREADS.taken, asyncio.get_running_loop()

    def cancel() -> None:
        for task in asyncio.all_tasks():
            if task.get_name() == "work":
                task.cancel()

    def block() -> None:
        """Block the loop until the thread has handed over its coroutine, then cancel the call."""
        released.set()
        while THREADS.taken > taken:
            time.sleep(0)
        loop.call_soon(cancel)

    with late_coroutine_tool() as (work, begun, released, made):
        async with runtime_with(a=openai(ONE, Turn(Say("done")))) as runtime:
            session = await runtime.open("a", tools=[work])
            async with session.stream("Do it.") as events:
                await wait_until(lambda: begun)
                loop.call_soon(block)
                async for _ in events:
                    pass
        assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_idle_threads_end_with_the_last_runtime() -> None:
    pool, done = Threads(), threading.Event()
    before = threading.active_count()
    pool.register_runtime()
    pool.register_runtime()
    place = pool.try_take_slot(1)
    assert place is not None
    assert pool.try_take_slot(1) is None
    place.run(done.set)
    while pool.taken:
        done.wait()
    assert threading.active_count() == before + 1
    pool.unregister_runtime()
    assert threading.active_count() == before + 1
    pool.unregister_runtime()
    assert threading.active_count() == before


# ---- reports of failures


@tool
async def breaks() -> str:
    """Break."""
    raise LookupError("the third shelf")


async def test_an_exception_of_a_tool_is_logged_and_passed_to_the_hook(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="actors.tools")
    server = openai(Turn(Call("breaks", {})), Turn(Say("done")))
    failures: list[ToolFailure] = []

    def hook(failure: ToolFailure) -> None:
        failures.append(failure)
        raise ZeroDivisionError  # an exception of the hook is ignored

    async with runtime_with(a=server, on_tool_error=hook) as runtime:
        session = await runtime.open("a", tools=[breaks], id="mine")
        assert (await session.ask("Do it.")).status == "complete"
    (failure,) = failures
    assert (failure.session, failure.call_id, failure.tool) == ("mine", "hist_tool_1", "breaks")
    assert isinstance(failure.error, LookupError)
    record, trace = [record for record in caplog.records if record.name == "actors.tools"]
    assert (record.levelno, trace.levelno) == (logging.INFO, logging.DEBUG)
    about = "session='mine' call='hist_tool_1' tool='breaks'"
    assert f"event='tool_failed' {about} error='LookupError'" in record.getMessage()
    assert (record.exc_text, record.exc_info, trace.exc_info) == (None, None, None)
    assert trace.getMessage() == f"event='tool_traceback' {about}"
    assert "in breaks" in str(trace.exc_text)
    assert list(results(bodies(server)[-1]).values()) == ["ERROR: LookupError: the third shelf"]


# ---- approvals


@tool(approval="ask")
async def erases() -> str:
    """Erase."""
    return "gone"


async def _later(answer: object) -> object:
    await anyio.lowlevel.checkpoint()
    return answer


def _raises(error: Callable[[], BaseException]) -> Callable[[ToolCall], bool]:
    def approve(_: ToolCall) -> bool:
        raise error()

    return approve


def _raises_later(error: Callable[[], BaseException]) -> Callable[[ToolCall], Any]:  # Any: as below
    async def approve(_: ToolCall) -> bool:
        raise error()

    return approve


APPROVALS: dict[str, tuple[Any, bool]] = {  # Any: any function that a program may pass
    "yes": (lambda _: True, True),
    "no": (lambda _: False, False),
    "word": (lambda _: "yes", False),
    "async yes": (lambda _: _later(True), True),
    "async no": (lambda _: _later(False), False),
    "async word": (lambda _: _later("yes"), False),
    "error": (_raises(ValueError), False),
    "exit": (_raises(lambda: SystemExit(3)), False),
    "async exit": (_raises_later(lambda: SystemExit(3)), False),
    "async interrupt": (_raises_later(KeyboardInterrupt), False),
    "async cancellation": (_raises_later(stray_cancellation), False),
}


@pytest.mark.parametrize("kind", APPROVALS)
@pytest.mark.requirement("PROMISE-12")
async def test_an_approval_hook_approves_only_with_true_and_its_error_affects_one_call(kind: str) -> None:
    approve, runs = APPROVALS[kind]
    (words, other) = await results_of(erases, reads, approve=approve)
    why = ": yes" if "word" in kind else "."
    assert words == ("gone" if runs else f"ERROR: Running 'erases' was not approved{why}")
    assert other == "nothing"


async def test_a_string_returned_by_an_approval_hook_denies_and_is_shown_as_the_reason() -> None:
    def approve(call: ToolCall) -> bool | str:
        return "nothing is erased on Fridays"

    (words, _) = await results_of(erases, reads, approve=approve)
    assert words == "ERROR: Running 'erases' was not approved: nothing is erased on Fridays"


async def test_a_slow_approval_delays_no_other_session() -> None:
    asked, answer = threading.Event(), threading.Event()

    def approve(_: ToolCall) -> bool:
        asked.set()
        answer.wait()
        return True

    server = openai(Turn(Call("erases", {}), Call("reads", {})), Turn(Say("done")))
    calm = openai(Turn(Say("calm")))
    async with runtime_with(a=server, calm=calm) as runtime:
        session = await runtime.open("a", tools=[erases, reads], approve=approve)
        other = await runtime.open("calm")
        try:
            async with session.stream("Do it.") as events:
                await wait_until(asked.is_set)
                await wait_for_result(session, "hist_tool_2")
                assert (await other.ask("Go on.")).text == "calm"
                answer.set()
                assert [event async for event in events][-1].type == "complete"
        finally:
            answer.set()
    assert list(results(bodies(server)[-1]).values()) == ["gone", "nothing"]


@pytest.mark.requirement("PROMISE-10")
async def test_a_cancel_while_an_approval_is_awaited_closes_the_call() -> None:
    asked = anyio.Event()

    async def approve(_: ToolCall) -> bool:
        asked.set()
        await anyio.sleep_forever()
        return True

    async with runtime_with(a=openai(Turn(Call("erases", {})))) as runtime:
        session = await runtime.open("a", tools=[erases], approve=approve)
        async with session.stream("Do it."):
            await asked.wait()
            assert await session.cancel()
        (known,) = (await session.ledger()).interactions()
        assert (known.status, known.started) == ("cancelled", False)


@pytest.mark.requirement("PROMISE-12")
async def test_an_exit_exception_of_the_tool_error_hook_ends_no_session() -> None:
    def hook(_: ToolFailure) -> None:
        raise SystemExit("the host's own")

    @tool(timeout=0.01)
    async def work() -> str:
        """Exceed the timeout."""
        await anyio.sleep_forever()
        return "never"

    server = openai(ONE, Turn(Say("done")), Turn(Say("again")))
    async with runtime_with(a=server, on_tool_error=hook) as runtime:
        session = await runtime.open("a", tools=[work])
        assert (await session.ask("Do it.")).status == "complete"
        assert (await session.ask("And?")).status == "complete"
    assert "did not return within" in str(results(bodies(server)[1]))


@pytest.mark.alternating  # waits for the watchdog of another test
@pytest.mark.parametrize("name", ["actors tool", "actors watchdog"])
async def test_a_failed_thread_start_leaks_no_slot_and_ends_no_session(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        begin(thread)

    @tool
    def work() -> str:
        """Work."""
        return "worked"

    @tool
    async def other() -> str:
        """Work in the event loop."""
        return "worked too"

    for thread in threading.enumerate():
        if thread.name == name:  # from another test, and ends by itself
            await anyio.to_thread.run_sync(thread.join, PATIENCE)
    server = openai(Turn(Call("work"), Call("other")), Turn(Say("done")))
    taken = THREADS.taken
    monkeypatch.setattr(threading.Thread, "start", refuse)
    async with scripted(server, tools=[work, other]) as (_, _, session):
        assert (await session.ask("Do it.")).status == "complete"
    with anyio.fail_after(3 * PATIENCE):
        await wait_until(lambda: THREADS.taken <= taken)  # a thread gives its place back after its result
    said = str(results(bodies(server)[1]))
    assert "worked too" in said
    assert ("new thread" in said) == (name == "actors tool")


# ---- threads and processes that a tool leaves behind


async def test_the_runtime_does_not_wait_for_threads_and_processes_that_a_tool_started() -> None:
    """A thread and a process outlive the call and the runtime; later output of the thread is in no result."""
    released, said = threading.Event(), ["first"]
    threads, processes = list[threading.Thread](), list[subprocess.Popen[bytes]]()

    def goes_on() -> None:
        said.append("second")
        released.wait()

    @tool
    def leave() -> list[str]:
        """Start a thread and a process, and leave them."""
        processes.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        kept = list(said)
        threads.append(threading.Thread(target=goes_on))
        threads[-1].start()
        return kept

    server = openai(Turn(Call("leave", {})), Turn(Say("Done.")), Turn(Say("Still here.")))
    try:
        async with scripted(server, tools=[leave]) as (_, _, session):
            assert (await session.ask("Go.")).text == "Done."
            assert list(results(bodies(server)[1]).values()) == ['["first"]']
            assert (await session.ask("And now?")).text == "Still here."
        assert threads[0].is_alive()
        assert processes[0].poll() is None
    finally:
        released.set()
        for thread in threads:
            thread.join(PATIENCE)
        for process in processes:
            process.communicate(b"\n", PATIENCE)
