"""`actors.sync`, the API for programs without an event loop, and `actors.run`, for a single question."""

import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest

import actors
from actors import Runtime, sync
from actors.errors import (
    AskFailed,
    ConfigError,
    JournalError,
    KernelError,
    QueueFull,
    ReentrantCall,
    SessionClosed,
    WrongEventLoop,
)
from actors.events import ApprovalDecision, CompleteEvent
from actors.kernel import loop_thread
from actors.kernel.event_loop import event_loop
from actors.kernel.loop_thread import RUNNING
from actors.runtime import once
from actors.sync.calls import InterruptibleAsk, final_result
from actors.testing import Call, OpenAIServer, Say, Stall, Status, Turn
from actors.testing.offline_runtime import serve_in_thread
from actors.tools import Tool, tool
from tests.cli.command import script
from tests.runtime_support import Gate, openai, runtime_with

TARGET = "openai:gpt-5.2"
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
CALLER: ContextVar[str] = ContextVar("who", default="nobody")
REFUSED = Status(401, message="No such key.")
SECONDS = 60


def runtime_for(
    server: OpenAIServer, backend: Literal["asyncio", "trio"] = "asyncio"
) -> sync.BlockingRuntime:
    return sync.BlockingRuntime(Runtime(environ={"OPENAI_BASE_URL": server.base_url}), backend=backend)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> Any:
    """Return the event loop of the facade."""
    return request.param


@pytest.fixture(autouse=True)
def _assert_no_loop_left() -> Iterator[None]:
    yield
    assert RUNNING.count == 0


@tool
async def who() -> str:
    """Return the caller's context variable."""
    return CALLER.get()


def test_a_script_asks_and_streams_without_an_event_loop(backend: Any) -> None:
    server = openai(Turn(Call("who")), Turn(Say("You.")), Turn(Say("Once more. " * 4)), Turn(Say("Bye.")))
    with serve_in_thread(server), runtime_for(server, backend) as runtime:
        session = runtime.open(TARGET, tools=[who], id="one")
        token = CALLER.set("me")
        assert session.ask("Who am I?").text == "You."
        CALLER.reset(token)
        assert results(session) == ["me"]
        pieces = [*session.stream_text("Again?")]
        assert len(pieces) > 1
        assert "".join(pieces) == "Once more. " * 4
        assert [event.type for event in session.stream("Goodbye.")][-1] == "complete"
        kinds = [event.type for event in session.events(follow=False)]
        assert kinds.count("complete") == 3
        assert len(session.history()) == 8
        assert runtime.session("one").id == "one"
        assert runtime.stats().sessions == 1
        assert runtime.call(lambda hosted: hosted.session("one").preview(TARGET)).body
        session.close()
        assert runtime.call(stored_states) == [("one", "closed")]


async def stored_states(runtime: Runtime) -> list[tuple[str, str]]:
    return [(each.id, each.state) for each in await runtime.journal.list()]


def results(session: sync.BlockingSession) -> list[str]:
    ends = [call.completion for call in session.ledger().interactions()]
    return [
        end.content if isinstance(end.content, str) else str(end.content) for end in ends if end is not None
    ]


def test_the_sync_api_continues_a_waiting_ask_with_results_and_raises_for_a_failed_ask(backend: Any) -> None:
    server = OpenAIServer(
        [Turn(Call("look", {})), Turn(Say("Found."))], faults=dict.fromkeys((2, 3), REFUSED)
    )
    with serve_in_thread(server), runtime_for(server, backend) as runtime:
        session = runtime.open(TARGET, tools=[LOOK])
        assert session.ask("Look.").status == "awaiting"
        (call,) = session.pending
        assert session.ask(results={call.call.id: "there"}).text == "Found."
        with pytest.raises(AskFailed, match="No such key"):
            session.ask("And now?")
        assert session.ask("And now?", check=False).status == "failed"


@pytest.mark.parametrize("way", ["ask", "stream", "stream_text"])
def test_results_and_decisions_continue_an_ask_from_any_thread(way: str, backend: Any) -> None:
    paid = list[int]()

    @tool(approval="ask")
    def pay(euros: int) -> str:
        """Pay an amount."""
        paid.append(euros)
        return "paid"

    server = OpenAIServer([Turn(Call("look", {}), Call("pay", {"euros": 5})), Turn(Say("Done."))])
    with serve_in_thread(server), runtime_for(server, backend) as runtime:
        session = runtime.open(TARGET, tools=[LOOK, pay])
        session.ask("Look, then pay.")
        look, asked = session.pending
        given, allowed = {look.call.id: "there"}, {asked.call.id: ApprovalDecision("allow")}
        if way == "ask":
            text = session.ask(results=given, approvals=allowed).text
        elif way == "stream":
            *_, last = session.stream(results=given, approvals=allowed)
            assert isinstance(last, CompleteEvent)
            text = last.result.text
        else:
            text = "".join(session.stream_text(results=given, approvals=allowed))
        assert (text, paid) == ("Done.", [5])
        with pytest.raises(ConfigError, match="without a message needs results="):
            getattr(session, way)() if way != "stream" else next(session.stream())


@pytest.mark.anyio
async def test_the_sync_facade_works_in_a_thread_with_a_running_event_loop(backend: Any) -> None:
    server = openai(Turn(Say("Hi.")), Turn(Say("Hi again.")))
    await anyio.lowlevel.checkpoint()
    with serve_in_thread(server), runtime_for(server, backend) as runtime:
        session = runtime.open(TARGET)
        assert session.ask("Hello.").text == "Hi."
        assert "".join(session.stream_text("Hello.")) == "Hi again."


def interrupt() -> None:
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)


def ask(session: sync.BlockingSession) -> None:
    session.ask("Do it.")


def stream_text(session: sync.BlockingSession) -> None:
    for _ in session.stream_text("Do it."):
        pass


def stream(session: sync.BlockingSession) -> None:
    for _ in session.stream("Do it."):
        pass


@pytest.mark.parametrize("way", [ask, stream_text, stream])
def test_an_interrupt_cancels_the_ask_and_closes_its_calls(backend: Any, way: Any) -> None:
    ended = threading.Event()

    @tool
    async def work() -> str:
        """Work until the call is cancelled."""
        await anyio.sleep(0.1)  # until the caller has read the earlier events, and waits again
        interrupt()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    server = openai(Turn(Call("work")), Turn(Say("Well.")))
    with serve_in_thread(server), runtime_for(server, backend) as runtime:
        session = runtime.open(TARGET, tools=[work])
        with pytest.raises(KeyboardInterrupt):
            way(session)
        assert ended.is_set()
        assert not session.busy
        assert [call.status for call in session.ledger().interactions()] == ["cancelled"]
        assert session.ask("And now?").text == "Well."


@pytest.mark.anyio
async def test_an_interrupted_queued_ask_is_cancelled_when_it_begins() -> None:
    gate, turn = Gate(), Turn(Call("work", {"name": "a"}))
    async with runtime_with(a=openai(turn, Turn(Say("Done.")), Turn(Call("work", {"name": "b"})))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        first, second = InterruptibleAsk(session), InterruptibleAsk(session)
        results = dict[str, str]()

        async def outcome(name: str, ask: InterruptibleAsk) -> None:
            results[name] = (
                await ask.outcome(partial(session._prepare_stream, "Do it.", None, None, {}))
            ).status

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outcome, "first", first)
            await gate.started("a")
            stream = await second.submit(partial(session._prepare_stream, "Me too.", None, None, {}))
            assert (first.has_begun, second.has_begun) == (True, False)
            tasks.start_soon(second.interrupt)
            await anyio.wait_all_tasks_blocked()
            assert session.busy
            gate.open("a")
            results["second"] = (await final_result(stream)).status
    assert results == {"first": "complete", "second": "cancelled"}


def test_a_sync_runtime_rejects_calls_from_its_own_loop_but_not_from_threads(backend: Any) -> None:
    told = list[str]()

    @tool
    async def inside() -> str:
        """Ask from the loop."""
        for refused in (lambda: other.ask("?"), runtime.close, runtime.stats):
            with pytest.raises(WrongEventLoop, match="would wait for itself"):
                refused()
        return "refused"

    @tool
    def beside() -> str:
        """Ask from a thread."""
        with pytest.raises(ReentrantCall):
            session.ask("?")
        told.append("own session")
        return "refused too"

    server = openai(Turn(Call("inside"), Call("beside")), Turn(Say("Done.")))
    with serve_in_thread(server), runtime_for(server, backend) as runtime:
        other = runtime.open(TARGET)
        session = runtime.open(TARGET, tools=[inside, beside])
        assert session.ask("Do it.").text == "Done."
        assert results(session) == ["refused", "refused too"]
    assert told == ["own session"]


def test_a_sync_runtime_rejects_calls_from_functions_that_the_runtime_itself_runs() -> None:
    with sync.BlockingRuntime() as runtime:
        loop = runtime._loop

        async def inside(_runtime: Runtime) -> None:
            loop._check_caller()

        with pytest.raises(WrongEventLoop):
            runtime.call(inside)


def test_a_sync_runtime_rejects_calls_from_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with sync.BlockingRuntime() as runtime:
        with monkeypatch.context() as patch:
            patch.setattr(runtime._loop, "_process", -1)
            with pytest.raises(WrongEventLoop, match="forked"):
                runtime.stats()
        assert runtime.stats().sessions == 0


def test_sync_run_writes_no_journal(tmp_path: Path) -> None:
    server = openai(Turn(Say("Hi.")))
    path, journal = tmp_path / "actors.toml", tmp_path / "journal.db"
    path.write_text(f'[journal]\npath = "{journal}"\n')
    with serve_in_thread(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        assert sync.run(TARGET, "Hello.", config=path, environ=environ).text == "Hi."
    assert not journal.exists()


def test_asks_beyond_the_queue_limit_raise_queue_full() -> None:
    gate = threading.Event()

    @tool
    def work() -> str:
        """Work until the gate opens."""
        gate.wait(SECONDS)
        return "done"

    server = openai(Turn(Call("work")), *[Turn(Say("Done."))] * 9)
    with serve_in_thread(server), runtime_for(server) as runtime:
        session = runtime.open(TARGET, tools=[work])
        next(session.stream("Do it."))
        for _ in range(8):
            runtime.call(queue_ask)
        with pytest.raises(QueueFull):
            session.ask("Me too.")
        gate.set()


async def queue_ask(runtime: Runtime) -> None:
    """Queue one more ask."""
    (name,) = runtime.sessions
    async with runtime.sessions[name].stream("Me too."):
        pass


def test_an_error_while_a_sync_runtime_starts_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(ConfigError):
        sync.BlockingRuntime(tmp_path / "missing.toml")
    with pytest.raises(JournalError):
        sync.BlockingRuntime(Runtime(journal=tmp_path / "a file" / "journal.db"))
    with sync.BlockingRuntime() as runtime:
        pass
    with pytest.raises(KernelError, match="closed; create a new one"):
        runtime.open(TARGET)
    runtime.close()


def test_an_exception_raised_by_a_function_on_the_event_loop_reaches_its_caller() -> None:
    async def leave(_runtime: Runtime) -> None:
        raise SystemExit(3)

    server = openai(Turn(Say("Hi.")))
    with serve_in_thread(server), runtime_for(server) as runtime:
        with pytest.raises(SystemExit):
            runtime.call(leave)
        assert runtime.open(TARGET).ask("Hello.").text == "Hi."


def test_a_sync_runtime_without_references_is_closed() -> None:
    runtime: sync.BlockingRuntime | None = sync.BlockingRuntime()
    assert runtime is not None
    thread = runtime._loop._thread
    runtime = None
    thread.join(SECONDS)
    assert not thread.is_alive()


def test_a_session_keeps_its_sync_runtime_open_and_its_last_reference_closes_the_runtime() -> None:
    server = openai(Turn(Say("Hi.")))
    with serve_in_thread(server):
        session: sync.BlockingSession | None = runtime_for(server).open(TARGET)
        assert session is not None
        assert session.ask("Hello.").text == "Hi."
        thread = session._calls._loop._thread
        session = None
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_a_released_session_is_claimed_again_without_an_event_loop() -> None:
    server = openai(Turn(Say("Hello.")), Turn(Say("Bye.")))
    with serve_in_thread(server), runtime_for(server) as runtime:
        session = runtime.open(TARGET, id="one")
        assert session.ask("Hello.").text == "Hello."
        assert runtime.claim("one").history() == session.history()
        session.release()
        with pytest.raises(SessionClosed, match="was released by this host"):
            session.ask("Bye.")
        assert runtime.claim("one").ask("Bye.").text == "Bye."


def test_closing_a_sync_stream_early_stops_no_turn_and_a_with_block_releases_its_session() -> None:
    left = threading.Event()

    @tool
    def work() -> str:
        """Work until the stream has been left."""
        assert left.wait(SECONDS)
        return ""

    server = openai(Turn(Say("Hi. " * 40), Call("work")), Turn(Say("Done.")), Turn(Say("Bye.")))
    with serve_in_thread(server), runtime_for(server) as runtime:
        session = runtime.open(TARGET, id="one", tools=[work])
        text = session.stream_text("Hello.")
        assert next(text)
        text.close()
        left.set()
        assert [*text] == []
        assert session.ask("Bye.").text == "Bye."
        assert [e.result.status for e in session.events(follow=False) if e.type == "complete"] == [
            "complete"
        ] * 2
        with session:
            pass
        assert runtime.call(stored_states) == [("one", "closed")]


def test_leaving_a_with_block_releases_only_a_session_that_the_caller_has_opened() -> None:
    with serve_in_thread(server := openai(*[Turn(Say("Hi."))] * 3)), runtime_for(server) as runtime:
        session = runtime.open(TARGET, id="one")
        with runtime.session("one") as same:
            assert same.ask("Hello.").text == "Hi."
        assert session.ask("Hello?").text == "Hi."  # the session is still open
        with runtime.open(TARGET, id="one", resume=True) as other:
            for _ in range(2):
                with other:
                    pass
        assert session.ask("And now?").text == "Hi."
        with session:
            pass
        assert runtime.call(stored_states) == [("one", "closed")]


def test_an_unknown_event_loop_raises_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"^backend= takes 'asyncio' or 'trio', not 'curio'$"):
        sync.BlockingRuntime(backend="curio")  # type: ignore[arg-type]  # as a caller may


def test_closing_the_runtime_ends_waiting_calls() -> None:
    server = OpenAIServer([Turn(Say("One moment. " * 90))], faults={0: Stall(after_bytes=1500)})
    with serve_in_thread(server), runtime_for(server) as runtime:
        session = runtime.open(TARGET)
        text = session.stream_text("Talk.")
        assert next(text)
        runtime.close()
        with pytest.raises(KernelError):
            next(text)
        with pytest.raises(KernelError):
            session.ask("And now?")


AT_EXIT = '''
import faulthandler
import os
import threading
import warnings

import anyio

from actors import Runtime, sync, tool
from actors.errors import WrongEventLoop
from actors.testing import Call, OpenAIServer, Say, Turn
from actors.testing.offline_runtime import serve_in_thread

faulthandler.dump_traceback_later(60, exit=True)
started = threading.Event()


@tool
async def work() -> str:
    """Work until it is cancelled."""
    started.set()
    try:
        await anyio.sleep_forever()
    finally:
        print("cancelled at exit", flush=True)
    return ""


server = OpenAIServer([Turn(Call("work"))])
serving = serve_in_thread(server)
serving.__enter__()
runtime = sync.BlockingRuntime(Runtime(environ={"OPENAI_BASE_URL": server.base_url}))
session = runtime.open("openai:gpt-5.2", tools=[work])
next(session.stream("Do it."))
started.wait(60)
warnings.simplefilter("ignore")
if (child := os.fork()) == 0:
    try:
        session.ask("?")
    except WrongEventLoop:
        runtime.close()
        with sync.BlockingRuntime() as own:
            own.stats()
        os._exit(7)
    os._exit(1)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
'''


def test_a_program_that_ends_closes_its_runtime_but_its_forked_children_do_not(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(AT_EXIT)
    done = script(program)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["child 7", "cancelled at exit"]


def test_closing_a_sync_runtime_ends_a_call_that_would_never_return(backend: Any) -> None:
    begun, errors, wake = threading.Event(), list[KernelError](), list[Any]()
    runtime = sync.BlockingRuntime(backend=backend)

    async def wait_forever(_runtime: Runtime) -> None:
        gate, soon = anyio.Event(), event_loop().soon
        wake.append(lambda: soon(gate.set))
        begun.set()
        await gate.wait()

    def call() -> None:
        with pytest.raises(KernelError, match="closed; create a new one") as raised:
            runtime.call(wait_forever)
        errors.append(raised.value)

    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    try:
        assert begun.wait(SECONDS)
        runtime.close()
        caller.join(SECONDS)
        assert len(errors) == 1
    finally:
        with suppress(RuntimeError):  # the loop has ended
            wake[0]()


class SlowExit:
    """An async context manager whose exit waits for `end`."""

    async def __aenter__(self) -> None:
        self._gate, self._soon = anyio.Event(), event_loop().soon

    async def __aexit__(self, *_: object) -> None:
        await self._gate.wait()

    def end(self) -> None:
        """Let the exit return."""
        self._soon(self._gate.set)


def test_closing_a_loop_thread_reports_a_context_that_does_not_exit_in_time(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted = SlowExit()
    loop = loop_thread.LoopThread(hosted, backend, "thing")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(loop_thread, "CLOSE_TIMEOUT", 0.0)
            with pytest.raises(KernelError, match="This thing has not closed within 0 s"):
                loop.close()
    finally:
        hosted.end()
    loop.close()


BEYOND_MAIN = """
import faulthandler
import threading

import anyio

from actors import sync
from actors.errors import KernelError

faulthandler.dump_traceback_later(60, exit=True)
runtime = sync.BlockingRuntime()
watch = next(each for each in threading.enumerate() if each.name == "actors sync exit")
begun = threading.Event()


async def wait_forever(_runtime):
    begun.set()
    await anyio.sleep_forever()


def call():
    try:
        runtime.call(wait_forever)
    except KernelError:
        pass



def make_another():
    watch.join(30)
    try:
        sync.BlockingRuntime()
    except KernelError as error:
        print(error, flush=True)


threading.Thread(target=call, daemon=True).start()
begun.wait(30)
threading.Thread(target=make_another).start()
"""


def test_a_program_that_ends_during_a_sync_call_cannot_create_a_new_runtime(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BEYOND_MAIN)
    done = script(program)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("The program's main thread has ended")


def test_an_exit_watcher_that_fails_to_start_is_started_for_the_next_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, watchers = threading.Thread.start, list[threading.Thread]()

    def refuse(thread: threading.Thread) -> None:
        if thread.name != "actors sync exit":
            start(thread)
            return
        watchers.append(thread)
        if len(watchers) == 1:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(loop_thread, "RUNNING", loop_thread.RunningLoops())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        loop_thread.LoopThread(nullcontext())
    for _ in range(2):
        loop_thread.LoopThread(nullcontext()).close()
    assert len(watchers) == 2


def test_sync_run_asks_one_question_and_leaves_nothing_behind() -> None:
    server = openai(Turn(Call("who")), Turn(Say("You.")))
    with serve_in_thread(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        assert sync.run(TARGET, "Who am I?", tools=[who], environ=environ).text == "You."
        with pytest.raises(ConfigError):
            sync.run("nobody:nothing", "Who am I?", environ=environ)


@pytest.mark.parametrize(
    ("owner", "blocking", "names"),
    [
        (actors.Runtime, sync.BlockingRuntime, ("open", "resume", "claim")),
        (actors.Session, sync.BlockingSession, ("switch", "cancel", "close")),
    ],
)
def test_a_blocking_method_has_the_summary_of_its_async_method_and_refers_to_it(
    owner: type, blocking: type, names: tuple[str, ...]
) -> None:
    for name in names:
        summary, _, reference = getattr(blocking, name).__doc__.partition("\n\n")
        assert summary == getattr(owner, name).__doc__.partition("\n")[0]
        assert f"`actors.{owner.__name__}.{name}`" in reference


def test_sync_run_passes_every_parameter_to_the_async_run(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = signature(actors.run).parameters
    assert signature(sync.run).parameters == parameters
    given: dict[str, Any] = {name: object() for name in parameters if name != "settings"}
    passed: dict[str, Any] = {}

    async def record(target: object, message: object, **options: object) -> None:
        passed.update(options, target=target, message=message)

    monkeypatch.setattr(once, "run", record)
    sync.run(**given, temperature=0.5)
    assert passed == {**given, "temperature": 0.5}


def test_an_interrupt_cancels_a_sync_run() -> None:
    ended = threading.Event()

    @tool
    async def work() -> str:
        """Work until the call is cancelled."""
        await anyio.sleep(0.1)  # until the caller has read the earlier events, and waits again
        interrupt()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    server = openai(Turn(Call("work")))
    with serve_in_thread(server):
        with pytest.raises(KeyboardInterrupt):
            sync.run(TARGET, "Do it.", tools=[work], environ={"OPENAI_BASE_URL": server.base_url})
        assert ended.is_set()


@pytest.mark.anyio
async def test_async_run_asks_one_question_with_tools_and_settings() -> None:
    server = OpenAIServer([Turn(Call("who")), Turn(Say('{"n": 3}'))], faults={2: REFUSED})
    async with actors.testing.serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        CALLER.set("me")
        result = await actors.run(
            TARGET,
            "How many?",
            tools=[who],
            system="Count.",
            output=dict[str, int],
            max_rounds=4,
            environ=environ,
        )
        assert result.output == {"n": 3}
        with pytest.raises(AskFailed, match="No such key"):
            await actors.run(TARGET, "And now?", environ=environ)
    assert "me" in str(server.requests[1])


@pytest.mark.anyio
async def test_a_cancelled_run_cancels_its_ask() -> None:
    started, ended = anyio.Event(), anyio.Event()

    @tool
    async def work() -> str:
        """Work until the call is cancelled."""
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    server = openai(Turn(Call("work")))
    with anyio.fail_after(SECONDS):
        async with actors.testing.serve(server), anyio.create_task_group() as tasks:

            async def run() -> None:
                await actors.run(TARGET, "Do it.", tools=[work], environ={"OPENAI_BASE_URL": server.base_url})

            tasks.start_soon(run)
            await started.wait()
            tasks.cancel_scope.cancel()
    assert ended.is_set()
