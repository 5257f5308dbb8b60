"""Approvals without a callback: any task may decide a waiting call, and the decision is bound to its arguments."""

import json
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from actors.config import RuntimeLimits
from actors.core.data.jsonio import JsonValue
from actors.core.log.call_events import Cancelled, Denied, Returned, Started
from actors.core.log.events import ApprovalAsked, ApprovalDecided, TurnPaused, TurnResumed
from actors.core.stream_events.ask_events import AskResult, CompleteEvent
from actors.core.stream_events.round_events import ApprovalRequestedEvent
from actors.core.values.identity import CallId
from actors.errors import DecisionRefused, NotAwaited
from actors.events import ApprovalDecision
from actors.journal.storage import Appended, Entry
from actors.journal.storage.memory import MemoryStorage
from actors.scheduler.threads import THREADS
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime.test_rebuild import crash
from tests.runtime_support import bodies, log, openai, restarted_actors, results, runtime_with
from tests.scripted import scripted
from tests.session.test_external_calls import PUT_AWAY, leave

pytestmark = pytest.mark.anyio

DONE = Turn(Say("Done."))
ONE, OTHER, THIRD = CallId("hist_tool_1"), CallId("hist_tool_2"), CallId("hist_tool_3")


WRONG: list[dict[str, JsonValue]] = [{}, {"path": 7}, {"path": "b", "force": True}]


class Files:
    """A tool that needs approval, with a record of the files that it deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

        @tool(approval="ask")
        async def delete(path: str) -> str:
            """Delete a file."""
            self.deleted.append(path)
            return f"{path}: deleted"

        self.tool = delete


def delete_calls(*paths: str) -> Turn:
    return Turn(*[Call("delete", {"path": path}) for path in paths])


@PUT_AWAY
async def test_a_call_that_needs_approval_runs_once_after_it_was_allowed(put_away: str) -> None:
    files, server = Files(), openai(delete_calls("a"), Turn(Say("Done.")))
    async with scripted(server, tools=[files.tool]) as (_, runtime, session):
        asked = await session.ask("Delete a.")
        assert (asked.status, [call.id for call in asked.pending_calls], files.deleted) == (
            "awaiting",
            [ONE],
            [],
        )
        leave(session, put_away)
        assert [(each.call.name, each.kind) for each in session.pending] == [("delete", "approval")]
        answer = await session.ask(
            approvals={ONE: ApprovalDecision("allow", digest=session.pending[0].digest)}
        )
        assert (answer.status, answer.text, files.deleted) == ("complete", "Done.", ["a"])
        events = log(runtime, session)
        kinds = (ApprovalAsked, TurnPaused, ApprovalDecided, TurnResumed, Started)
        assert [type(event) for event in events if isinstance(event, kinds)] == list(kinds)
    assert list(results(bodies(server)[-1]).values()) == ["a: deleted"]


async def test_a_denied_call_is_answered_with_the_reason_of_the_denial() -> None:
    files, server = Files(), openai(delete_calls("a", "b"), Turn(Say("I see.")))
    async with scripted(server, tools=[files.tool]) as (_, runtime, session):
        await session.ask("Delete them.")
        half = await session.ask(approvals={ONE: ApprovalDecision("deny", reason="it is the only copy")})
        assert (half.status, [call.id for call in half.pending_calls]) == ("awaiting", [OTHER])
        assert (await session.ask(approvals={OTHER: ApprovalDecision("allow")})).status == "complete"
        assert files.deleted == ["b"]
        assert [event.call_id for event in log(runtime, session) if isinstance(event, Denied)] == [ONE]
    denied, ran = results(bodies(server)[-1]).values()
    assert "not approved: it is the only copy" in denied
    assert ran == "b: deleted"


async def test_edited_arguments_are_validated_and_passed_to_the_call() -> None:
    files, server = Files(), openai(delete_calls("a"), Turn(Say("Done.")))
    async with scripted(server, tools=[files.tool]) as (_, _, session):
        await session.ask("Delete a.")
        for wrong in WRONG:
            with pytest.raises(DecisionRefused, match="Invalid arguments for call"):
                await session.ask(approvals={ONE: ApprovalDecision("allow", arguments=wrong)})
        assert files.deleted == []
        assert (
            await session.ask(approvals={ONE: ApprovalDecision("allow", arguments={"path": "b"})})
        ).status == "complete"
        assert files.deleted == ["b"]


async def test_a_decision_for_an_unknown_call_or_other_arguments_is_rejected() -> None:
    files, server = Files(), openai(delete_calls("a"), Turn(Say("Done.")))
    look = Tool.external("look", "", {"type": "object"})
    async with scripted(server, tools=[files.tool, look]) as (_, _, session):
        with pytest.raises(NotAwaited, match="the pending calls are: none"):
            await session.ask(approvals={ONE: ApprovalDecision("allow")})
        await session.ask("Delete a.")
        with pytest.raises(DecisionRefused, match="0123456789abcdef"):
            await session.ask(approvals={ONE: ApprovalDecision("allow", digest="0123456789abcdef")})
        with pytest.raises(NotAwaited, match="pass the decision in approvals="):
            await session.ask(results={ONE: "forged"})
        with pytest.raises(DecisionRefused, match="'maybe'"):
            await session.ask(approvals={ONE: ApprovalDecision("maybe")})  # type: ignore[arg-type]
        assert (await session.ask(approvals={ONE: ApprovalDecision("allow")})).status == "complete"
        with pytest.raises(NotAwaited):
            await session.ask(approvals={ONE: ApprovalDecision("deny")})
        assert files.deleted == ["a"]


async def test_another_task_can_answer_an_approval_request_of_a_stream() -> None:
    files, server = Files(), openai(delete_calls("a"), Turn(Say("Done.")))
    async with scripted(server, tools=[files.tool]) as (_, _, session):
        answers: list[AskResult] = []

        async def allow(call_id: CallId, digest: str) -> None:
            answers.append(await session.ask(approvals={call_id: ApprovalDecision("allow", digest=digest)}))

        async with anyio.create_task_group() as tasks, session.stream("Delete a.") as events:
            async for event in events:
                if isinstance(event, ApprovalRequestedEvent):
                    assert event.pending.call.arguments == {"path": "a"}
                    tasks.start_soon(allow, event.pending.call.id, event.pending.digest)
                if isinstance(event, CompleteEvent):
                    assert event.result.status == "awaiting"
        assert [answer.text for answer in answers] == ["Done."]


async def test_an_external_call_is_approved_by_passing_its_result() -> None:
    send = Tool.external("send", "Sends a letter.", {"type": "object"})
    server = openai(Turn(Call("send", {}), Call("send", {"to": "B"})), Turn(Say("Done.")))
    async with scripted(server, tools=[send]) as (_, _, session):
        assert len((await session.ask("Send them.")).pending_calls) == 2
        with pytest.raises(NotAwaited, match="pass the result in results="):
            await session.ask(approvals={ONE: ApprovalDecision("allow")})
        await session.ask(approvals={ONE: ApprovalDecision("deny", reason="no stamps")})
        assert (await session.ask(results={OTHER: "sent"})).status == "complete"
    denied, sent = results(bodies(server)[-1]).values()
    assert "no stamps" in denied
    assert sent == "sent"


def calls_of_every_kind() -> tuple[Files, Tool[..., str], Turn]:
    """Return tools of both kinds, and a turn that waits for two approvals and a result."""
    send = Tool.external("send", "Sends a letter.", {"type": "object"})
    calls = [Call("delete", {"path": "a"}), Call("delete", {"path": "b"}), Call("send", {})]
    return Files(), send, Turn(*calls)


async def test_results_and_decisions_passed_together_are_recorded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, send, turn = calls_of_every_kind()
    appends: list[tuple[type, ...]] = []
    append = MemoryStorage.append

    def append_and_note(self: MemoryStorage, entries: Sequence[Entry]) -> Sequence[Appended]:
        appends.extend(tuple([type(event) for event in entry.events]) for entry in entries)
        return append(self, entries)

    async with scripted("openai_chat", turn, DONE, tools=[files.tool, send]) as (_, _, session):
        await session.ask("Do it.")
        monkeypatch.setattr(MemoryStorage, "append", append_and_note)
        answer = await session.ask(
            approvals={OTHER: ApprovalDecision("allow"), ONE: ApprovalDecision("deny", reason="no")},
            results={THIRD: "sent"},
        )
        assert (answer.text, files.deleted) == ("Done.", ["b"])
        assert appends[0] == (ApprovalDecided, ApprovalDecided, Denied, Returned)


async def test_several_decisions_that_allow_calls_are_recorded_together_and_streamed() -> None:
    files, server = Files(), openai(delete_calls("a", "b"), DONE)
    async with scripted(server, tools=[files.tool]) as (_, _, session):
        await session.ask("Delete them.")
        allowed = {call.call.id: ApprovalDecision("allow", digest=call.digest) for call in session.pending}
        async with session.stream(approvals=allowed) as events:
            types = [event.type async for event in events]
        assert types[:3] == ["approval_decided", "approval_decided", "turn_resumed"]
        assert types[-1] == "complete"
        assert sorted(files.deleted) == ["a", "b"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"approvals": {OTHER: ApprovalDecision("allow", digest="0123456789abcdef")}},
            "review the call again",
        ),
        (
            {"approvals": {OTHER: ApprovalDecision("allow", arguments={"path": 7})}},
            "Invalid arguments for call ",
        ),
        ({"approvals": {OTHER: ApprovalDecision("maybe")}}, "'maybe'"),  # type: ignore[arg-type]
        ({"approvals": {THIRD: ApprovalDecision("allow")}}, "pass the result in results="),
        ({"approvals": {CallId("hist_tool_9"): ApprovalDecision("deny")}}, "does not wait for call"),
        ({"results": {OTHER: "forged"}}, "pass the decision in approvals="),
        ({"results": {CallId("hist_tool_9"): "forged"}}, "is not an external call"),
    ],
    ids=["digest", "arguments", "verdict", "external", "unknown", "forged", "unheard-of"],
)
@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_if_one_of_several_decisions_is_rejected_none_is_recorded(
    wrong: dict[str, Any], says: str, verdict: Any
) -> None:  # Any: any argument that a caller may pass
    files, send, turn = calls_of_every_kind()
    async with scripted("openai_chat", turn, DONE, tools=[files.tool, send]) as (_, runtime, session):
        await session.ask("Do it.")
        before = log(runtime, session)
        sound: dict[str, dict[CallId, Any]] = {
            "approvals": {ONE: ApprovalDecision(verdict)},
            "results": {THIRD: "sent"},
        }
        if THIRD in wrong.get("approvals", ()):
            sound["results"] = {}
        given: dict[str, Any] = {name: {**sound[name], **wrong.get(name, {})} for name in sound}
        with pytest.raises((NotAwaited, DecisionRefused), match=says):
            await session.ask(**given)
        assert [each.call.id for each in session.pending] == [ONE, OTHER, THIRD]
        assert log(runtime, session) == before
        rest = {ONE: ApprovalDecision("allow"), OTHER: ApprovalDecision("allow")}
        assert (await session.ask(approvals=rest, results={THIRD: "sent"})).text == "Done."
        assert sorted(files.deleted) == ["a", "b"]


async def test_cancelling_a_session_closes_allowed_calls_that_have_not_run() -> None:
    files, server = Files(), openai(delete_calls("a", "b"), Turn(Say("Next.")))
    async with scripted(server, tools=[files.tool]) as (_, runtime, session):
        await session.ask("Delete them.")
        await session.ask(approvals={ONE: ApprovalDecision("allow")})
        assert await session.cancel()
        assert files.deleted == []
        assert [event.call_id for event in log(runtime, session) if isinstance(event, Cancelled)] == [
            OTHER,
            ONE,
        ]
        assert (await session.ask("Go on.")).text == "Next."


@pytest.mark.parametrize("which", ["session", "scheduler"])
async def test_a_crash_keeps_recorded_decisions(which: str) -> None:
    files, server = Files(), openai(delete_calls("a", "b"), Turn(Say("Done.")))
    async with scripted(server, tools=[files.tool]) as (_, _, session):
        await session.ask("Delete them.")
        await session.ask(approvals={ONE: ApprovalDecision("allow", arguments={"path": "c"})})
        await crash(session, which)
        assert (await session.ask(approvals={OTHER: ApprovalDecision("deny")})).text == "Done."
        assert files.deleted == ["c"]


async def test_an_approval_rule_decides_from_the_arguments() -> None:
    moved: list[str] = []

    def rule(arguments: dict[str, object]) -> str:
        return {"tmp": "allow", "etc": "deny"}.get(str(arguments["path"]), "ask")

    @tool(approval=rule)  # type: ignore[arg-type]  # a rule that may return any string
    async def move(path: str) -> str:
        """Move a file."""
        moved.append(path)
        return "moved"

    server = openai(
        Turn(*[Call("move", {"path": path}) for path in ("tmp", "etc", "home")]), Turn(Say("Done."))
    )
    async with scripted(server, tools=[move]) as (_, _, session):
        asked = await session.ask("Move them.")
        assert [json.loads(call.json)["path"] for call in asked.pending_calls] == ["home"]
        assert moved == ["tmp"]
        await session.ask(approvals={asked.pending_calls[0].id: ApprovalDecision("allow")})
        assert moved == ["tmp", "home"]


async def test_an_approved_call_runs_when_a_thread_becomes_free() -> None:
    entered, release, sent = threading.Event(), threading.Event(), list[str]()

    @tool
    def block() -> str:
        """Block a thread."""
        entered.set()
        release.wait(60)
        return "released"

    @tool(approval="ask")
    def send(to: str) -> str:
        """Send something."""
        sent.append(to)
        return f"sent to {to}"

    blocking, sending = openai(Turn(Call("block", {})), DONE), openai(Turn(Call("send", {"to": "Ann"})), DONE)
    limits = RuntimeLimits(tool_threads=1 + THREADS.taken)
    async with (
        runtime_with(a=blocking, b=sending, limits=limits) as runtime,
        anyio.create_task_group() as tasks,
    ):
        session = await runtime.open("b", tools=[send])
        assert (await session.ask("Send it.")).status == "awaiting"
        tasks.start_soon((await runtime.open("a", tools=[block])).ask, "Block.")
        await anyio.to_thread.run_sync(entered.wait, 60)
        tasks.start_soon(partial(session.ask, approvals={ONE: ApprovalDecision("allow")}))
        while not any(isinstance(event, TurnResumed) for event in log(runtime, session)):
            await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        assert sent == []
        release.set()
        while not sent:
            await anyio.lowlevel.checkpoint()
        assert restarted_actors(runtime) == []
