"""A subagent may use what is left of the budget above, and what it used counts there."""

from typing import Any

import pytest

from actors import Budget, Session, subagent
from actors.commands import Look
from actors.core.events import Delegated, Event
from actors.core.spending import Used, left
from actors.core.stream import Usage
from actors.errors import OverBudget
from actors.runtime import Runtime
from actors.testing import Call, Say, Turn
from tests.runtime_support import Gate, bodies, hosting, log, openai, results

pytestmark = pytest.mark.anyio

DELEGATES = Turn(Call("helper", {"task": "Find the price."}))
WORKS = Turn(Call("work", {"name": "a"}))
FOUND = Turn(Say("120."))
DONE = Turn(Say("It costs 120."))


def delegated(events: list[Event]) -> list[Delegated]:
    return [event for event in events if isinstance(event, Delegated)]


async def opened(runtime: Runtime, budget: Budget | None, **options: Any) -> Session:  # Any: of `open`
    gate = Gate()
    gate.open("a")
    made = subagent("helper", "Helps.", target="b", tools=[gate.tool])
    return await runtime.open("a", tools=[made], id="trip", budget=budget, **options)


async def used(session: Session) -> Used:
    state = await session._session.ask(Look())  # no user can see it
    assert state.used is not None
    return state.used


async def test_what_a_subagent_used_counts_in_the_budget_above_and_not_in_the_asks_own_usage() -> None:
    async with hosting(a=openai(DELEGATES, DONE), b=openai(WORKS, FOUND)) as runtime:
        session = await opened(runtime, Budget(rounds=10, tokens=10**6), tenant="x")
        result = await session.ask("Go.")
        (spent,) = delegated(log(runtime, session))
        total = await used(session)
        below = runtime.storage.read("trip-c1")[0]
    assert (spent.call_id, spent.session, spent.used.rounds) == ("hist_tool_1", "trip-c1", 2)
    assert spent.used.tokens > 0
    assert total.rounds == 4
    assert result.rounds == 2
    assert total.tokens == spent.used.tokens + result.usage.input_tokens + result.usage.output_tokens
    assert getattr(below, "tenant", None) == "x"


async def test_a_subagent_stops_when_what_was_left_is_used_up_and_so_does_the_session_above() -> None:
    """One round is gone when the subagent begins, so one is left; it needs two."""
    async with hosting(a=openai(DELEGATES, DONE), b=openai(WORKS, FOUND)) as runtime:
        session = await opened(runtime, Budget(rounds=2))
        result = await session.ask("Go.")
        (known,) = (await session.ledger()).interactions()
        assert (await used(session)).rounds == 2
        with pytest.raises(OverBudget):
            await session.ask("More?")
    assert result.status == "failed"
    assert "budget of 2 rounds" in result.why
    assert known.completion is not None
    assert "budget of 1 rounds is used up" in str(known.completion.error)


async def test_where_nothing_is_left_no_subagent_is_opened_and_the_model_is_told() -> None:
    twice = Turn(Call("helper", {"task": "One."}), Say("Wait."))
    async with hosting(a=openai(twice, DONE), b=openai(FOUND)) as runtime:
        session = await opened(runtime, Budget(rounds=1))
        assert (await session.ask("Go.")).status == "failed"
        (known,) = (await session.ledger()).interactions()
        assert sorted(each.id for each in runtime.storage.sessions()) == ["trip"]
    assert known.completion is not None
    assert str(known.completion.error).startswith("OverBudget: No subagent is opened: ")


async def test_without_a_budget_nothing_is_counted_and_nothing_written() -> None:
    above = openai(DELEGATES, DONE)
    async with hosting(a=above, b=openai(WORKS, FOUND)) as runtime:
        session = await opened(runtime, None)
        await session.ask("Go.")
        assert delegated(log(runtime, session)) == []
    assert list(results(bodies(above)[-1]).values()) == ["120."]


def test_what_is_left_is_the_budget_without_what_was_used() -> None:
    from actors import Binding

    spent = Used(3, 9.0, ((Binding("a", "b"), Usage(100, 20)),))
    budget = Budget(rounds=10, tokens=1000, money=5.0, seconds=60.0)
    assert left(budget, spent, lambda _, usage: usage.output_tokens / 10) == Budget(7, 880, 3.0, None)
    both = spent.joined(Used(1, 2.0, ((Binding("a", "b"), Usage(1, 2)), (Binding("c", "d"), Usage(5, 5)))))
    assert both == Used(4, 9.0, ((Binding("a", "b"), Usage(101, 22)), (Binding("c", "d"), Usage(5, 5))))
