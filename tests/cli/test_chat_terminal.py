"""`actors chat` on a pseudo-terminal: signals, a closed window, questions, commands during a turn."""

import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from hypothesis import settings

from actors import Runtime, tool
from actors.cli.conversation import QUESTION
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicServer,
    Call,
    InjectedFault,
    OpenAIServer,
    Say,
    Script,
    Stall,
    Status,
    Think,
    Turn,
    serve,
)
from tests.cli.terminal import SECONDS, Terminal, run_terminal

pytestmark = pytest.mark.anyio

TOOLS = '''
import sys
from pathlib import Path
import anyio
from actors import Tool, tool

@tool
async def wait() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()

@tool
async def stay() -> str:
    """Wait for ever, and do not let it be stopped."""
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()

@tool(approval="ask")
async def book(hotel: str) -> str:
    """Book a hotel."""
    print("a tool may print")
    return f"{hotel}: booked"

@tool
async def mutter() -> str:
    """Print half a line, and wait for ever."""
    print("half a line", end="")
    print("half a line", end="", file=sys.stderr)
    Path(__file__).with_name("muttered").write_bytes(b"")
    await anyio.sleep_forever()

look = Tool.external("look", "Look it up, elsewhere.", {"type": "object"}, read_only=True)
'''
READY = "leaves.\n>"
CANCELLED = "cancelled; every call is closed"


@dataclass
class Scene:
    """A server, and an event that is set when a request meets a fault."""

    server: LoopbackServer
    asked: anyio.Event = field(default_factory=anyio.Event)


def _scene(*turns: Turn, fault: InjectedFault | None = None, kind: type = OpenAIServer) -> Scene:
    scene = Scene(kind(list(turns)))

    def meets(number: int, _: object) -> InjectedFault | None:
        scene.asked.set()
        return fault if number == 0 else None

    if fault is not None:
        scene.server.faults = meets
    return scene


@asynccontextmanager
async def _chat(
    scene: Scene, tmp_path: Path, *options: str, before: str = "", term: str = "xterm-256color"
) -> AsyncIterator[Terminal]:
    """Serve a scene, and run a chat with it."""
    async with serve(scene.server), _chatting(scene, tmp_path, *options, before=before, term=term) as chat:
        yield chat


@asynccontextmanager
async def _chatting(
    scene: Scene,
    tmp_path: Path,
    *options: str,
    before: str = "",
    term: str = "xterm-256color",
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Terminal]:
    """Run a chat with the backends `a` and `b`, both of which are the scene's running server."""
    (tmp_path / "tools.py").write_text(TOOLS)
    kind = "anthropic" if scene.server.dialect == "anthropic" else "openai"
    table = f'kind = "{kind}"\nmodel = "m"\nbase_url = "{scene.server.endpoint}"\n'
    key = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", **(env or {})}
    (tmp_path / "actors.toml").write_text(f"[backends.a]\n{table}[backends.b]\n{table}")
    line = ("chat", "--config", str(tmp_path / "actors.toml"), "--tools", str(tmp_path / "tools.py"))
    target = () if "--continue" in options else ("-m", "a")
    async with run_terminal(*line, *target, *options, env=key, before=before, term=term) as chat:
        yield chat


async def _ready(chat: Terminal, _: Scene) -> None:
    await chat.until(READY)


async def _typing(chat: Terminal, scene: Scene) -> None:
    await _ready(chat, scene)
    chat.type("hel")
    await chat.until("> hel")


async def _until_sent_text(chat: Terminal, scene: Scene) -> None:
    await _ready(chat, scene)
    chat.type("hello\r")
    await chat.until("> hello")


async def _until_answered(chat: Terminal, scene: Scene) -> None:
    await _until_sent_text(chat, scene)
    with anyio.fail_after(SECONDS):
        await scene.asked.wait()


def _until(words: str) -> Callable[[Terminal, Scene], Awaitable[None]]:
    async def wait(chat: Terminal, scene: Scene) -> None:
        await _until_sent_text(chat, scene)
        await chat.until(words)

    return wait


async def _until_deferred(chat: Terminal, scene: Scene) -> None:
    await _until("calls wait()")(chat, scene)
    chat.type("/switch b\r")
    await chat.until("deferred: switching to b after turn 1")


async def _stop_resolver(chat: Terminal, scene: Scene) -> None:
    await _until("calls stay()")(chat, scene)
    chat.type("/quit\r")
    await chat.until("cancelling the turn")


PHASES: dict[str, tuple[Callable[[], Scene], Callable[[Terminal, Scene], Awaitable[None]]]] = {
    "at the prompt": (_scene, _ready),
    "while typing": (_scene, _typing),
    "request sent": (lambda: _scene(Turn(Say("late")), fault=Stall()), _until_answered),
    "during a text": (lambda: _scene(Turn(Say("word " * 2000)), fault=Stall(5000)), _until("word word")),
    "during thinking": (
        lambda: _scene(Turn(Think("hm " * 2000), Say("x")), fault=Stall(5000), kind=AnthropicServer),
        _until("thinking: hm hm"),
    ),
    "tool running": (lambda: _scene(Turn(Call("wait", {}))), _until("calls wait()")),
    "approval requested": (lambda: _scene(Turn(Call("book", {"hotel": "Astoria"}))), _until("Run it?")),
    "switch deferred": (lambda: _scene(Turn(Call("wait", {}))), _until_deferred),
    "after an error": (lambda: _scene(Turn(), fault=Status(401)), _until("gave no answer")),
    "while leaving": (lambda: _scene(Turn(Call("stay", {}))), _stop_resolver),
}
IDLE = ("at the prompt", "while typing", "after an error")


def each_phase(way: int) -> pytest.MarkDecorator:
    """Return every phase, alternating backends between the ways to end; on both in `thorough`."""
    both = [(phase, backend) for phase in PHASES for backend in ("asyncio", "trio")]
    is_thorough = settings.get_current_profile_name() == "thorough"
    some = [(phase, ("asyncio", "trio")[(way + number) % 2]) for number, phase in enumerate(PHASES)]
    return pytest.mark.parametrize(("phase", "anyio_backend"), both if is_thorough else some)


@each_phase(0)
async def test_ctrl_c_cancels_the_turn_and_then_ends_the_chat(
    phase: str, tmp_path: Path, anyio_backend_name: str
) -> None:
    make, reach = PHASES[phase]
    scene = make()
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await reach(chat, scene)
        chat.type("\x03")
        if phase not in (*IDLE, "while leaving"):
            await chat.until(CANCELLED)
            chat.type("\x03")
        assert await chat.wait_for_end() == 130


@each_phase(1)
async def test_sigterm_ends_the_chat(phase: str, tmp_path: Path, anyio_backend_name: str) -> None:
    make, reach = PHASES[phase]
    scene = make()
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await reach(chat, scene)
        chat.signal(signal.SIGTERM)
        assert await chat.wait_for_end() == 143


@each_phase(2)
async def test_closing_the_terminal_window_ends_the_chat(
    phase: str, tmp_path: Path, anyio_backend_name: str
) -> None:
    make, reach = PHASES[phase]
    scene = make()
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await reach(chat, scene)
        chat.close()
        assert await chat.wait_for_end() == 129


@each_phase(3)
async def test_a_killed_chat_can_be_continued(phase: str, tmp_path: Path, anyio_backend_name: str) -> None:
    make, reach = PHASES[phase]
    scene, was_asked = make(), phase not in ("at the prompt", "while typing")
    why = "Incorrect API key" if phase == "after an error" else "the session was restarted during the ask"
    options = ("--backend", anyio_backend_name, "--journal", str(tmp_path / "kept.db"))
    async with serve(scene.server):
        async with _chatting(scene, tmp_path, *options) as chat:
            await reach(chat, scene)
            chat.signal(signal.SIGKILL)
            assert await chat.wait_for_end() == 128 + signal.SIGKILL
        scene.server.script, scene.server.faults = Script(default=Turn(Say("Good again."))), {}
        async with _chatting(scene, tmp_path, *options, "--continue") as chat:
            await _ready(chat, scene)
            assert (f"  the last turn: a:m gave no answer: {why}" in chat.screen_text) == was_asked
            chat.type("and now?\r")
            await chat.until("Good again.")
            chat.type("\x04")
            assert await chat.wait_for_end() == 0
        assert scene.server.refusals == []
    last = scene.server.requests[-1].body
    assert (b"hello" in last, b"and now?" in last) == (was_asked, True)


async def test_a_continued_chat_asks_the_unanswered_question_again(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Call("look", {"n": 1}), Call("look", {"n": 2})), Turn(Say("Both known.")))
    options = ("--backend", anyio_backend_name, "--journal", str(tmp_path / "kept.db"))
    async with serve(scene.server):
        async with _chatting(scene, tmp_path, *options) as chat:
            await _until("needs an external result: look(n=1)")(chat, scene)
            chat.type('"one"\r')
            await chat.until("needs an external result: look(n=2)")
            chat.signal(signal.SIGKILL)
            assert await chat.wait_for_end() == 128 + signal.SIGKILL
        async with _chatting(scene, tmp_path, *options, "--continue") as chat:
            await chat.until("needs an external result: look(n=2)")
            await chat.until("Its result (text or JSON)?")
            assert "look(n=1)" not in chat.screen_text
            chat.type('"two"\r')
            await chat.until("Both known.")
            chat.type("and now?\r")
            await chat.until("\nok")
            chat.type("\x04")
            assert await chat.wait_for_end() == 0
        assert scene.server.refusals == []
    sent = json.loads(scene.server.requests[-1].body)["messages"]
    assert [each["content"] for each in sent if each["role"] == "tool"] == ["one", "two"]


@pytest.mark.parametrize("answer", ["y", "n", "ctrl-c"])
async def test_a_chat_asks_for_an_approval_that_a_program_left_open(
    answer: str, tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Call("book", {"hotel": "Astoria"})), Turn(Say("So be it.")))
    (tmp_path / "tools.py").write_text(TOOLS)
    options = ("--backend", anyio_backend_name, "--journal", str(tmp_path / "kept.db"))
    async with serve(scene.server):
        environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": scene.server.base_url}
        async with Runtime(environ=environ, journal=tmp_path / "kept.db") as runtime:
            session = await runtime.open("openai:m", tools=[book])
            assert (await session.ask("hello")).status == "awaiting"
        async with _chatting(scene, tmp_path, *options, "--continue", "-m", "a", env=environ) as chat:
            await chat.until("needs approval: book(hotel='Astoria')")
            await chat.until(QUESTION)
            chat.type("\x03" if answer == "ctrl-c" else f"{answer}\r")
            await chat.until(CANCELLED if answer == "ctrl-c" else "So be it.")
            assert ("a tool may print" in chat.screen_text) == (answer == "y")
            chat.type("\x04")
            assert await chat.wait_for_end() == 0
    assert scene.server.refusals == []


@tool(approval="ask")
def book(hotel: str) -> str:
    """Book a hotel."""
    raise AssertionError(hotel)


DETACHED = """
import fcntl, signal, termios
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
"""Detaches the terminal, so that no signal reports its end."""


@pytest.mark.parametrize("before", ["pass", DETACHED], ids=["signalled", "detached"])
@pytest.mark.parametrize("is_asked", [True, False], ids=["asked", "idle"])
async def test_unwritable_output_does_not_change_the_exit_code(
    is_asked: bool, before: str, tmp_path: Path, anyio_backend_name: str
) -> None:
    """The buffer contains an unfinished line of a tool, and the end of the turn cannot be written."""
    scene = _scene(Turn(Call("mutter", {})))
    os.mkfifo(tmp_path / "muttered")
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name, before=before) as chat:
        await chat.until("leaves.\n")
        if is_asked:
            chat.type("hello\r")
            await _until_printed(tmp_path)
        chat.close()
        assert await chat.wait_for_end() == 129


async def test_closing_the_terminal_window_ends_a_run_with_exit_code_129(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Say("One moment."), Call("mutter", {})))
    async with serve(scene.server):
        (tmp_path / "tools.py").write_text(TOOLS)
        os.mkfifo(tmp_path / "muttered")
        line = ("run", "-m", "m", "--base-url", scene.server.endpoint, "--tools", str(tmp_path / "tools.py"))
        async with run_terminal(*line, "--backend", anyio_backend_name, "hello", before="pass") as run:
            await _until_printed(tmp_path)
            run.close()
            assert await run.wait_for_end() == 129


async def _until_printed(tmp_path: Path) -> None:
    """Wait until the tool has printed: it creates the file then."""
    with anyio.fail_after(SECONDS):
        await anyio.to_thread.run_sync((tmp_path / "muttered").read_bytes, abandon_on_cancel=True)


async def test_the_signal_sighup_alone_ends_the_chat(tmp_path: Path) -> None:
    scene = _scene()
    async with _chat(scene, tmp_path) as chat:
        await _ready(chat, scene)
        chat.signal(signal.SIGHUP)
        assert await chat.wait_for_end() == 129


CRASH = """
import actors.cli.chat.view as view
def event(self, event):
    raise ZeroDivisionError("in mid-turn")
view.ChatView.show_event = event
"""


async def test_a_crash_is_reported_in_one_line(tmp_path: Path, anyio_backend_name: str) -> None:
    scene = _scene(Turn(Say("ok")))
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name, before=CRASH) as chat:
        await _ready(chat, scene)
        chat.type("hello\r")
        assert await chat.wait_for_end() == 1
        assert (
            "actors: unexpected ZeroDivisionError: in mid-turn; --debug shows the traceback"
            in chat.screen_text
        )


async def test_the_conversation_continues_after_a_cancelled_turn(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Call("wait", {})), Turn(Say("Good again.")))
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await _until("calls wait()")(chat, scene)
        chat.type("\x03")
        await chat.until(CANCELLED)
        chat.type("and now?\r")
        await chat.until("Good again.")
        chat.type("/ledger\r")
        await chat.until("hist_tool_1")
        assert "wait() cancelled after" in chat.screen_text
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
    assert scene.server.refusals == []
    assert len(scene.server.requests) == 2


def _has_queued(chat: Terminal, number: int) -> Callable[[], bool]:
    return lambda: chat.screen_text.count("queued until this turn ends") == number


async def test_queued_input_lines_are_sent_after_a_cancelled_turn(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Call("wait", {})), Turn(Say("First kept.")), Turn(Say("Second kept.")))
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await _until("calls wait()")(chat, scene)
        for number, line in enumerate(("one", "two"), 1):
            chat.type(f"{line}\r")
            await chat.until(_has_queued(chat, number))
        chat.type("\x03")
        await chat.until("Second kept.")
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
    asked = [json.loads(request.body)["messages"][-1]["content"] for request in scene.server.requests]
    assert asked[1:] == ["one", "two"]


async def test_an_approval_and_a_deferred_switch_can_occur_in_one_turn(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Call("book", {"hotel": "Astoria"})), Turn(Say("Booked.")))
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await _until("needs approval: book(hotel='Astoria')")(chat, scene)
        chat.type("/switch b\r")
        await chat.until("deferred: switching to b after turn 1")
        chat.type("y\r")
        await chat.until("switched to b")
        chat.type("/backends\r")
        await chat.until("current")
        assert "book(hotel='Astoria') returned after" in chat.screen_text
        assert "a tool may print" in chat.screen_text
        assert "Booked." in chat.screen_text
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
    assert b"Astoria: booked" in scene.server.requests[-1].body


async def test_external_results_are_requested_one_after_the_other(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Call("look", {"n": 1}), Call("look", {"n": 2})), Turn(Say("Both known.")))
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await _until("needs an external result: look(n=1)")(chat, scene)
        chat.type('{"celsius": 21}\r')
        await chat.until("needs an external result: look(n=2)")
        chat.type("/switch b\r")
        await chat.until("deferred: switching to b after turn 1")
        chat.type("it is dry\r")
        await chat.until("switched to b")
        assert "look(n=1) returned after" in chat.screen_text
        assert "Both known." in chat.screen_text
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
    sent = json.loads(scene.server.requests[-1].body)["messages"]
    assert [each["content"] for each in sent if each["role"] == "tool"] == ['{"celsius":21}', "it is dry"]


async def test_a_turn_that_waits_for_a_result_can_be_cancelled(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    scene = _scene(Turn(Call("look", {"n": 1})), Turn(Say("Good again.")))
    async with _chat(scene, tmp_path, "--backend", anyio_backend_name) as chat:
        await _until("Its result")(chat, scene)
        chat.type("\x03")
        await chat.until(CANCELLED)
        assert "look(n=1) cancelled after" in chat.screen_text
        chat.type("and now?\r")
        await chat.until("Good again.")
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
    assert scene.server.refusals == []


async def test_a_message_may_have_more_than_one_line(tmp_path: Path) -> None:
    scene = _scene(Turn(Say("ok")))
    async with _chat(scene, tmp_path) as chat:
        await _ready(chat, scene)
        chat.type("one\\\r")
        await chat.until("\n...")
        chat.type("two\\\rthree\r")  # typed ahead: no prompt for the third line
        await chat.until("\nok")
    assert rb"one\ntwo\nthree" in scene.server.requests[0].body


@pytest.mark.parametrize(("options", "env"), [([], {"NO_COLOR": "1"}), (["--color", "never"], {})])
async def test_a_chat_only_appends_lines_to_the_terminal(
    options: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    scene = _scene(Turn(Say("One.\nTwo."), Call("book", {"hotel": "Astoria"})), Turn(Say("Booked.")))
    async with serve(scene.server), _chatting(scene, tmp_path, *options, env=env) as chat:
        await chat.until(READY)
        chat.type("hello\n")
        await chat.until("Run it?")
        chat.type("y\n")
        await chat.until("Booked.\n>")
        assert "> hello\nOne.\nTwo.\n  calls book(hotel='Astoria')\n  needs approval: " in chat.screen_text
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
        assert b"\x1b" not in chat.written
        assert b"\x08" not in chat.written


async def test_the_notes_of_a_chat_are_coloured_on_a_terminal(tmp_path: Path) -> None:
    scene = _scene(Turn(Say("Hello.")))
    async with _chat(scene, tmp_path) as chat:
        await _until_sent_text(chat, scene)
        await chat.until("Hello.\n>")
        assert b"\x1b[2ma. /help" in chat.written
