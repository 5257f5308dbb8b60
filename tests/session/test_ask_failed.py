"""A failed ask raises AskFailed; asks that end otherwise return a result."""

import copy
import pickle
from pathlib import Path

import anyio
import pytest

import actors
from actors.cli.exits import Exit, exit_for_error
from actors.core.data.jsonio import Json
from actors.core.log.call_events import Failed
from actors.core.stream_events.ask_events import AskResult, ErrorEvent
from actors.core.values.identity import CallId
from actors.errors import AskFailed, ConfigError, OverBudget
from actors.events import ApprovalDecision
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.testing import Call, OpenAIServer, Say, Status, Turn, serve
from actors.tools import Tool, ToolContext, tool
from tests.runtime.test_rebuild import crash
from tests.runtime_support import Gate, log, openai, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
ONE = CallId("hist_tool_1")
REFUSED = Status(401, message="Incorrect API key provided.")


def failing_server(*turns: Turn, at: int = 0, fault: Status = REFUSED) -> OpenAIServer:
    return OpenAIServer(list(turns), faults={at: fault})


async def test_a_failed_ask_raises_and_its_session_continues() -> None:
    async with runtime_with(a=failing_server(Turn(Say("Yes.")))) as runtime:
        session = await runtime.open("a")
        with pytest.raises(AskFailed, match="a:gpt gave no answer: Incorrect API key provided") as raised:
            await session.ask("Is it?")
        error = raised.value
        assert (error.result.status, error.result.text) == ("failed", "")
        assert error.result.attempts[-1].cause is not None
        assert (error.kind, error.status, error.can_retry) == ("config", 401, False)
        assert error.advice
        assert str(error).endswith(error.advice)
        assert (await session.ask("And now?")).text == "Yes."


async def test_with_check_false_a_failed_ask_returns_its_result() -> None:
    async with runtime_with(a=failing_server(), b=failing_server()) as runtime:
        left, right = await runtime.open("a"), await runtime.open("b")
        result = await left.ask("Is it?", check=False)
        with pytest.raises(AskFailed) as raised:
            await right.ask("Is it?")
        assert result.status == raised.value.result.status == "failed"
        assert result.error == raised.value.result.error


async def test_an_ask_can_be_repeated_after_a_transient_failure() -> None:
    overloaded = Status(529, message="Overloaded.")
    async with scripted(failing_server(Turn(Say("Yes.")), fault=overloaded)) as (_, _, session):
        with pytest.raises(AskFailed) as raised:
            await session.ask("Is it?")
        assert (raised.value.kind, raised.value.status, raised.value.can_retry) == ("transient", 529, True)
        assert (await session.ask("Is it?")).text == "Yes."


async def test_an_ask_that_exceeds_its_timeout_fails() -> None:
    gate = Gate()
    async with runtime_with(a=openai(Turn(Call("work", {"name": "a"})))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])
        with pytest.raises(AskFailed, match=r"^stopped: ") as raised:
            await session.ask("Do it.", timeout=0.05)
        assert (raised.value.kind, raised.value.status) == ("time", None)


async def _with_results(session: Session, check: bool) -> AskResult:
    return await session.ask(results={ONE: "found"}, check=check)


async def _with_approvals(session: Session, check: bool) -> AskResult:
    return await session.ask(approvals={ONE: ApprovalDecision("deny")}, check=check)


@pytest.mark.parametrize("go_on", [_with_results, _with_approvals])
async def test_a_failed_continuation_raises_ask_failed_unless_check_is_false(go_on: object) -> None:
    assert callable(go_on)
    for check in (True, False):
        async with scripted(failing_server(Turn(Call("look", {})), at=1), tools=[LOOK]) as (_, _, session):
            assert (await session.ask("Look.")).status == "awaiting"
            if not check:
                assert (await go_on(session, False)).status == "failed"
                continue
            with pytest.raises(AskFailed, match="Incorrect API key") as raised:
                await go_on(session, True)
            assert raised.value.result.rounds == 2


async def test_a_cancelled_ask_returns_a_result() -> None:
    gate = Gate()
    results: list[AskResult] = []
    async with runtime_with(a=openai(Turn(Call("work", {"name": "a"})))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])

        async def ask() -> None:
            results.append(await session.ask("Do it."))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await gate.started("a")
            assert await session.cancel()
    assert [result.status for result in results] == ["cancelled"]


async def test_an_ask_interrupted_by_a_restart_returns_a_result() -> None:
    gate = Gate()
    results: list[AskResult] = []
    async with runtime_with(a=openai(Turn(Call("work", {"name": "a"})), Turn(Say("Done.")))) as runtime:
        session = await runtime.open("a", tools=[gate.tool])

        async def ask() -> None:
            results.append(await session.ask("Do it."))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await gate.started("a")
            await crash(session, "scheduler")
        assert [result.status for result in results] == ["interrupted"]
        assert "restarted" in results[0].error
        assert (await session.ask("And now?")).status == "complete"


async def test_a_stream_ends_with_an_error_event_and_raises_nothing() -> None:
    async with scripted(failing_server()) as (_, _, session), session.stream("Is it?") as events:
        seen = [event async for event in events]
    assert [type(event) for event in seen].count(ErrorEvent) == 1
    assert isinstance(seen[-1], ErrorEvent)


async def test_a_rejected_ask_does_not_raise_ask_failed() -> None:
    async with runtime_with(a=openai(Turn(Say("Yes.")))) as runtime:
        session = await runtime.open("a", budget=actors.Budget(tokens=1))
        with pytest.raises(ConfigError):
            await session.ask("Is it?", max_rounds=0)
        await session.ask("Is it?")
        with pytest.raises(OverBudget):
            await session.ask("And now?")


async def test_the_caller_of_a_failed_subagent_sees_the_error_of_the_subagent() -> None:
    helper = actors.subagent("helper", "Helps.", target="b")
    server = openai(Turn(Call("helper", {"task": "Find out."})), Turn(Say("No luck.")))
    async with runtime_with(a=server, b=failing_server()) as runtime:
        session = await runtime.open("a", tools=[helper])
        assert (await session.ask("Do it.")).text == "No luck."
        (end,) = [event.error for event in log(runtime, session) if isinstance(event, Failed)]
    assert end.startswith(Json(b'"SubagentFailed: helper did not complete (failed): Incorrect API key'))


async def test_the_model_sees_the_ask_failed_error_that_a_tool_raises() -> None:
    @tool
    async def delegate(context: ToolContext[None]) -> str:
        """Ask a child session."""
        async with context.subagent("b") as child:
            return (await child.ask("Is it?")).text

    server = openai(Turn(Call("delegate", {})), Turn(Say("Well.")))
    async with runtime_with(a=server, b=failing_server()) as runtime:
        session = await runtime.open("a", tools=[delegate])
        assert (await session.ask("Do it.")).text == "Well."
        (end,) = [event.error for event in log(runtime, session) if isinstance(event, Failed)]
    assert end == Json(b'"AskFailed: Incorrect API key provided."')


async def test_a_tool_that_asks_a_child_session_receives_ask_failed() -> None:
    seen: list[AskFailed] = []

    @tool
    async def delegate(context: ToolContext[None]) -> str:
        """Ask a child session."""
        async with context.subagent("b") as child:
            try:
                return (await child.ask("Is it?")).text
            except AskFailed as error:
                seen.append(error)
                return "it failed"

    async with runtime_with(
        a=openai(Turn(Call("delegate", {})), Turn(Say("Well."))), b=failing_server()
    ) as runtime:
        session = await runtime.open("a", tools=[delegate])
        assert (await session.ask("Do it.")).text == "Well."
    assert [error.status for error in seen] == [401]


async def test_ask_failed_gives_the_same_advice_as_the_command_line() -> None:
    server = OpenAIServer([Turn(Say("Yes."))])
    with anyio.fail_after(60):
        async with serve(server):
            root = server.base_url.removesuffix("/v1")
            async with Runtime(environ={"OPENAI_BASE_URL": root}) as runtime:
                session = await runtime.open("openai_chat:m")
                with pytest.raises(AskFailed, match=f"ends in /v1: try {server.base_url}") as raised:
                    await session.ask("Is it?")
    assert raised.value.status == 404


async def test_an_error_about_a_bad_api_key_names_its_environment_variable(tmp_path: Path) -> None:
    server = failing_server()
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(server):
            path.write_text(
                f'[backends.a]\nkind = "openai"\nmodel = "m"\nauth = "OUR_KEY"\nbase_url = "{server.base_url}"\n'
            )
            async with Runtime(path, environ={"OUR_KEY": "secret-of-ours"}) as runtime:
                session = await runtime.open("a")
                with pytest.raises(AskFailed, match="the key in OUR_KEY") as raised:
                    await session.ask("Is it?")
    assert "secret-of-ours" not in f"{raised.value!r} {raised.value.result!r}"


async def test_ask_failed_can_be_copied_pickled_and_mapped_to_an_exit_code() -> None:
    async with scripted(failing_server()) as (_, _, session):
        with pytest.raises(AskFailed) as raised:
            await session.ask("Is it?")
    error = raised.value
    for other in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert str(other) == str(error)
        assert (other.kind, other.status, other.can_retry, other.advice) == (
            error.kind,
            error.status,
            error.can_retry,
            error.advice,
        )
        assert other.result == error.result
    assert exit_for_error(error) is Exit.AUTH
    assert actors.AskFailed is AskFailed
    assert issubclass(AskFailed, actors.ActorsError)
