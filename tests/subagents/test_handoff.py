"""Handoffs: the turn ends, and the ask continues on another target."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from actors import Tool, handoff, tool
from actors.config import PoolSettings
from actors.core.log.call_events import Returned
from actors.core.log.events import AskStarted, LogEvent, SwitchApplied, TurnEnded, TurnStarted
from actors.errors import ConfigError
from actors.session.turn_changes import MAX_HANDOVERS
from actors.testing import SERVER_ERROR, Call, Say, Turn
from actors.tools.tool import Handover
from tests.runtime_support import (
    Gate,
    anthropic,
    assert_paired,
    bodies,
    gather_events,
    log,
    openai,
    results,
    runtime_with,
)

pytestmark = pytest.mark.anyio

HANDS_OVER = Turn(Say("One moment."), Call("to_b"))
GO_ON = Turn(Say("Here is B."))
TO_B = handoff("to_b", "Hand over to B.", target="b")


def events_of(events: list[LogEvent], *kinds: type[LogEvent]) -> list[LogEvent]:
    return [event for event in events if isinstance(event, kinds)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target": None}, "target= takes the name of a target, not NoneType"),
        ({"target": "b", "system": 5}, "system= takes a string, not int"),
        ({"target": "b", "tools": "files"}, "tools= of a handoff must be a list, not str"),
        ({"target": "b", "tools": iter(())}, "tools= of a handoff must be a list, not tuple_iterator"),
    ],
    ids=["target", "system", "text", "iterator"],
)
def test_invalid_options_of_a_handoff_are_rejected_at_its_definition(
    options: Any, says: str
) -> None:  # Any: any value that a program may pass
    with pytest.raises(ConfigError) as refused:
        handoff("to_b", "Hand over to B.", **options)
    assert str(refused.value).startswith(says)


async def test_a_handoff_continues_the_ask_on_its_target_without_a_new_message() -> None:
    above, other = openai(HANDS_OVER), anthropic(GO_ON, Turn(Say("Still B.")))
    async with runtime_with(a=above, b=other) as runtime:
        session = await runtime.open("a", tools=[TO_B])
        result = await session.ask("Go.")
        assert session.target == "b"
        assert (await session.ask("And now?")).text == "Still B."
        events = log(runtime, session)
    assert (result.text, result.status, result.binding.backend) == ("Here is B.", "complete", "b")
    assert [(each.binding.backend, each.status) for each in result.attempts] == [
        ("a", "handed_over"),
        ("b", "complete"),
    ]
    assert result.rounds == 2
    first = bodies(other)[0]
    assert_paired(first)
    assert [message["role"] for message in first["messages"]] == ["user", "assistant", "user"]
    assert list(results(first).values()) == ["The conversation was handed over. Continue it."]
    assert len(events_of(events, AskStarted)) == 2
    told = events_of(events, Returned, SwitchApplied, TurnEnded, TurnStarted)
    assert [type(event) for event in told[:5]] == [
        TurnStarted,
        Returned,
        SwitchApplied,
        TurnEnded,
        TurnStarted,
    ]
    assert len(bodies(above)) == 1


async def test_other_calls_in_the_message_of_a_handoff_run_before_its_turn_ends() -> None:
    gate = Gate()
    both = Turn(Call("to_b"), Call("work", {"name": "a"}))
    other = openai(GO_ON)
    async with runtime_with(a=openai(both), b=other) as runtime:
        session = await runtime.open("a", tools=[TO_B, gate.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            assert bodies(other) == []
            gate.open("a")
    assert list(results(bodies(other)[0]).values())[1] == "a is done"


async def test_a_handoff_is_shown_as_a_switch_and_a_turn_of_the_same_ask() -> None:
    async with runtime_with(a=openai(HANDS_OVER), b=openai(GO_ON)) as runtime:
        session = await runtime.open("a", tools=[TO_B])
        seen = await gather_events(session, "Go.")
        late = [event async for event in session.events(follow=False)]
    for events in (seen, late):
        kinds = ("switch_applied", "turn_ended", "turn_started")
        assert [event.type for event in events if event.type in kinds] == [
            "turn_started",
            "switch_applied",
            "turn_ended",
            "turn_started",
            "turn_ended",
        ]


async def test_a_handoff_to_a_pool_can_fail_over() -> None:
    async with runtime_with(
        a=openai(HANDS_OVER),
        b=openai(faults=lambda number, request: SERVER_ERROR),
        c=openai(GO_ON),
        pools={"both": PoolSettings(members=("b", "c"), policy="failover")},
    ) as runtime:
        session = await runtime.open("a", tools=[handoff("to_b", "Hand over.", target="both")])
        result = await session.ask("Go.")
        assert session.target == "both"
    assert (result.text, [each.binding.backend for each in result.attempts]) == (
        "Here is B.",
        ["a", "b", "c"],
    )


@pytest.mark.parametrize("why", ["denied", "raises"])
async def test_a_handoff_call_that_fails_or_is_denied_causes_no_handoff(why: str) -> None:
    made = handoff("to_b", "Hand over.", target="b", approval="deny")
    if why == "raises":
        made = failing_handoff()
    async with runtime_with(a=openai(HANDS_OVER, Turn(Say("Then I go on."))), b=openai()) as runtime:
        session = await runtime.open("a", tools=[made])
        result = await session.ask("Go.")
        assert session.target == "a"
    assert result.text == "Then I go on."


def failing_handoff() -> Tool[..., Any]:  # Any: any function
    @tool
    async def to_b() -> str:
        """Hand over."""
        raise LookupError("nobody there")

    return replace(to_b, _handover=Handover(target="b"))


async def test_a_handoff_to_an_unusable_target_fails_the_ask() -> None:
    made = handoff("to_b", "Hand over.", target="nowhere")
    async with runtime_with(a=openai(HANDS_OVER, Turn(Say("Again."))), b=openai()) as runtime:
        session = await runtime.open("a", tools=[made])
        result = await session.ask("Go.", check=False)
        assert session.target == "a"
        assert (await session.ask("And now?")).text == "Again."
    assert result.status == "failed"
    assert "the ask cannot be handed over: " in result.error
    assert "nowhere" in result.error


async def test_a_queued_switch_takes_precedence_over_a_handoff() -> None:
    gate = Gate()
    both = Turn(Call("to_b"), Call("work", {"name": "a"}))
    async with runtime_with(a=openai(both), b=openai(), c=openai(GO_ON)) as runtime:
        session = await runtime.open("a", tools=[TO_B, gate.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            assert (await session.switch("c")).status == "queued"
            gate.open("a")
        assert session.target == "c"


async def test_the_number_of_handoffs_back_and_forth_in_an_ask_is_limited() -> None:
    async with runtime_with(
        a=openai(*[Turn(Call("to_b"))] * 99), b=openai(*[Turn(Call("to_a"))] * 99)
    ) as runtime:
        session = await runtime.open("a", tools=[TO_B, handoff("to_a", "Hand over.", target="a")])
        result = await session.ask("Go.", check=False)
    assert result.status == "failed"
    assert f"handed over {MAX_HANDOVERS} times" in result.error
    assert len(result.attempts) == MAX_HANDOVERS + 1


async def test_a_cancel_after_a_handoff_cancels_the_ask() -> None:
    gate = Gate()
    async with runtime_with(a=openai(HANDS_OVER), b=openai(Turn(Call("work", {"name": "a"})))) as runtime:
        session = await runtime.open("a", tools=[TO_B, gate.tool])
        async with anyio.create_task_group() as tasks:
            ended: list[str] = []

            async def ask() -> None:
                ended.append((await session.ask("Go.")).status)

            tasks.start_soon(ask)
            await gate.started("a")
            assert await session.cancel()
        assert session.target == "b"
    assert ended == ["cancelled"]
