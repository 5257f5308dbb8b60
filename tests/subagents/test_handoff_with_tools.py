"""Handoffs with a system prompt and tools, which apply to the rest of the ask as `configure` would apply them."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from actors import ToolSource, handoff, tool
from actors.core.log.events import Configured, EpochBegan, SwitchApplied, TurnEnded
from actors.errors import ConfigError
from actors.testing import Call, Say, Script, Think, Turn
from actors.tools.toolsets import ToolItem
from tests.runtime.test_configure import declared_tools, find, look
from tests.runtime_support import Gate, anthropic, bodies, gather_events, log, openai, runtime_with
from tests.strict_hosts import strict_host
from tests.tools.test_toolsets import Bench

pytestmark = pytest.mark.anyio

HANDS_OVER = Turn(Say("One moment."), Call("to_b"))
GO_ON = Turn(Say("Here is B."))


def to_b(*tools: ToolItem, system: str | None = "You are B.") -> Any:  # Any: a tool
    return handoff("to_b", "Hand over to B.", target="b", system=system, tools=tools)


@tool
async def unseen() -> str:
    """Never offered."""
    return ""


async def test_the_next_turn_has_the_prompt_and_tools_of_the_handoff() -> None:
    above, other = (
        openai(HANDS_OVER),
        anthropic(Turn(Call("find", {})), GO_ON, Turn(Say("Still B."))),
    )
    async with runtime_with(a=above, b=other) as runtime:
        session = await runtime.open("a", tools=[to_b(find), look], system="You are A.")
        assert (await session.ask("Go.")).text == "Here is B."
        assert (await session.ask("And now?")).text == "Still B."
        assert (await session.history()).system == "You are B."
        events = log(runtime, session)
    assert declared_tools(above) == [["to_b", "look"]]
    assert declared_tools(other) == [["find"]] * 3
    assert ["You are B." in str(body["system"]) for body in bodies(other)] == [True] * 3
    assert other.refusals == []
    told = [event for event in events if isinstance(event, Configured | SwitchApplied | TurnEnded)]
    assert [type(event) for event in told[:3]] == [Configured, SwitchApplied, TurnEnded]
    assert told[0] == Configured("You are B.", ("find",), told[0].preamble)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("given", "system", "tools"),
    [
        ({"system": "You are B."}, "You are B.", ["to_b", "look"]),
        ({"system": None}, None, ["to_b", "look"]),
        ({"tools": [find]}, "You are A.", ["find"]),
        ({"tools": []}, "You are A.", []),
    ],
)
async def test_options_that_a_handoff_does_not_set_stay_unchanged(
    given: dict[str, Any],  # Any: options of a handoff
    system: str | None,
    tools: list[str],
) -> None:
    other = anthropic(GO_ON)
    made = handoff("to_b", "Hand over to B.", target="b", **given)
    async with runtime_with(a=openai(HANDS_OVER), b=other) as runtime:
        session = await runtime.open("a", tools=[made, look], system="You are A.")
        await session.ask("Go.")
        assert (await session.history()).system == system
    assert declared_tools(other) == [tools]


async def test_a_handoff_is_reported_as_a_configuration_change_in_the_turn_that_ends() -> None:
    async with runtime_with(a=openai(HANDS_OVER), b=openai(GO_ON)) as runtime:
        session = await runtime.open("a", tools=[to_b(find)])
        seen = await gather_events(session, "Go.")
        late = [event async for event in session.events(follow=False)]
    for events in (seen, late):
        told = [event.type for event in events]
        kept = [
            each for each in told if each in ("configured", "switch_applied", "turn_ended", "turn_started")
        ]
        assert kept == [
            "turn_started",
            "configured",
            "switch_applied",
            "turn_ended",
            "turn_started",
            "turn_ended",
        ]


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "openai_responses"])
async def test_reasoning_bound_to_the_old_prompt_is_not_sent_after_a_handoff(name: str) -> None:
    turns = [Turn(Think("hm"), Call("to_b")), Turn(Think("so"), Say("Here."))]
    server = strict_host(name, Script(turns), bound=True, interleaved=True)
    made = handoff("to_b", "Hand over.", target="here", system="You are B.", tools=[look])
    async with runtime_with(here=server) as runtime:
        session = await runtime.open("here", tools=[made], system="You are A.")
        assert (await session.ask("Go.")).text == "Here."
        epochs = [event.reason for event in log(runtime, session) if isinstance(event, EpochBegan)]
    assert epochs == ["configured"]
    assert server.refusals == []


async def test_two_handoffs_can_pass_the_conversation_back_and_forth() -> None:
    one: list[ToolItem] = [look]
    two: list[ToolItem] = [find]
    one.append(handoff("to_b", "Hand over.", target="b", system="You are B.", tools=two))
    two.append(handoff("to_a", "Hand over.", target="a", system="You are A.", tools=one))
    above = openai(Turn(Call("to_b")), Turn(Say("A again.")))
    other = openai(Turn(Call("to_a")))
    async with runtime_with(a=above, b=other) as runtime:
        session = await runtime.open("a", tools=one, system="You are A.")
        assert (await session.ask("Go.")).text == "A again."
    assert declared_tools(above) == [["look", "to_b"]] * 2
    assert declared_tools(other) == [["find", "to_a"]]


async def test_a_handoff_opens_its_own_toolsets_and_closes_the_previous_toolsets() -> None:
    notes: list[str] = []
    old, new = Bench("old", notes=notes), Bench("new", notes=notes)
    other = openai(Turn(Call("work", {})), GO_ON)
    async with runtime_with(a=openai(HANDS_OVER), b=other) as runtime:
        session = await runtime.open("a", tools=[to_b(new.source()), old.source()])
        assert (await session.ask("Go.")).text == "Here is B."
        await session.close()
    assert notes == ["old opened", "new opened", "old closed", "new closed"]


async def test_a_handoff_whose_toolset_fails_to_open_fails_the_ask() -> None:
    bench = Bench()
    bench.refuses = OSError("no")
    above = openai(HANDS_OVER, Turn(Say("Again.")))
    async with runtime_with(a=above, b=openai()) as runtime:
        session = await runtime.open("a", tools=[to_b(bench.source()), look], system="You are A.")
        result = await session.ask("Go.", check=False)
        assert session.target == "a"
        assert (await session.ask("And now?")).text == "Again."
        assert (await session.history()).system == "You are A."
    assert (result.status, "cannot be handed over" in result.error) == ("failed", True)
    assert declared_tools(above) == [["to_b", "look"]] * 2


async def test_a_cancel_while_a_handoff_opens_a_toolset_changes_nothing() -> None:
    bench = Bench()
    bench.holds = anyio.Event()
    async with runtime_with(a=openai(HANDS_OVER), b=openai()) as runtime:
        session = await runtime.open("a", tools=[to_b(bench.source())])
        ended: list[str] = []

        async def ask() -> None:
            ended.append((await session.ask("Go.")).status)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            with anyio.fail_after(20):
                await bench.opening.wait()
                assert await session.cancel()
        assert session.target == "a"
        assert [event for event in log(runtime, session) if isinstance(event, Configured)] == []
        assert runtime._host is not None
        assert runtime._host.toolsets._owners == []
    assert (ended, bench.notes) == (["cancelled"], [])


async def test_queued_changes_of_the_program_override_the_handoff() -> None:
    gate, bench = Gate(), Bench()
    both = Turn(Call("to_b"), Call("work", {"name": "a"}))
    other = openai(GO_ON)
    async with runtime_with(a=openai(both), b=other) as runtime:
        session = await runtime.open("a", tools=[to_b(bench.source()), gate.tool])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Go.")
            await gate.started("a")
            assert (await session.configure(tools=[look])).status == "queued"
            gate.open("a")
        assert (await session.history()).system == "You are B."
        assert bench.notes == ["bench opened", "bench closed"]
    assert declared_tools(other) == [["look"]]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: handoff("to_b", "Hand over.", target="b", system=5),  # type: ignore[arg-type]
        lambda: handoff("to_b", "Hand over.", target="b", tools="files"),
        lambda: handoff("to_b", "Hand over.", target="b", tools=iter([look])),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_handoff_is_rejected_at_its_definition(wrong: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        wrong()


def test_a_toolset_source_may_be_an_item_of_a_handoff() -> None:
    source = ToolSource(Bench().block, "bench")
    made = to_b(source, unseen)
    assert made._handover.tools == (source, unseen)
