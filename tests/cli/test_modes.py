"""Every mode of the command line runs one scripted turn of five calls to the same log.

The comparison covers the session's complete log (the batches, the filtered calls, and the completion of each call), the
resulting history and ledger, and the bytes of every request.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from itertools import groupby
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from actors import Runtime, subagent
from actors.cli.targets import load_tools
from actors.config import load
from actors.core.log.call_events import Denied, Failed, Refused, Returned, Scheduled
from actors.core.log.events import Closed, LogEvent, Opened
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import SECONDS, actors
from tests.cli.terminal import run_terminal
from tests.journal.file_storage import FileStorage

pytestmark = pytest.mark.anyio

TOOLS = '''
from actors import tool

@tool
async def price(hotel: str) -> str:
    """Price of a night."""
    if hotel == "Dante":
        raise LookupError("no such hotel")
    return f"{hotel}: 120"

@tool(approval="deny")
async def book(hotel: str) -> str:
    """Book a hotel."""
    return f"{hotel}: booked"
'''
FIVE = Turn(
    Say("Let me see."),
    Call("price", {"hotel": "Astoria"}),
    Call("price", raw='{"hot'),
    Call("book", {"hotel": "Astoria"}),
    Call("price", {"hotel": "Dante"}),
    Call("spa", {"hotel": "Astoria"}),
    ids="restart",
)
WORDS = "Price and book the hotels."
LAST = "It costs 120."
NAME = "parity"

RECORDING = """
from pathlib import Path
import actors.cli.conversation as conversation
from tests.journal.file_storage import FileStorage
conversation.conversation_storage = lambda options, config, create: FileStorage(Path({log!r}))
"""
"""Makes a command store its sessions' logs in a file."""


def _says(request: Mapping[str, object]) -> Turn:
    messages = request["messages"]
    assert isinstance(messages, list)
    return Turn(Say(LAST)) if messages[-1]["role"] == "tool" else FIVE


def _line(folder: Path, command_name: str, *more: str) -> list[str]:
    config, file = str(folder / "actors.toml"), str(folder / "tools.py")
    return [
        command_name,
        "--config",
        config,
        "-m",
        "a",
        "--tools",
        file,
        "--system",
        "Be brief.",
        "--id",
        NAME,
        *more,
    ]


async def _run_embedded(folder: Path, log: Path, backend: str) -> str:
    offered = load_tools(str(folder / "tools.py"))
    async with Runtime(load(folder / "actors.toml", {}), journal=FileStorage(log)) as runtime:
        session = await runtime.open("a", tools=offered, system="Be brief.", id=NAME)
        return (await session.ask(WORDS)).text


async def _run_one_shot(folder: Path, log: Path, backend: str) -> str:
    return await _process(_line(folder, "run", WORDS, "--backend", backend), log, "")


async def _run_piped(folder: Path, log: Path, backend: str) -> str:
    return await _process(_line(folder, "chat", "--backend", backend), log, f"{WORDS}\n")


async def _process(arguments: list[str], log: Path, given: str) -> str:
    done = await actors(*arguments, stdin=given, before=RECORDING.format(log=str(log)))
    assert done.code == 0, done.err
    return done.out.splitlines()[-1]


async def _run_interactive(folder: Path, log: Path, backend: str) -> str:
    before = RECORDING.format(log=str(log))
    async with run_terminal(*_line(folder, "chat", "--backend", backend), before=before) as chat:
        await chat.until("leaves.\n>")
        chat.type(f"{WORDS}\r")
        await chat.until(f"{LAST}\n>")
        chat.type("\x04")
        assert await chat.wait_for_end() == 0
        return next(line for line in reversed(chat.screen_text.splitlines()) if line == LAST)


async def _run_subagent(folder: Path, log: Path, backend: str) -> str:
    """Let a session of another backend pass the words to a subagent with the same tools and system prompt."""
    made = subagent("ask", "Ask.", target="a", system="Be brief.", tools=load_tools(str(folder / "tools.py")))
    above = OpenAIServer([Turn(Call("ask", {"task": WORDS})), Turn(Say("Done."))])
    async with serve(above):
        written = (folder / "actors.toml").read_text()
        other = f'[backends.above]\nkind = "openai_compatible"\nmodel = "m"\nbase_url = "{above.base_url}"\n'
        (folder / "both.toml").write_text(written + other)
        async with Runtime(load(folder / "both.toml", {}), journal=FileStorage(log)) as runtime:
            session = await runtime.open("above", tools=[made], id="above")
            await session.ask("Go.")
            (known,) = (await session.ledger()).interactions()
    assert known.completion is not None
    return str(known.completion.content)


Mode = Callable[[Path, Path, str], Awaitable[str]]
MODES: dict[str, Mode] = {
    "embedded": _run_embedded,
    "one-shot": _run_one_shot,
    "interactive": _run_interactive,
    "interactive from a pipe": _run_piped,
    "subagent": _run_subagent,
}
NAMES = {"subagent": "above-c1"}
"""The session ids that differ from the usual one."""


@pytest.mark.requirement("REQ-915-045", "REQ-915-029", "REQ-915-030", "REQ-915-032")
async def test_one_turn_logs_the_same_events_in_every_mode(tmp_path: Path, anyio_backend_name: str) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    logs: dict[str, list[LogEvent]] = {}
    bodies: dict[str, list[bytes]] = {}
    server = OpenAIServer(_says)
    with anyio.fail_after(SECONDS):
        async with serve(server):
            url = f'base_url = "{server.base_url}"'
            (tmp_path / "actors.toml").write_text(
                f'[backends.a]\nkind = "openai_compatible"\nmodel = "m"\n{url}\n'
            )
            for name, mode in MODES.items():
                log, before = tmp_path / f"{name}.log", len(server.requests)
                assert await mode(tmp_path, log, anyio_backend_name) == LAST, name
                logs[name] = [*FileStorage(log).read(NAMES.get(name, NAME))]
                bodies[name] = [exchange.body for exchange in server.requests[before:]]
    assert server.refusals == []
    embedded = logs["embedded"]
    assert [type(event) for event in embedded if isinstance(event, Scheduled)] == [Scheduled] * 5
    ends = [type(event) for event in embedded if isinstance(event, Returned | Refused | Denied | Failed)]
    assert sorted(end.__name__ for end in ends) == ["Denied", "Failed", "Refused", "Refused", "Returned"]
    fed_back = json.loads(bodies["embedded"][-1])["messages"][-5:]
    assert [(each["role"], "tool_calls" in each) for each in fed_back] == [("tool", False)] * 5
    for name in MODES:
        assert bodies[name] == bodies["embedded"], name
        assert _comparable(logs[name]) == _comparable(embedded), name


def _comparable(log: list[LogEvent]) -> list[LogEvent]:
    """Return a log without its session's own values: its id, its cache key, its owner, the form of its end, and the
    order in which concurrent calls ended.
    """
    kept: list[LogEvent] = []
    for did_end, events in groupby(log, lambda event: isinstance(event, Returned | Failed)):
        alike = list(events)
        kept += sorted(alike, key=lambda event: getattr(event, "call_id", "")) if did_end else alike
    opened, *others = (event for event in kept if not isinstance(event, Closed))
    assert isinstance(opened, Opened)
    return [replace(opened, key="", session="", parent_key=""), *others]
