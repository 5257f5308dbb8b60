"""Guards against loops: a model that repeats itself is warned or stopped, per tool and within one turn."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from actors.config import RuntimeLimits
from actors.core.turn.guards import NOTE, Repeats
from actors.core.values.identity import CallId
from actors.errors import ConfigError
from actors.runtime.handle import Session
from actors.strict.server import LoopbackServer
from actors.testing import Call, OpenAIServer, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import anthropic, assert_paired, bodies, openai, results, runtime_with
from tests.scripted import scripted

pytestmark = pytest.mark.anyio

MakeServer = Callable[..., LoopbackServer]
SERVERS = pytest.mark.parametrize("make_server", [openai, anthropic])
NOTED = f"[{NOTE}]"
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)


def evict(session: Session) -> None:
    """Drop everything of a waiting session but its log."""
    assert session._lifecycle.passivate()
    session._lifecycle.evict()


class CountingTools:
    """Tools that record their runs. One returns the same result for the same city, another a new one each time."""

    def __init__(self) -> None:
        self.runs: list[str] = []

        @tool(effects="pure")
        async def weather(city: str, unit: str = "C") -> str:
            """Weather of a city."""
            self.runs.append(city)
            return f"{city}: 21 {unit}"

        @tool
        async def progress(job: str) -> dict[str, int]:
            """Progress of a job."""
            self.runs.append(job)
            return {"done": 10 * len(self.runs)}

        @tool
        async def stock(part: str) -> dict[str, int]:
            """Number of parts in stock."""
            if part == "none":
                raise LookupError("no such part")
            return {"left": 3}

        self.tools: list[Tool[..., Any]] = [weather, progress, stock]  # Any: any function


def repeat(*calls: Call, times: int) -> list[Turn]:
    return [Turn(*calls)] * times


def last_results(server: LoopbackServer) -> list[str]:
    """Return the results of the last request, in call order."""
    return list(results(bodies(server)[-1]).values())


@SERVERS
async def test_a_tool_called_wrongly_too_often_is_disabled_for_the_turn(make_server: MakeServer) -> None:
    desk, wrong = CountingTools(), Call("weather", {"town": "Oslo"})
    script = [Turn(wrong, Call("progress", {"job": str(number)})) for number in range(3)]
    good = Turn(Call("weather", {"city": "Oslo"}), Call("progress", {"job": "last"}))
    server = make_server(*script, good, Turn(Say("Done.")), good, Turn(Say("Next.")))
    async with runtime_with(a=server, limits=RuntimeLimits(max_tool_corrections=3)) as runtime:
        session = await runtime.open("a", tools=desk.tools)
        assert (await session.ask("Do it.")).text == "Done."
        assert desk.runs == ["0", "1", "2", "last"]
        *_, refused, went_on = last_results(server)
        assert "not available any more in this turn" in refused
        assert went_on == '{"done":40}'
        assert (await session.ask("And?")).text == "Next."
        assert desk.runs[4:] == ["Oslo", "last"]
    assert server.refusals == []


async def test_ten_wrong_calls_in_one_message_count_as_one_mistake() -> None:
    desk = CountingTools()
    server = openai(
        Turn(*[Call("weather", {"town": str(number)}) for number in range(10)]),
        Turn(Call("weather", {"city": "Oslo"})),
        Turn(Say("Done.")),
    )
    async with runtime_with(a=server, limits=RuntimeLimits(max_tool_corrections=2)) as runtime:
        session = await runtime.open("a", tools=desk.tools)
        await session.ask("Do it.")
    assert desk.runs == ["Oslo"]


@SERVERS
async def test_the_result_of_a_repeated_call_notes_the_repetition(make_server: MakeServer) -> None:
    desk = CountingTools()
    calls = [
        {"city": "Oslo", "unit": "F"},
        {"unit": "F", "city": "Oslo"},
        {"city": "Oslo", "unit": "F"},
        {"city": "Oslo", "unit": "F"},
    ]
    server = make_server(*[Turn(Call("weather", each)) for each in calls], Turn(Say("Done.")))
    async with scripted(server, tools=desk.tools) as (_, _, session):
        assert (await session.ask("How warm is it?")).text == "Done."
    plain = "Oslo: 21 F"
    assert last_results(server) == [plain, plain, f"{plain}\n\n{NOTED}", f"{plain}\n\n{NOTED}"]
    assert desk.runs == ["Oslo"] * 4


async def test_a_result_with_a_repetition_note_keeps_its_value_or_error_text() -> None:
    server = openai(
        *repeat(Call("stock", {"part": "bolt"}), Call("stock", {"part": "none"}), times=3), Turn(Say("Done."))
    )
    async with scripted(server, tools=CountingTools().tools) as (_, _, session):
        await session.ask("How many?")
    value, error = last_results(server)[-2:]
    assert json.loads(value) == {"result": {"left": 3}, "note": NOTE}
    assert error.endswith(NOTED)
    assert error.startswith(last_results(server)[1])


async def test_equal_calls_with_new_results_or_in_one_message_are_not_a_repetition() -> None:
    desk = CountingTools()
    server = openai(
        *repeat(Call("progress", {"job": "a"}), times=4),
        Turn(*[Call("weather", {"city": "Oslo"})] * 5),
        Turn(Call("weather", {"city": "Oslo"})),
        Turn(Say("Done.")),
    )
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=desk.tools, on_repeat="stop")
        assert (await session.ask("Do it.")).rounds == 7
    assert len(desk.runs) == 10
    assert NOTE not in json.dumps(bodies(server))


@pytest.mark.alternating
@SERVERS
@pytest.mark.parametrize(("repeats", "rounds"), [("allow", 6), ("warn", 6), ("stop", 4)])
async def test_the_on_repeat_policy_allows_repeated_calls_or_warns_the_model_or_stops_the_tools(
    make_server: MakeServer, repeats: Repeats, rounds: int
) -> None:
    def stubborn(request: dict[str, Any]) -> Turn:  # Any: a request body
        off = request.get("tool_choice") in ("none", {"type": "none"})
        return Turn(Say("That is all.")) if off else Turn(Call("weather", {"city": "Oslo"}))

    server = make_server()
    server.script = OpenAIServer(stubborn).script
    async with runtime_with(a=server, limits=RuntimeLimits(max_rounds=6)) as runtime:
        session = await runtime.open("a", tools=CountingTools().tools, on_repeat=repeats)
        answer = await session.ask("How warm is it?")
        assert (answer.status, answer.text, answer.rounds) == ("complete", "That is all.", rounds)
    assert server.refusals == []
    assert (NOTE in json.dumps(bodies(server))) == (repeats == "warn")
    assert all(body.get("tools") for body in bodies(server))


async def test_an_unknown_on_repeat_policy_raises_a_config_error() -> None:
    async with runtime_with(a=openai()) as runtime:
        wrong: Any = "never"
        with pytest.raises(ConfigError, match=r"^on_repeat= must be 'allow', 'warn' or 'stop', not 'never'$"):
            await runtime.open("a", on_repeat=wrong)


@pytest.mark.parametrize("repeats", ["warn", "stop"])
async def test_the_call_limits_of_a_resumed_turn_count_the_earlier_calls_in_its_log(repeats: Repeats) -> None:
    desk = CountingTools()
    both = Turn(Call("weather", {"city": "Oslo"}), Call("look", {"n": 1}), Call("weather", {"town": "x"}))
    server = openai(both, both, both, Turn(Say("Done.")))
    async with runtime_with(a=server, limits=RuntimeLimits(max_tool_corrections=2)) as runtime:
        session = await runtime.open("a", tools=[*desk.tools, LOOK], on_repeat=repeats)
        answer = await session.ask("Do it.")
        for number in (2, 5, 8):
            assert answer.status == "awaiting"
            evict(session)
            answer = await session.ask(results={CallId(f"hist_tool_{number}"): number})
        assert (answer.status, answer.rounds) == ("complete", 4)
    assert server.refusals == []
    assert desk.runs == ["Oslo", "Oslo"]
    assert [("not available any more" in each) for each in last_results(server)[-3:]] == [True, False, True]
    assert_paired(bodies(server)[-1])


async def test_equal_results_passed_by_the_caller_count_as_repetitions() -> None:
    server = openai(*repeat(Call("look", {"n": 1}), times=3), Turn(Say("That is all.")))
    async with runtime_with(a=server) as runtime:
        session = await runtime.open("a", tools=[LOOK], on_repeat="stop")
        answer = await session.ask("Do it.")
        for number in (1, 2, 3):
            evict(session)
            answer = await session.ask(results={CallId(f"hist_tool_{number}"): "nothing"})
        assert (answer.text, answer.rounds) == ("That is all.", 4)
    assert [body.get("tool_choice") for body in bodies(server)] == [None, None, None, "none"]
    assert last_results(server) == ["nothing"] * 3
