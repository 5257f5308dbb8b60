"""Failover: when a backend fails for good, the ask continues on the next one with the same history."""

import json
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from actors.config import BackendLimits, PoolSettings
from actors.core.lanes.reproduction import RedactedRequest
from actors.core.log.events import EpochBegan, TurnEnded
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent, SwitchOutcome
from actors.core.stream_events.round_events import TextEvent
from actors.provider import dumps
from actors.provider.provider_actor import Counters
from actors.strict.server import LoopbackServer
from actors.testing import (
    QUOTA,
    SERVER_ERROR,
    Call,
    Disconnect,
    InjectedFault,
    OpenAIServer,
    Say,
    Stall,
    Status,
    Think,
    Turn,
)
from tests.commands.at_scale import spread
from tests.runtime_support import (
    Gate,
    Tap,
    anthropic,
    assert_paired,
    blocks,
    bodies,
    gather_events,
    log,
    openai,
    runtime_with,
)
from tests.sampling import LOOPS
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

Made = Callable[..., LoopbackServer]
FAMILIES = pytest.mark.parametrize(("first", "second"), [(openai, anthropic), (anthropic, openai)])
ANSWER = Turn(Think("hm"), Say("An answer of some length. " * 8))
STRUCTURAL = {
    openai: "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
    anthropic: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
}


def pool(
    *members: str, policy: str = "failover", cooldown: float = 0, on_refusal: bool = True
) -> dict[str, PoolSettings]:
    settings = {"members": members, "policy": policy, "cooldown": cooldown, "failover_on_refusal": on_refusal}
    return {"pool": PoolSettings.model_validate(settings)}


class UnreachableServer(OpenAIServer):
    """A server that does not listen; its port was free a moment ago."""

    async def listen(self, port: int = 0, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        task_status.started()


@FAMILIES
@pytest.mark.parametrize("fault", [QUOTA, SERVER_ERROR, Disconnect(), Disconnect(reset=True)])
@pytest.mark.requirement("REQ-915-004", "REQ-915-043", "PROMISE-5")
async def test_a_round_that_fails_before_output_continues_on_the_next_backend(
    first: Made, second: Made, fault: InjectedFault
) -> None:
    one, two = first(ANSWER, faults={0: fault}), second(ANSWER)
    async with runtime_with(a=one, b=two, pools=pool("a", "b")) as runtime:
        session = await runtime.open("pool")
        events = await gather_events(session, "Tell me.")
        ended = events[-1]
        assert isinstance(ended, CompleteEvent)
        assert [(at.binding.backend, at.status) for at in ended.result.attempts] == [
            ("a", "handed_over"),
            ("b", "complete"),
        ]
        assert ended.result.attempts[0].error
        assert ended.result.binding.backend == "b"
        assert [event.type for event in events].count("failover") == 1
        humans = [message for message in await session.history() if message.role == "user"]
        assert len(humans) == 1
        ends = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
        assert ends == ["handed_over", "complete"]
    assert two.refusals == []
    assert sum("Tell me." in block for _, block in blocks(bodies(two)[0])) == 1


@pytest.mark.requirement("REQ-915-043")
async def test_a_refused_connection_leads_to_the_next_backend() -> None:
    two = anthropic(ANSWER)
    async with runtime_with(a=UnreachableServer(), b=two, pools=pool("a", "b")) as runtime:
        answer = await (await runtime.open("pool")).ask("Tell me.")
        assert (answer.status, answer.binding.backend, len(answer.attempts)) == ("complete", "b", 2)


@pytest.mark.requirement("REQ-915-043")
@pytest.mark.usefixtures("short_waits")
async def test_errors_are_retried_before_the_next_backend_is_used() -> None:
    one, two = openai(ANSWER, faults=lambda number, request: SERVER_ERROR), anthropic(ANSWER)
    async with runtime_with(a=one, b=two, pools=pool("a", "b"), backend=BackendLimits(attempts=2)) as runtime:
        answer = await (await runtime.open("pool")).ask("Tell me.")
        assert (answer.status, answer.binding.backend) == ("complete", "b")
    assert (one.received, two.received) == (2, 1)


@FAMILIES
@pytest.mark.requirement("PROMISE-2")
async def test_a_failure_after_output_fails_the_ask_and_marks_the_text(first: Made, second: Made) -> None:
    one, two = first(ANSWER, faults={0: Disconnect(after_bytes=1500)}), second(Turn(Say("Fine.")))
    async with runtime_with(a=one, b=two, pools=pool("a", "b", cooldown=60)) as runtime:
        session = await runtime.open("pool")
        events = await gather_events(session, "Tell me.")
        assert isinstance(events[-1], ErrorEvent)
        assert two.received == 0
        shown = "".join(event.text for event in events if isinstance(event, TextEvent))
        last = (await session.history())[-1]
        assert shown
        assert last.text.startswith(shown)
        assert last.text.endswith("[This answer was interrupted.]")
        answer = await session.ask("Go on.")
        assert (answer.status, answer.binding.backend) == ("complete", "b")
    assert two.refusals == []
    sent = [block for _, block in blocks(bodies(two)[0])]
    assert any("This answer was interrupted." in block for block in sent)
    assert not any("signature" in block for block in sent)


@pytest.mark.requirement("REQ-915-043")
async def test_when_every_backend_fails_the_session_stays_usable() -> None:
    one, two = openai(faults={0: SERVER_ERROR}), anthropic(faults={0: QUOTA})
    async with runtime_with(a=one, b=two, pools=pool("a", "b")) as runtime:
        session = await runtime.open("pool")
        events = await gather_events(session, "Tell me.")
        assert isinstance(events[-1], ErrorEvent)
        assert [at.binding.backend for at in events[-1].result.attempts] == ["a", "b"]
        assert (await session.ask("Again.")).status == "complete"


async def test_a_failed_pool_member_is_avoided_until_its_cooldown_ends() -> None:
    one, two = openai(faults={0: QUOTA}), anthropic()
    async with runtime_with(a=one, b=two, pools=pool("a", "b", cooldown=600)) as runtime:
        session = await runtime.open("pool")
        assert (await session.ask("One.")).binding.backend == "b"
        second = await session.ask("Two.")
        assert [at.binding.backend for at in second.attempts] == ["b"]
        assert one.received == 1


async def test_a_pool_with_manual_policy_does_not_fail_over() -> None:
    one, two = openai(faults={0: QUOTA}), anthropic()
    async with runtime_with(a=one, b=two, pools=pool("a", "b", policy="manual")) as runtime:
        answer = await (await runtime.open("pool")).ask("One.", check=False)
        assert (answer.status, two.received) == ("failed", 0)
        assert "quota" in answer.error


@pytest.mark.requirement("PROMISE-5", "REQ-915-050")
async def test_a_queued_switch_takes_precedence_over_the_pool() -> None:
    one, two, three = openai(faults={0: QUOTA}), openai(), anthropic(Turn(Say("Here.")))
    tap = Tap(held=anyio.Event())
    async with runtime_with(a=one, b=two, c=three, pools=pool("a", "b"), transport=tap) as runtime:
        session = await runtime.open("pool")
        async with session.stream("Tell me.") as events:
            await tap.begun.wait()
            await session.switch("c")
            assert tap.held is not None
            tap.held.set()
            seen = [event async for event in events]
        assert isinstance(seen[-1], CompleteEvent)
        assert [at.binding.backend for at in seen[-1].result.attempts] == ["a", "c"]
        assert [e.type for e in seen].count("switch_applied") == 1
        assert (await session.ask("And?")).binding.backend == "c"
        assert two.received == 0


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-5", "REQ-915-050")
async def test_a_queued_switch_does_not_continue_a_partly_shown_answer() -> None:
    one, two = openai(ANSWER, faults={0: Stall(after_bytes=1500)}), anthropic()
    limits = BackendLimits(attempts=1, idle_timeout=1)
    async with runtime_with(a=one, b=two, pools=pool("a"), backend=limits) as runtime:
        session = await runtime.open("pool")
        async with session.stream("Tell me.") as events:
            seen = []
            async for event in events:
                seen.append(event)
                if isinstance(event, TextEvent) and event.offset == 2:
                    assert await session.switch("b") == SwitchOutcome("b", "queued", 1)
        assert isinstance(seen[-1], ErrorEvent)
        assert two.received == 0
        assert (await session.ask("And?")).binding.backend == "b"


@pytest.mark.parametrize("first", [openai, anthropic])
@pytest.mark.requirement("PROMISE-1")
async def test_a_structurally_refused_request_is_rewritten_once_without_failover(first: Made) -> None:
    gate = Gate()
    gate.open("a")
    refusal = Status(400, message=STRUCTURAL[first])
    one = first(Turn(Call("work", {"name": "a"})), Turn(Say("Rewritten.")), faults={1: refusal})
    two = openai()
    async with runtime_with(a=one, b=two, pools=pool("a", "b")) as runtime:
        session = await runtime.open("pool", tools=[gate.tool])
        answer = await session.ask("Do it.")
        assert (answer.status, answer.text) == ("complete", "Rewritten.")
        assert [at.binding.backend for at in answer.attempts] == ["a"]
        began = [event for event in log(runtime, session) if isinstance(event, EpochBegan)]
        assert [(event.epoch, event.reason, event.plain) for event in began] == [(1, "refusal", True)]
        assert runtime._refused_requests.count == 1
        (refused,) = answer.refusals
        assert (refused.binding.backend, refused.kind) == ("a", "transcript")
        assert refused.reason == STRUCTURAL[first]
        assert (await session.ask("And?")).refusals == ()
    assert two.received == 0
    assert one.refusals == []
    assert any("a is done" in block for _, block in blocks(bodies(one)[2]))


@pytest.mark.requirement("PROMISE-1")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_second_structural_refusal_fails_over_and_is_reported(
    stream: bool,
) -> None:
    gate = Gate()
    gate.open("a")
    refusal = Status(400, message=STRUCTURAL[openai])
    one = openai(Turn(Call("work", {"name": "a"})), faults={1: refusal, 2: refusal})
    two = anthropic(Turn(Say("Here.")))
    async with runtime_with(a=one, b=two, pools=pool("a", "b"), stream=stream) as runtime:
        session = await runtime.open("pool", tools=[gate.tool])
        answer = await session.ask("Do it.")
        assert (answer.status, answer.text) == ("complete", "Here.")
        assert [(at.binding.backend, at.status) for at in answer.attempts] == [
            ("a", "handed_over"),
            ("b", "complete"),
        ]
        failed = answer.attempts[0]
        assert failed.error == STRUCTURAL[openai]
        assert failed.cause is not None
        assert failed.cause.kind == "transcript"
        assert [(each.binding.backend, each.kind) for each in answer.refusals] == [("a", "transcript")] * 2
        assert runtime._refused_requests.count == len(runtime.refusals) == 2
        assert runtime.stats().backends["a"].tools.tool_api_400_total == 2
    assert (one.received, two.received) == (3, 1)
    assert two.refusals == []


@pytest.mark.requirement("PROMISE-1")
async def test_without_failover_on_refusal_a_second_refusal_fails_the_ask() -> None:
    gate = Gate()
    gate.open("a")
    refusal = Status(400, message=STRUCTURAL[openai])
    one = openai(Turn(Call("work", {"name": "a"})), faults={1: refusal, 2: refusal})
    two = anthropic(Turn(Say("Here.")))
    async with runtime_with(a=one, b=two, pools=pool("a", "b", on_refusal=False)) as runtime:
        session = await runtime.open("pool", tools=[gate.tool])
        events = await gather_events(session, "Do it.")
        assert isinstance(events[-1], ErrorEvent)
        assert len(events[-1].result.refusals) == 2
        assert (one.received, two.received) == (3, 0)
        await session.switch("b")
        assert (await session.ask("And?")).text == "Here."
        assert runtime._refused_requests.count == 2
    assert two.refusals == []


@pytest.mark.requirement("PROMISE-1")
async def test_a_refused_request_is_never_sent_again_unchanged() -> None:
    """A rewritten transcript with the same bytes would be refused again."""
    refusal = Status(400, message=STRUCTURAL[openai])
    async with scripted(openai(faults={0: refusal})) as (server, runtime, session):
        assert (await session.ask("Do it.", check=False)).status == "failed"
        assert runtime._refused_requests.count == 1
    assert server.received == 1


@pytest.mark.requirement("PROMISE-1", "U-08")
async def test_a_structural_refusal_is_counted_and_its_redacted_form_is_passed_to_on_refusal(
    tmp_path: Path,
) -> None:
    words = "This is nobody's business."
    found, told = list[RedactedRequest](), anyio.Event()

    def hook(reproduction: RedactedRequest) -> None:
        found.append(reproduction)
        told.set()

    refusal = Status(400, message=f"{STRUCTURAL[openai]}: {words}")
    for to in (hook, tmp_path / "refused"):
        one = openai(faults={0: refusal})
        two = openai(Turn(Say("Here.")))
        async with runtime_with(a=one, b=two, pools=pool("a", "b"), on_refusal=to) as runtime:
            session = await runtime.open("pool", id="trip")
            assert (await session.ask(words)).status == "complete"
            provider = runtime._backends.provider("a", runtime.config.backend("a").binding)
            assert (await provider.ask(Counters()))["tool_api_400_total"] == 1
            if to is hook:
                await told.wait()
    (reproduction,) = found
    (file,) = (tmp_path / "refused").iterdir()
    written = json.loads(file.read_text())
    assert (written["session"], written["backend"], written["by"]) == ("trip", "a", "provider")
    assert written["fault_class"] == reproduction.fault_class == "rendering"
    assert written["request"] == json.loads(reproduction.request)
    assert words not in file.read_text()
    assert f"[{len(words)} characters]" in file.read_text()


async def test_refusals_beyond_the_queue_limit_are_not_passed_to_on_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dumps, "MAX_QUEUED", 1)
    found = list[RedactedRequest]()
    refusal = Status(400, message=STRUCTURAL[openai])
    async with runtime_with(
        a=openai(faults=lambda number, request: refusal), on_refusal=found.append
    ) as runtime:
        full = dumps.Dumps(found.append)
        assert [full.try_reserve() for _ in range(2)] == [True, False]
        monkeypatch.setattr(dumps, "MAX_QUEUED", 0)
        assert (await (await runtime.open("a")).ask("Hello.", check=False)).status == "failed"
        assert runtime._refused_requests.count == len(runtime.refusals) == 1
    assert found == []


@pytest.mark.requirement("PROMISE-12")
@pytest.mark.parametrize("raised", [RuntimeError("mine"), SystemExit("mine")])
async def test_an_exception_in_the_on_refusal_hook_has_no_effect(raised: BaseException) -> None:
    def hook(_: RedactedRequest) -> None:
        raise raised

    refusal = Status(400, message=STRUCTURAL[openai])
    async with runtime_with(a=openai(faults={0: refusal}), on_refusal=hook) as runtime:
        session = await runtime.open("a")
        assert (await session.ask("One.", check=False)).status == "failed"
        assert (await session.ask("Two.")).status == "complete"


@pytest.mark.requirement("PROMISE-10")
async def test_a_cancel_at_any_moment_of_a_failover_ends_the_ask(anyio_backend: str) -> None:
    for steps in spread(range(0, 80, 2), LOOPS.index(anyio_backend)):
        one, two = openai(faults=lambda number, request: QUOTA), anthropic(faults={0: Stall()})
        async with runtime_with(a=one, b=two, pools=pool("a", "b")) as runtime:
            session = await runtime.open("pool")
            async with session.stream("Tell me.") as events:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                await session.cancel()
                seen = [event async for event in events]
            assert seen[-1].type == "complete"
            two.faults = {}
            assert (await session.ask("Again.")).status == "complete"


@pytest.mark.requirement("PROMISE-1", "REQ-915-043")
async def test_a_backend_without_its_key_fails_the_ask_and_a_switch_recovers() -> None:
    environ: dict[str, str] = {"KEY": "k"}
    one, two = openai(), anthropic()
    async with runtime_with(
        a=one, b=two, environ=environ, auth={"a": "KEY"}, pools=pool("a", "b")
    ) as runtime:
        session = await runtime.open("a")
        assert (await session.ask("One.")).status == "complete"
        environ.clear()
        events = await gather_events(session, "Two.")
        assert isinstance(events[-1], ErrorEvent)
        assert "KEY" in events[-1].result.error
        await session.switch("b")
        assert (await session.ask("Three.")).status == "complete"


@FAMILIES
@pytest.mark.requirement("REQ-915-004", "REQ-915-012", "REQ-915-043")
async def test_a_failover_after_a_broken_stream_runs_none_of_its_tool_calls(
    first: Made, second: Made
) -> None:
    gate = Gate()
    turn = Turn(Call("work", {"name": "a"}), Call("work", {"name": "b" * 3000}))
    one, two = first(turn, faults={0: Disconnect(after_bytes=4000)}), second(Turn(Say("Here.")))
    async with runtime_with(a=one, b=two, pools=pool("a", "b")) as runtime:
        session = await runtime.open("pool", tools=[gate.tool])
        answer = await session.ask("Do it.")
        assert (answer.status, answer.binding.backend) == ("complete", "b")
        for item in (await session.ledger()).interactions():
            assert item.reason == "never_started"
        assert gate.runs == []
    assert two.refusals == []
    assert_paired(bodies(two)[0])
