"""Invalid arguments of a program are rejected with a short error, before anything changes."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors import Budget, Message, Price, Runtime, Thinking, ToolResult
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import (
    ConfigError,
    DecisionRefused,
    InvalidIdentifier,
    NotAwaited,
    SessionError,
    ToolDefinitionError,
    TranscriptError,
    UnknownSeq,
)
from actors.events import ApprovalDecision
from actors.hosts import error_response
from actors.journal.storage import Storage
from actors.journal.storage.memory import MemoryStorage
from actors.journal.storage.sqlite import SqliteStorage
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
ONE = CallId("hist_tool_1")


@tool(approval="ask")
async def pay(euros: int) -> str:
    """Pay an amount."""
    return f"{euros} paid"


@pytest.mark.parametrize("argument", ["results", "approvals"])
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "are empty"),
        ([(ONE, 1)], "a value of type list was passed"),
        ({1: "x", "a": "y"}, "a key of the mapping is not a string"),
    ],
    ids=["empty", "list", "keys"],
)
async def test_results_that_are_not_a_mapping_by_call_id_are_rejected(
    argument: str, given: Any, says: str
) -> None:  # Any: any value that a caller may pass
    server = openai(Turn(Call("look", {})), Turn(Say("Found.")))
    wrong: dict[str, Any] = {argument: given}  # Any: as above
    async with scripted(server, tools=[LOOK]) as (_, runtime, session):
        for _ in range(5):  # more calls than the crashes that would end a session
            with pytest.raises(NotAwaited, match=says):
                await session.ask(**wrong)
        assert (await session.ask("Look.")).status == "awaiting"
        before = len(log(runtime, session))
        for _ in range(5):
            with pytest.raises(NotAwaited, match=says):
                await session.ask(**wrong)
        assert len(log(runtime, session)) == before
        assert (await session.ask(results={ONE: "it"})).text == "Found."


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "without a message needs results="),
        ({"message": None}, "without a message needs results="),
        ({"message": "And?", "results": {ONE: "it"}}, "with a message allows no results="),
        ({"message": "And?", "approvals": {}}, "with a message allows no results="),
        (
            {"results": {ONE: "it"}, "temperature": 1.0, "output": str},
            "temperature=, output= cannot be combined",
        ),
        ({"results": {ONE: "it"}, "approvals": {ONE: ApprovalDecision("deny")}}, "pass only one of them"),
    ],
    ids=["nothing", "none", "both", "both-empty", "settings", "twice"],
)
async def test_an_ask_takes_either_a_message_or_results_and_approvals(given: Any, says: str) -> None:
    server = openai(Turn(Call("look", {})), Turn(Say("Found.")))  # Any: any value that a caller may pass
    async with scripted(server, tools=[LOOK]) as (_, runtime, session):
        await session.ask("Look.")
        before = len(log(runtime, session))
        with anyio.fail_after(10), pytest.raises(ConfigError, match=says):  # a queued ask would wait
            await session.ask(**given)
        with pytest.raises(ConfigError, match=says):
            async with session.stream(**given):
                pass
        if "output" not in given:
            with pytest.raises(ConfigError, match=says):
                session.stream_text(**given)
        assert len(log(runtime, session)) == before
        assert (await session.ask(results={ONE: "it"})).text == "Found."


async def test_a_decision_of_the_wrong_type_is_rejected_by_call_id() -> None:
    server = openai(Turn(Call("pay", {"euros": 5})), Turn(Say("Done.")))
    async with scripted(server, tools=[pay]) as (_, _, session):
        await session.ask("Pay.")
        with pytest.raises(DecisionRefused) as refused:
            await session.ask(approvals={ONE: "allow"})  # type: ignore[arg-type]
        assert (
            str(refused.value)
            == "approvals= must contain an ApprovalDecision for call 'hist_tool_1', not str"
        )
        assert (await session.ask(approvals={ONE: ApprovalDecision("allow")})).status == "complete"


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"reason": None}, "reason= of the decision for call 'hist_tool_1' must be a string, not NoneType"),
        ({"reason": 7}, "reason= of the decision for call 'hist_tool_1' must be a string, not int"),
        ({"arguments": "7"}, "arguments= of the decision for call 'hist_tool_1' must be a mapping, not str"),
    ],
    ids=["none", "number", "text"],
)
async def test_an_unstorable_decision_is_rejected_and_the_call_still_waits(
    verdict: Any, wrong: Any, says: str
) -> None:  # Any: any value that a caller may pass
    server = openai(Turn(Call("pay", {"euros": 5})), Turn(Say("Done.")))
    async with scripted(server, tools=[pay]) as (_, runtime, session):
        await session.ask("Pay.")
        with pytest.raises(DecisionRefused) as refused:
            await session.ask(approvals={ONE: ApprovalDecision(verdict, **wrong)})
        assert str(refused.value) == says
        assert [each.call.id for each in session.pending] == [ONE]
        assert (
            await session.ask(approvals={ONE: ApprovalDecision(verdict, reason="so it is")})
        ).status == "complete"
        assert log(runtime, session)  # every record can be decoded


@pytest.mark.parametrize(
    "block",
    [ToolCall("x", "look", {}), ToolResult("x", "y"), Thinking("z")],
    ids=["call", "result", "thinking"],
)
async def test_a_user_message_cannot_contain_calls_results_or_thinking(block: Any) -> None:  # Any: a block
    async with scripted("openai_chat", Turn(Say("Hi.")), tools=[LOOK]) as (_, runtime, session):
        before = len(log(runtime, session))
        with pytest.raises(
            SessionError,
            match=f"Part 0 of the message must be a string, Text or Media, not {type(block).__name__}",
        ):
            await session.ask(Message("user", (block,)))
        assert len(log(runtime, session)) == before
        assert (await session.ask("Hello.")).text == "Hi."


def _look() -> str:
    return "it"


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (_look, "tools= takes a list, such as [_look], not a single function"),
        (LOOK, "tools= takes a list, such as [look], not a single Tool"),
        ("files", "tools= takes a list, such as ['files'], not a single str"),
        ({"look": _look}, "tools= takes a list, such as [tool], not a single dict"),
        (None, "tools= takes a list, such as [tool], not a single NoneType"),
        ([None], "tools= contains a value of type NoneType; pass functions"),
        ([{"type": "function"}], "tools= contains a value of type dict; pass functions"),
    ],
    ids=["function", "tool", "text", "mapping", "none", "listed none", "listed mapping"],
)
async def test_the_argument_named_tools_must_be_a_list_of_tools(
    tools: Any, says: str
) -> None:  # Any: as above
    async with runtime_with(a=openai()) as runtime:
        session = await runtime.open("a", tools=[LOOK])
        for use in (partial(runtime.open, "a"), session.configure):
            with pytest.raises(ToolDefinitionError) as refused:
                await use(tools=tools)
            assert str(refused.value).startswith(says)
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"id": 3}, "Session id '3' is invalid"),
        ({"id": [], "resume": True}, "A session id must be a string, not list"),
        ({"tenant": None}, "tenant= must be a string of at most 64 printable characters, not 'None'"),
        ({"approve": True}, "approve= must be a function that takes a tool call, not True"),
        ({"budget": {"rounds": 3}}, "budget= must be a Budget, not dict"),
        ({"budget": Budget(tokens=-1)}, "budget= has tokens=-1"),
        (
            {"budget": Budget(rounds=2**64)},
            "budget= has rounds=an integer of 65 bits, but rounds must be at most",
        ),
    ],
    ids=["id", "resume", "tenant", "approve", "budget", "tokens", "rounds"],
)
async def test_invalid_options_of_open_raise_config_errors(options: Any, says: str) -> None:  # Any: as above
    async with runtime_with(a=openai()) as runtime:
        with pytest.raises(ConfigError, match="^" + says.replace("(", r"\(")):
            await runtime.open("a", **options)
        assert len(runtime.sessions) == 0
        assert list(runtime._storage.sessions()) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tracing": True}, "tracing= must be an actors.telemetry.Tracing or None, not bool"),
        ({"prices": {3: Price(1, 2)}}, "prices= must be a mapping of model names"),
        ({"prices": [Price(1, 2)]}, "prices= must be a mapping of model names"),
        ({"config": 3}, "config= takes the path of an actors.toml, a Config, or None, not int"),
        (
            {"journal": b"s.db"},
            "journal= takes the path of a file, a postgresql:// address, a Storage, or None",
        ),
        ({"journal": ""}, "The journal '' is a folder; pass the path of a file in it"),
        ({"journal": Path("/")}, "The journal '/' is a folder; pass the path of a file in it"),
        ({"journal": "a\0b"}, "The journal 'a\\x00b' is not a valid file name; choose another name"),
        (
            {"journal": ":memory:"},
            "The journal ':memory:' is not a file; omit the journal to keep logs in memory",
        ),
        ({"transport": 3}, "transport= takes a Transport, or None, not int"),
        ({"seed": "x"}, "seed= takes a whole number, or None, not str"),
        ({"on_tool_error": "x"}, "on_tool_error= takes a function, or None, not str"),
        ({"on_refusal": 3}, "on_refusal= takes a function, the path of a directory, or None, not int"),
        ({"compaction": {}}, "compaction= takes a Compaction, or None, not dict"),
        ({"budgets": 3}, "budgets= takes a mapping of tenants.NAME and pools.NAME to Budgets, or None"),
        ({"budgets": {3: 4}}, "budgets= has the name 3; a name must have the form"),
    ],
)
def test_invalid_arguments_of_a_runtime_raise_config_errors(given: Any, says: str) -> None:  # Any: as above
    with pytest.raises(ConfigError) as refused:
        Runtime(environ={}, **given)
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize("value", [3, b"sk-1"])
async def test_an_environment_with_a_value_that_is_not_a_string_raises_config_errors(value: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"^environ= returned a value of type \w+ for variable 'OPENAI_API_KEY'"
    ):
        async with Runtime(environ={"OPENAI_API_KEY": value}) as runtime:
            await runtime.open("openai:gpt-5.2")


def _invalid_calls(runtime: Any) -> dict[str, Callable[[], Any]]:  # Any: an invalid argument
    file, delete = "{}", runtime.journal.delete
    return {
        "at= takes the number of an event, or None, not str": lambda: runtime.journal.fork("one", "3"),
        "at= takes the number of an event, or None, not bool": lambda: runtime.journal.fork("one", True),
        "A session id must be a string, not int": lambda: runtime.journal.fork(3),
        "A session id must be a string, not NoneType": lambda: runtime.journal.export(None),
        "A session id must be a string, not bytes": lambda: runtime.journal.delete(b"one"),
        "A session id must be a string, not list": lambda: runtime.resume([]),
        "A session id must be a string, not dict": lambda: runtime.session({}),
        r"Session id '\ud800' is invalid": lambda: runtime.journal.get("\ud800"),
        r"Session id '\udc80' is invalid": lambda: runtime.journal.export("\udc80"),
        r"Session id 'a\ud800' is invalid": lambda: runtime.journal.fork("a\ud800"),
        r"Session id 'a\x00' is invalid": lambda: runtime.journal.get("a\0"),
        r"Session id 'a\x00b' is invalid": lambda: delete("a\0b"),
        r"tenant= must be a string of at most 64 printable characters, not '\ud800'": lambda: delete(
            tenant="\ud800"
        ),
        r"tenant= must be a string of at most 64 printable characters, not 'a\x00'": lambda: (
            runtime.journal.list(tenant="a\0")
        ),
        "after= takes a StoredSession.page, or None, not tuple": lambda: runtime.journal.list(
            after=(1.0, "\ud800")
        ),
        "The file is not UTF-8: surrogates not allowed at byte 1": lambda: runtime.journal.import_session(
            "{\ud800"
        ),
        "messages= takes a list of Message objects, not int": lambda: runtime.open("a", messages=3),
        "metadata['n'] must be a string of at most 512 characters, a bool, a finite float or a 64-bit int, but the "
        "number is out of range": lambda: runtime.open("a", metadata={"n": 2**64}),
        "An exported session must be bytes or a string, not int": lambda: runtime.journal.import_session(3),
        "Session id '' is invalid": lambda: _import_without_id(runtime),
        "line 1: expected the first line of an exported session": lambda: runtime.journal.import_session(
            file
        ),
        "older_than= takes a datetime, a timedelta, or None, not str": lambda: delete(older_than="2020"),
        "older_than= is outside the range of the system clock": lambda: delete(older_than=datetime.min),
        "dry_run= takes True, False, or None, not str": lambda: delete("one", dry_run="no"),
        "tenant= takes a string, or None, not int": lambda: runtime.journal.delete(tenant=3),
        "limit= takes a whole number from 0 to 1,000,000, not -1": lambda: runtime.journal.list(limit=-1),
        "limit= takes a whole number from 0 to 1,000,000, not 'x'": lambda: runtime.journal.list(limit="x"),
        "after= takes a StoredSession.page, or None, not int": lambda: runtime.journal.list(after=3),
        "tenant= takes a string, or None, not list": lambda: runtime.journal.list(tenant=[]),
        "wait= takes a number of seconds, not nan": lambda: runtime.resume("two", wait=nan),
        "wait= takes a number of seconds, not None": lambda: runtime.resume("two", wait=None),
    }


async def _import_without_id(runtime: Runtime) -> None:
    await runtime.journal.import_session(await runtime.journal.export("one"), id="")


@pytest.mark.parametrize("storage", [MemoryStorage, None], ids=["memory", "file"])
async def test_invalid_arguments_of_journal_methods_are_rejected(
    storage: Callable[[], Storage] | None, tmp_path: Path
) -> None:
    kept = storage() if storage else SqliteStorage(tmp_path / "sessions.db")
    async with runtime_with(a=openai(), storage=kept) as runtime:
        session = await runtime.open("a", id="one")
        await session.ask("Hello.")
        before = await session.history()
        for says, ask in _invalid_calls(runtime).items():
            with pytest.raises((ConfigError, TranscriptError)) as refused:
                await ask()
            assert str(refused.value).startswith(says)
            assert runtime.stats().is_ready
        assert await session.history() == before
        assert [each.id for each in await runtime.journal.list()] == ["one"]


@pytest.mark.parametrize("name", ["one\0", "\ud800", "../one"])
async def test_an_invalid_session_id_is_reported_as_an_error_of_the_client(name: str) -> None:
    async with runtime_with(a=openai()) as runtime:
        for find in (
            partial(runtime.claim, name),
            partial(runtime.resume, name),
            partial(runtime.open, "a", id=name, resume=True),
        ):
            with pytest.raises(InvalidIdentifier, match="is invalid") as refused:
                await find()
            assert error_response(refused.value).status == 400


@pytest.mark.parametrize("name", [3, [], {}, "\ud800"])
async def test_call_tool_takes_the_name_of_a_tool(name: Any) -> None:  # Any: as above
    async with scripted("openai_chat", tools=[pay]) as (_, _, session):
        with pytest.raises(SessionError, match=r"cannot run tool .*: the session's tools are pay"):
            await session.call_tool(name)


@pytest.mark.parametrize("after", [-1, 10**20, 10**5000, "1", None, True, 1.0], ids=range(7))
async def test_events_can_be_read_only_after_a_valid_event_number(
    after: Any, tmp_path: Path
) -> None:  # Any: as above
    async with runtime_with(a=openai(), storage=SqliteStorage(tmp_path / "sessions.db")) as runtime:
        session = await runtime.open("a")
        with pytest.raises(UnknownSeq, match="after= must be the number of an event"):
            await anext(session.events(after))


@pytest.mark.parametrize("given", ["euros", 5, [("euros", 5)]])
async def test_call_tool_takes_arguments_by_name(given: Any) -> None:  # Any: as above
    async with scripted("openai_chat", tools=[pay]) as (_, _, session):
        with pytest.raises(SessionError, match="must be a mapping of names to values, not "):
            await session.call_tool("pay", given)
        assert (await session.call_tool("pay", {"euros": 5})).content == "5 paid"
