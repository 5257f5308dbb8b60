"""Sessions that are forked at any event, exported, imported and listed."""

import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from actors import ToolContext, tool
from actors.core.log.call_events import Started
from actors.core.log.codec import encode_event
from actors.core.log.events import Closed, Opened
from actors.core.session.export_file import import_logs
from actors.core.values.identity import CallId
from actors.errors import SessionExists, SessionUnknown, TranscriptError, UnknownSeq
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime.test_resume import running_server
from tests.runtime_support import assert_prefixes, assert_rebuilds, log, openai, runtime_with

pytestmark = pytest.mark.anyio


@tool
async def inner(context: ToolContext[None]) -> str:
    """Ask two child sessions."""
    for _ in range(2):
        async with context.subagent("b") as child:
            await child.ask("Go.")
    return "done"


@tool
async def outer(context: ToolContext[None]) -> str:
    """Ask a child session that asks two others."""
    async with context.subagent("a", tools=[inner]) as child:
        return (await child.ask("Go.")).text


TWICE = [Turn(Call("outer")), Turn(Call("inner")), Turn(Say("Inner.")), Turn(Say("Outer."))]
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
PAID: list[str] = []


@tool(effects="idempotent", approval="allow")
async def pay(amount: int) -> str:
    """Pay."""
    PAID.append(str(amount))
    return "paid"


@asynccontextmanager
async def two_asks() -> AsyncIterator[tuple[Runtime, Session]]:
    """Yield a runtime with a session that asked twice, with a tool call in the first ask."""
    PAID.clear()
    server = openai(
        Turn(Call("pay", {"amount": 3})), Turn(Say("Done.")), Turn(Say("Again?")), Turn(Say("No."))
    )
    async with running_server(server) as hosted, hosted(MemoryStorage()) as runtime:
        session = await runtime.open("a", tools=[pay], id="trip", system="Be brief.")
        await session.ask("Pay.")
        await session.ask("And?")
        yield runtime, session
    assert server.refusals == []


def records(runtime: Runtime, name: str) -> list[bytes]:
    """Return a session's log as bytes."""
    return [encode_event(event) for event in runtime._storage.read(name)]


async def test_a_fork_is_an_independent_session_with_the_same_history() -> None:
    async with two_asks() as (runtime, session):
        before = records(runtime, "trip")
        name = await runtime.journal.fork("trip", id="other")
        fork = await runtime.resume(name, tools=[pay])
        assert (fork.id, fork.target) == ("other", "a")
        assert list(await fork.history()) == list(await session.history())
        assert (await fork.ask("Go on.")).text == "No."
        assert records(runtime, "trip") == before
        assert PAID == ["3"]
        ours, theirs = log(runtime, session)[0], log(runtime, fork)[0]
        assert isinstance(ours, Opened)
        assert isinstance(theirs, Opened)
        assert ours.key != theirs.key  # otherwise services could not distinguish their calls
        await assert_rebuilds(runtime, fork)


async def test_a_session_can_be_forked_at_every_event_without_rerunning_calls() -> None:
    async with two_asks() as (runtime, session):
        events = log(runtime, session)
        for at, event in enumerate(events, 1):
            fork = await runtime.resume(await runtime.journal.fork("trip", at), tools=[pay])
            kept = log(runtime, fork)
            assert [type(each) for each in kept[1:at]] == [type(each) for each in events[1:at]]
            state = fork._lifecycle.activate().state
            assert state.bound is None
            calls = list((await fork.ledger()).interactions())
            assert all(known.status != "pending" for known in calls)
            if isinstance(event, Started):
                assert [known.reason for known in calls] == ["outcome_unknown"]
            await assert_rebuilds(runtime, fork)
            await fork.close()
        assert PAID == ["3"]
        with pytest.raises(UnknownSeq, match=f"1 to {len(events)}"):
            await runtime.journal.fork("trip", len(events) + 1)
        with pytest.raises(UnknownSeq):
            await runtime.journal.fork("trip", 0)


async def test_waiting_and_closed_sessions_can_be_forked() -> None:
    server = openai(Turn(Call("look", {"n": 1})), Turn(Say("21 C.")), Turn(Say("22 C.")))
    one = CallId("hist_tool_1")
    async with running_server(server) as hosted, hosted(MemoryStorage()) as runtime:
        session = await runtime.open("a", tools=[LOOK], id="trip")
        await session.ask("How warm?")
        name = await runtime.journal.fork("trip")
        await session.ask(results={one: 21})
        await session.close()
        fork = await runtime.resume(name, tools=[LOOK])
        assert [each.call.id for each in fork.pending] == [one]
        assert (await fork.ask(results={one: 22})).text == "22 C."
        again = await runtime.resume(await runtime.journal.fork("trip"), tools=[LOOK])
        assert not any(isinstance(event, Closed) for event in log(runtime, again))
        with pytest.raises(SessionUnknown):
            await runtime.journal.fork("nobody")
        with pytest.raises(SessionExists):
            await runtime.journal.fork("trip", id="trip")


async def test_an_exported_session_is_imported_without_loss() -> None:
    server = openai(Turn(Call("pay", {"amount": 3})), Turn(Say("Done.")), Turn(Say("No.")))
    async with running_server(server) as hosted:
        async with hosted(MemoryStorage()) as runtime:
            session = await runtime.open("a", tools=[pay], id="trip", system="Be brief.\u2028 \U0001f600")
            await session.ask("Pay.")
            file, before = await runtime.journal.export("trip"), records(runtime, "trip")
        async with hosted(MemoryStorage()) as runtime:
            assert await runtime.journal.import_session(file) == "trip"
            assert records(runtime, "trip") == before
            assert await runtime.journal.import_session(file.decode(), id="copy") == "copy"
            with pytest.raises(SessionExists):
                await runtime.journal.import_session(file)
            session = await runtime.resume("trip", tools=[pay])
            assert (await session.ask("Again?")).text == "No."
    assert_prefixes(server)


async def test_subagents_are_imported_with_their_parent_under_unused_ids() -> None:
    storage = MemoryStorage()
    async with runtime_with(a=openai(*TWICE), b=openai(*[Turn(Say("Yes."))] * 3), storage=storage) as runtime:
        await runtime.open("b", id="trip-c1")  # an id chosen by the program, so that a subagent needs another
        await (await runtime.open("a", id="trip", tools=[outer])).ask("Go.")
        file = await runtime.journal.export("trip")
        names = ["trip", "trip-c1-2", "trip-c1-2-c1", "trip-c1-2-c1-2"]
        before = {name: records(runtime, name) for name in names}
        assert await runtime.journal.import_session(file, id="copy") == "copy"
        copies = ["copy", "copy-c1", "copy-c1-c1", "copy-c1-c1-2"]
        for name, copy in zip(names, copies, strict=True):
            assert records(runtime, copy)[1:] == before[name][1:]
        await runtime.journal.delete("copy")
        assert sorted(each.id for each in storage.sessions()) == sorted(["trip-c1", *names])
        await runtime.journal.delete("trip")
        await runtime.journal.delete("trip-c1")
        assert await runtime.journal.import_session(file) == "trip"
        assert records(runtime, "trip") == before["trip"]
        assert records(runtime, "trip-c1-c1-2")[1:] == before["trip-c1-2-c1-2"][1:]


async def test_a_session_with_subagents_is_imported_completely_or_not_at_all() -> None:
    storage = MemoryStorage()
    async with runtime_with(a=openai(*TWICE), b=openai(*[Turn(Say("Yes."))] * 2), storage=storage) as runtime:
        await (await runtime.open("a", id="trip", tools=[outer])).ask("Go.")
        file = await runtime.journal.export("trip")
        await runtime.journal.delete("trip")
        await runtime.open("b", id="trip-c1-c1")
        with pytest.raises(SessionExists, match="'trip-c1-c1'"):
            await runtime.journal.import_session(file)
        assert [each.id for each in storage.sessions()] == ["trip-c1-c1"]
        await runtime.journal.delete("trip-c1-c1")
        lines = file.decode().splitlines(keepends=True)
        last = max(number for number, line in enumerate(lines) if '"actors"' in line)
        for cut, why in (
            (lines[:last], "line 1 lists the subagents"),
            (lines[:-1], f"line {last + 1}: "),
        ):
            with pytest.raises(TranscriptError, match=why):
                await runtime.journal.import_session("".join(cut))
        assert storage.sessions() == []
        assert storage.claim("trip").last == 0  # no session is claimed


async def test_each_line_of_an_exported_file_contains_its_public_events() -> None:
    async with two_asks() as (runtime, session):
        head, *lines = [json.loads(line) for line in (await runtime.journal.export("trip")).splitlines()]
        assert (head["actors"], head["session"], head["records"]) == ("session", "trip", len(lines))
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        shown = [each for line in lines for each in line["events"]]
        assert [each["result"]["text"] for each in shown if each["type"] == "complete"] == ["Done.", "Again?"]
        assert session.id == "trip"


def _swap_two(lines: list[str]) -> list[str]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def _change_record(lines: list[str], number: int, change: Callable[[bytes], bytes]) -> list[str]:
    line = json.loads(lines[number])
    line["record"] = b64encode(change(b64decode(line["record"]))).decode()
    return [*lines[:number], json.dumps(line), *lines[number + 1 :]]


def _copy_record(lines: list[str], number: int, to: int) -> list[str]:
    """Copy one record to the place of another, with that place's number."""
    record = json.loads(lines[number])["record"]
    return [*lines[:to], json.dumps({"seq": to, "record": record}), *lines[to + 1 :]]


BAD: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "nothing": (lambda lines: [], "is empty"),
    "another file": (lambda lines: ['{"type": "complete"}'], "line 1: expected the first line"),
    "no JSON": (lambda lines: [lines[0], "{", *lines[2:]], "line 2: not a JSON object"),
    "another form": (
        lambda lines: [lines[0].replace('"v":1', '"v":9'), *lines[1:]],
        "line 1: format version 9",
    ),
    "cut": (lambda lines: lines[:-1], "line 1: expected .* records, found"),
    "swapped": (_swap_two, "line 2: expected record 1, found 2"),
    "no base64": (
        lambda lines: [lines[0], '{"seq": 1, "record": "?"}', *lines[2:]],
        "line 2: the value of 'record' is not",
    ),
    "no event": (
        lambda lines: _change_record(lines, 3, lambda record: record[:-1]),
        "line 4: Not a valid event",
    ),
    "changed": (
        lambda lines: _change_record(lines, 2, lambda record: record.replace(b"Pay.", b"Pay!")),
        "line 1: the records were changed",
    ),
    "changed for readers": (
        lambda lines: [line.replace('"text":"Again?"', '"text":"No."') for line in lines],
        "line 1: the records were changed",
    ),
    "named otherwise": (
        lambda lines: [lines[0].replace("trip", "trap"), *lines[1:]],
        "line 1: the session id differs from the id 'trip' in the log",
    ),
    "opened twice": (lambda lines: _copy_record(lines, 1, 2), "line 3: 'opened' must be the first event"),
    "not opened": (lambda lines: _copy_record(lines, 2, 1), "line 2: 'opened' must be the first event"),
    "a turn out of order": (
        lambda lines: _copy_record(lines, len(lines) - 1, 2),
        "line 3: an event belongs to turn 2",
    ),
}


@pytest.mark.alternating
@pytest.mark.parametrize("bad", BAD)
async def test_a_damaged_export_file_is_rejected_with_the_line_and_the_reason(bad: str) -> None:
    change, why = BAD[bad]
    async with two_asks() as (runtime, _):
        lines = (await runtime.journal.export("trip")).decode().splitlines()
        with pytest.raises(TranscriptError, match=why):
            await runtime.journal.import_session("\n".join(change(lines)), id="copy")
        assert [each.id for each in await runtime.journal.list()] == ["trip"]
        for ends in ("\n", "\r\n"):
            assert len(import_logs(ends.join(lines))[0]) == len(lines) - 1


async def test_an_exported_file_with_other_line_endings_is_imported() -> None:
    async with two_asks() as (runtime, _):
        file = await runtime.journal.export("trip")
        await runtime.journal.import_session(file.replace(b"\n", b"\r\n"), id="elsewhere")
        assert {each.id for each in await runtime.journal.list()} == {"trip", "elsewhere"}


async def test_sessions_can_be_listed_by_state_and_tenant_in_pages() -> None:
    async with running_server(openai()) as hosted, hosted(MemoryStorage()) as runtime:
        for name, tenant in (("a1", "x"), ("a2", "y"), ("a3", "x")):
            await runtime.open("a", id=name, tenant=tenant)
        await runtime.session("a3").close()
        assert {each.id: each.state for each in await runtime.journal.list()} == {
            "a1": "idle",
            "a2": "idle",
            "a3": "closed",
        }
        assert {each.id for each in await runtime.journal.list(tenant="x")} == {"a1", "a3"}
        [first] = await runtime.journal.list(limit=1)
        rest = await runtime.journal.list(after=first.page)
        assert len({first.id, *[each.id for each in rest]}) == 3
