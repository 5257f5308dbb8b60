"""Sessions carried elsewhere: forked at any event, exported to a file, imported from one, listed."""

import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from actors import ToolContext, tool
from actors.core.log.codec import encode_event
from actors.core.log.events import Closed, Opened, Started
from actors.core.session.export_file import import_logs
from actors.core.values.identity import CallId
from actors.errors import SessionExists, SessionUnknown, TranscriptError, UnknownSeq
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, Say, Turn
from actors.tools import Tool
from tests.runtime.test_resume import serving
from tests.runtime_support import assert_prefixes, assert_rebuilds, hosting, log, openai

pytestmark = pytest.mark.anyio


@tool
async def inner(context: ToolContext[None]) -> str:
    """Ask two."""
    for _ in range(2):
        async with context.subagent("b") as child:
            await child.ask("Go.")
    return "done"


@tool
async def outer(context: ToolContext[None]) -> str:
    """Ask one that asks two."""
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
async def talked() -> AsyncIterator[tuple[Runtime, Session]]:
    """Give a runtime with a session that asked twice, and called a tool in the first."""
    PAID.clear()
    server = openai(
        Turn(Call("pay", {"amount": 3})), Turn(Say("Done.")), Turn(Say("Again?")), Turn(Say("No."))
    )
    async with serving(server) as hosted, hosted(MemoryStorage()) as runtime:
        session = await runtime.open("a", tools=[pay], id="trip", system="Be brief.")
        await session.ask("Pay.")
        await session.ask("And?")
        yield runtime, session
    assert server.refusals == []


def records(runtime: Runtime, name: str) -> list[bytes]:
    """Return a session's log as bytes."""
    return [encode_event(event) for event in runtime._storage.read(name)]


async def test_a_fork_is_a_session_of_its_own_that_goes_on_with_the_same_history() -> None:
    async with talked() as (runtime, session):
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
        assert ours.key != theirs.key  # else services would take its calls for those of the other
        await assert_rebuilds(runtime, fork)


async def test_a_session_can_be_forked_at_every_event_and_what_ran_then_is_unknown_and_never_run_again() -> (
    None
):
    async with talked() as (runtime, session):
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


async def test_a_fork_of_a_turn_that_waits_waits_too_and_one_that_was_closed_can_be_forked() -> None:
    server = openai(Turn(Call("look", {"n": 1})), Turn(Say("21 C.")), Turn(Say("22 C.")))
    one = CallId("hist_tool_1")
    async with serving(server) as hosted, hosted(MemoryStorage()) as runtime:
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


async def test_what_is_exported_is_imported_elsewhere_without_loss_and_goes_on_with_the_same_bytes() -> None:
    server = openai(Turn(Call("pay", {"amount": 3})), Turn(Say("Done.")), Turn(Say("No.")))
    async with serving(server) as hosted:
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


async def test_subagents_are_carried_along_under_ids_that_fit() -> None:
    storage = MemoryStorage()
    async with hosting(a=openai(*TWICE), b=openai(*[Turn(Say("Yes."))] * 3), storage=storage) as runtime:
        await runtime.open("b", id="trip-c1")  # a program's own, so a subagent gets another id
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


async def test_of_a_session_with_subagents_all_is_imported_or_nothing() -> None:
    storage = MemoryStorage()
    async with hosting(a=openai(*TWICE), b=openai(*[Turn(Say("Yes."))] * 2), storage=storage) as runtime:
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
        assert storage.claim("trip").last == 0  # and nobody holds it


async def test_each_line_of_an_exported_file_says_what_a_reader_was_shown() -> None:
    async with talked() as (runtime, session):
        head, *lines = [json.loads(line) for line in (await runtime.journal.export("trip")).splitlines()]
        assert (head["actors"], head["session"], head["records"]) == ("session", "trip", len(lines))
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        shown = [each for line in lines for each in line["events"]]
        assert [each["result"]["text"] for each in shown if each["type"] == "complete"] == ["Done.", "Again?"]
        assert session.id == "trip"


def _swapped(lines: list[str]) -> list[str]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def _record(lines: list[str], number: int, change: Callable[[bytes], bytes]) -> list[str]:
    line = json.loads(lines[number])
    line["record"] = b64encode(change(b64decode(line["record"]))).decode()
    return [*lines[:number], json.dumps(line), *lines[number + 1 :]]


def _moved(lines: list[str], number: int, to: int) -> list[str]:
    """Put one record in another's place, numbered as if it belonged there."""
    record = json.loads(lines[number])["record"]
    return [*lines[:to], json.dumps({"seq": to, "record": record}), *lines[to + 1 :]]


BAD: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "nothing": (lambda lines: [], "is empty"),
    "another file": (lambda lines: ['{"type": "complete"}'], "line 1: not the first line"),
    "no JSON": (lambda lines: [lines[0], "{", *lines[2:]], "line 2: not a JSON object"),
    "another form": (
        lambda lines: [lines[0].replace('"v":1', '"v":9'), *lines[1:]],
        "line 1: format version 9",
    ),
    "cut": (lambda lines: lines[:-1], "line 1: expected .* records, found"),
    "swapped": (_swapped, "line 2: expected record 1, found 2"),
    "no base64": (
        lambda lines: [lines[0], '{"seq": 1, "record": "?"}', *lines[2:]],
        "line 2: 'record' is not",
    ),
    "no event": (lambda lines: _record(lines, 3, lambda record: record[:-1]), "line 4: Not an event"),
    "changed": (
        lambda lines: _record(lines, 2, lambda record: record.replace(b"Pay.", b"Pay!")),
        "line 1: the records were changed",
    ),
    "changed for readers": (
        lambda lines: [line.replace('"text":"Again?"', '"text":"No."') for line in lines],
        "line 1: the records were changed",
    ),
    "named otherwise": (
        lambda lines: [lines[0].replace("trip", "trap"), *lines[1:]],
        "line 1: the session id differs from the log's, 'trip'",
    ),
    "opened twice": (lambda lines: _moved(lines, 1, 2), "line 3: 'opened' must be the first event"),
    "not opened": (lambda lines: _moved(lines, 2, 1), "line 2: 'opened' must be the first event"),
    "a turn out of order": (lambda lines: _moved(lines, len(lines) - 1, 2), "line 3: an event of turn 2"),
}


@pytest.mark.alternating
@pytest.mark.parametrize("bad", BAD)
async def test_what_is_no_log_is_refused_with_its_line_and_reason(bad: str) -> None:
    change, why = BAD[bad]
    async with talked() as (runtime, _):
        lines = (await runtime.journal.export("trip")).decode().splitlines()
        with pytest.raises(TranscriptError, match=why):
            await runtime.journal.import_session("\n".join(change(lines)), id="copy")
        assert [each.id for each in await runtime.journal.list()] == ["trip"]
        for ends in ("\n", "\r\n"):
            assert len(import_logs(ends.join(lines))[0]) == len(lines) - 1


async def test_a_file_with_other_ends_of_lines_is_imported() -> None:
    async with talked() as (runtime, _):
        file = await runtime.journal.export("trip")
        await runtime.journal.import_session(file.replace(b"\n", b"\r\n"), id="elsewhere")
        assert {each.id for each in await runtime.journal.list()} == {"trip", "elsewhere"}


async def test_the_sessions_of_a_journal_are_listed_open_or_not_by_tenant_and_page() -> None:
    async with serving(openai()) as hosted, hosted(MemoryStorage()) as runtime:
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
