"""A subagent shares the rest of its parent's budget, and its usage counts in that budget."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors import Binding, Budget, Session, ToolContext, subagent, tool
from actors.core.log.events import LogEvent, SubagentUsage
from actors.core.settings.spending import SessionUsage, remaining_budget
from actors.core.values.stream import Usage
from actors.errors import OverBudget
from actors.kernel.event_loop import event_loop
from actors.provider.budgets import Demand, Share, SharedBudget
from actors.runtime.runtime import Runtime
from actors.session.commands import GetState
from actors.testing import Call, OpenAIServer, Say, Stall, Turn
from tests.runtime_support import Gate, bodies, log, openai, results, runtime_with

pytestmark = pytest.mark.anyio

DELEGATES = Turn(Call("helper", {"task": "Find the price."}))
WORKS = Turn(Call("work", {"name": "a"}))
FOUND = Turn(Say("120."))
DONE = Turn(Say("It costs 120."))


def usage_events(events: list[LogEvent]) -> list[SubagentUsage]:
    return [event for event in events if isinstance(event, SubagentUsage)]


async def open_parent(
    runtime: Runtime, budget: Budget | None, **options: Any
) -> Session:  # Any: options of `open`
    gate = Gate()
    gate.open("a")
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool])
    return await runtime.open("a", tools=[made], id="trip", budget=budget, **options)


async def usage_of(session: Session) -> SessionUsage:
    state = await session._session.ask(GetState())  # internal state
    assert state.used is not None
    return state.used


async def test_usage_of_a_subagent_counts_in_the_budget_but_not_in_the_result_of_its_parent() -> None:
    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(WORKS, FOUND)) as runtime:
        session = await open_parent(runtime, Budget(rounds=10, tokens=10**6), tenant="x")
        result = await session.ask("Go.")
        (spent,) = usage_events(log(runtime, session))
        total = await usage_of(session)
        below = runtime._storage.read("trip-c1")[0]
    assert (spent.call_id, spent.session, spent.used.rounds) == ("hist_tool_1", "trip-c1", 2)
    assert spent.used.tokens > 0
    assert total.rounds == 4
    assert result.rounds == 2
    assert total.tokens == spent.used.tokens + result.usage.input_tokens + result.usage.output_tokens
    assert getattr(below, "tenant", None) == "x"


async def test_a_subagent_stops_when_the_budget_of_its_parent_is_used_up() -> None:
    """The budget is two rounds. One is used when the subagent begins, but the subagent needs two."""
    async with runtime_with(a=openai(DELEGATES, DONE), b=openai(WORKS, FOUND)) as runtime:
        session = await open_parent(runtime, Budget(rounds=2))
        result = await session.ask("Go.", check=False)
        (known,) = (await session.ledger()).interactions()
        assert (await usage_of(session)).rounds == 2
        with pytest.raises(OverBudget):
            await session.ask("More?")
    assert result.status == "failed"
    assert "budget of 2 rounds" in result.error
    assert known.completion is not None
    assert "budget of 1 rounds is used up" in str(known.completion.error)


THREE = Turn(*[Call("helper", {"task": f"Find {number}."}) for number in range(3)], usage=(90, 10))


def call_twice_then_answer(request: dict[str, Any]) -> Turn:  # Any: a request's body
    """Answer every task with two tool calls and then a text; each request uses 100 tokens."""
    results = sum(message["role"] == "tool" for message in request["messages"])
    said = Call("work", {"name": "a"}) if results < 2 else Say("120.")
    return Turn(said, usage=(90, 10))


@pytest.mark.parametrize(
    ("budget", "rounds"),
    [
        (Budget(rounds=4), 4),
        (Budget(tokens=150), 2),
        (Budget(tokens=550), 6),
        (Budget(rounds=100, tokens=10**6), 11),
    ],
)
async def test_concurrent_subagents_exceed_the_budget_no_more_than_a_single_session(
    budget: Budget, rounds: int
) -> None:
    """Each of three subagents needs three rounds, their parent two. A session may exceed a budget by one request."""
    below = OpenAIServer(call_twice_then_answer)
    async with runtime_with(a=openai(THREE, Turn(Say("Done."), usage=(90, 10))), b=below) as runtime:
        session = await open_parent(runtime, budget)
        result = await session.ask("Go.", check=False)
        spent = await usage_of(session)
    assert (spent.rounds, spent.tokens) == (rounds, rounds * 100)
    assert len(below.requests) == rounds - (1 if rounds < 11 else 2)
    assert (result.status == "complete") is (rounds == 11)


async def test_a_subagent_waiting_for_budget_ends_when_its_ask_is_cancelled() -> None:
    """One request stays in flight, and its reservation leaves no budget for another."""
    asked = anyio.Event()

    def stall(number: int, _: object) -> Stall:
        asked.set()
        return Stall()

    async with runtime_with(a=openai(THREE, DONE), b=openai(FOUND, faults=stall)) as runtime:
        session = await open_parent(runtime, Budget(tokens=150))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await asked.wait()
            while len(runtime.sessions) < 4:
                await anyio.lowlevel.checkpoint()
            assert await session.cancel()
        assert list(runtime.sessions) == ["trip"]
        assert (await usage_of(session)).tokens == 100
        assert [call.status for call in (await session.ledger()).interactions()] == ["cancelled"] * 3


async def test_a_subagent_waiting_for_budget_can_be_cancelled_without_its_parent() -> None:
    asked, ended = anyio.Event(), list[str]()

    def stall(number: int, _: object) -> Stall:
        asked.set()
        return Stall()

    @tool
    async def helper(task: str, context: ToolContext[None]) -> str:
        """Help."""
        async with (
            context.subagent("b") as one,
            context.subagent("b") as other,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(one.ask, task)
            await asked.wait()

            async def ask() -> None:
                ended.append((await other.ask(task)).status)
                tasks.cancel_scope.cancel()

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            assert await other.cancel()
        return "done"

    async with runtime_with(
        a=openai(Turn(Call("helper", {"task": "Go."}), usage=(90, 10)), DONE), b=openai(FOUND, faults=stall)
    ) as runtime:
        session = await runtime.open("a", tools=[helper], id="trip", budget=Budget(tokens=250))
        with anyio.fail_after(20):
            assert (await session.ask("Go.")).status == "complete"
    assert ended == ["cancelled"]


A = Binding("a", "m")


def shared_budget(budget: Budget, before: SessionUsage) -> SharedBudget:
    return SharedBudget(budget, before, lambda _, usage: usage.output_tokens / 10, event_loop())


async def test_a_request_in_flight_counts_against_the_budget_with_its_estimated_usage() -> None:
    for budget in (Budget(rounds=6), Budget(tokens=800), Budget(money=8.0)):
        # each earlier request used 100 tokens, 10 of them output
        account = shared_budget(budget, SessionUsage(2, 0.0, ((A, Usage(180, 20)),)))
        one, other, third = (Share(account) for _ in range(3))
        stopped, demand = anyio.Event(), Demand(400, 4.0)
        for share in (one, other):
            assert await share.admit(demand, stopped.is_set) is None
        one.record_usage(A, Usage(180, 20), is_round=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(third.admit, demand, stopped.is_set)
            await anyio.wait_all_tasks_blocked()
            assert third.is_in_flight is (budget.rounds is not None)
            other.release()
            await anyio.wait_all_tasks_blocked()
            assert third.is_in_flight
        third.record_usage(A, Usage(900, 100), is_round=True)
        told = await one.admit(demand, stopped.is_set)
        assert (told is None) is (budget.rounds is not None)


async def test_budget_used_by_one_subagent_is_not_available_to_another_subagent() -> None:
    account = shared_budget(
        Budget(rounds=4, tokens=1000, seconds=60.0), SessionUsage(1, 5.0, ((A, Usage(90, 10)),))
    )
    assert account.remaining == Budget(3, 900)
    Share(account).record_usage(A, Usage(300, 100), is_round=True)
    assert account.remaining == Budget(2, 500)
    Share(account).record_usage(A, Usage(400, 100), is_round=False)
    with pytest.raises(
        OverBudget, match="The subagent cannot be opened: the session's budget of 1000 tokens is used up"
    ):
        _ = account.remaining


async def test_without_remaining_budget_no_subagent_is_opened() -> None:
    twice = Turn(Call("helper", {"task": "One."}), Say("Wait."))
    async with runtime_with(a=openai(twice, DONE), b=openai(FOUND)) as runtime:
        session = await open_parent(runtime, Budget(rounds=1))
        assert (await session.ask("Go.", check=False)).status == "failed"
        (known,) = (await session.ledger()).interactions()
        assert sorted(each.id for each in runtime._storage.sessions()) == ["trip"]
    assert known.completion is not None
    assert str(known.completion.error).startswith("OverBudget: The subagent cannot be opened: ")


async def test_without_a_budget_no_usage_is_recorded() -> None:
    above = openai(DELEGATES, DONE)
    async with runtime_with(a=above, b=openai(WORKS, FOUND)) as runtime:
        session = await open_parent(runtime, None)
        await session.ask("Go.")
        assert usage_events(log(runtime, session)) == []
    assert list(results(bodies(above)[-1]).values()) == ["120."]


def test_remaining_budget_is_the_budget_minus_its_usage() -> None:
    spent = SessionUsage(3, 9.0, ((Binding("a", "b"), Usage(100, 20)),))
    budget = Budget(rounds=10, tokens=1000, money=5.0, seconds=60.0)
    assert remaining_budget(budget, spent, lambda _, usage: usage.output_tokens / 10) == Budget(
        7, 880, 3.0, None
    )
    both = spent.with_subagent(
        SessionUsage(1, 2.0, ((Binding("a", "b"), Usage(1, 2)), (Binding("c", "d"), Usage(5, 5))))
    )
    assert both == SessionUsage(
        4, 9.0, ((Binding("a", "b"), Usage(101, 22)), (Binding("c", "d"), Usage(5, 5)))
    )
