"""Guards: a model that goes in circles is told so or stopped, tool by tool, and in its turn alone."""

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
from tests.runtime_support import anthropic, assert_paired, bodies, hosting, openai, results

pytestmark = pytest.mark.anyio

Made = Callable[..., LoopbackServer]
MADE = pytest.mark.parametrize("made", [openai, anthropic])
NOTED = f"[{NOTE}]"
LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)


def put_away(session: Session) -> None:
    """Drop all of a session that waits but its log."""
    assert session._lifecycle.passivate()
    session._lifecycle.evict()


class Desk:
    """Two tools that count how often they ran: one answers the same for the same city, one something new."""

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
            """How many of a part there are."""
            if part == "none":
                raise LookupError("no such part")
            return {"left": 3}

        self.tools: list[Tool[..., Any]] = [weather, progress, stock]  # Any: any function


def again(*calls: Call, times: int) -> list[Turn]:
    return [Turn(*calls)] * times


def said(server: LoopbackServer) -> list[str]:
    """Return the results of the last request, in call order."""
    return list(results(bodies(server)[-1]).values())


@MADE
async def test_a_tool_called_wrongly_too_often_is_gone_for_the_turn_and_the_others_go_on(made: Made) -> None:
    desk, wrong = Desk(), Call("weather", {"town": "Oslo"})
    script = [Turn(wrong, Call("progress", {"job": str(number)})) for number in range(3)]
    good = Turn(Call("weather", {"city": "Oslo"}), Call("progress", {"job": "last"}))
    server = made(*script, good, Turn(Say("Done.")), good, Turn(Say("Next.")))
    async with hosting(a=server, limits=RuntimeLimits(max_tool_corrections=3)) as runtime:
        session = await runtime.open("a", tools=desk.tools)
        assert (await session.ask("Do it.")).text == "Done."
        assert desk.runs == ["0", "1", "2", "last"]
        *_, refused, went_on = said(server)
        assert "not available any more in this turn" in refused
        assert went_on == '{"done":40}'
        assert (await session.ask("And?")).text == "Next."
        assert desk.runs[4:] == ["Oslo", "last"]
    assert server.refusals == []


async def test_ten_wrong_calls_of_one_message_are_one_fault() -> None:
    desk = Desk()
    server = openai(
        Turn(*[Call("weather", {"town": str(number)}) for number in range(10)]),
        Turn(Call("weather", {"city": "Oslo"})),
        Turn(Say("Done.")),
    )
    async with hosting(a=server, limits=RuntimeLimits(max_tool_corrections=2)) as runtime:
        session = await runtime.open("a", tools=desk.tools)
        await session.ask("Do it.")
    assert desk.runs == ["Oslo"]


@MADE
async def test_a_repeated_call_runs_and_its_result_says_that_it_is_the_same(made: Made) -> None:
    desk = Desk()
    calls = [
        {"city": "Oslo", "unit": "F"},
        {"unit": "F", "city": "Oslo"},
        {"city": "Oslo", "unit": "F"},
        {"city": "Oslo", "unit": "F"},
    ]
    server = made(*[Turn(Call("weather", each)) for each in calls], Turn(Say("Done.")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=desk.tools)
        assert (await session.ask("How warm is it?")).text == "Done."
    assert server.refusals == []
    plain = "Oslo: 21 F"
    assert said(server) == [plain, plain, f"{plain}\n\n{NOTED}", f"{plain}\n\n{NOTED}"]
    assert desk.runs == ["Oslo"] * 4


async def test_values_and_errors_are_noted_too_and_stay_readable() -> None:
    server = openai(
        *again(Call("stock", {"part": "bolt"}), Call("stock", {"part": "none"}), times=3), Turn(Say("Done."))
    )
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=Desk().tools)
        await session.ask("How many?")
    value, error = said(server)[-2:]
    assert json.loads(value) == {"result": {"left": 3}, "note": NOTE}
    assert error.endswith(NOTED)
    assert error.startswith(said(server)[1])


async def test_what_changes_is_no_repetition_and_neither_is_one_message_that_calls_often() -> None:
    desk = Desk()
    server = openai(
        *again(Call("progress", {"job": "a"}), times=4),
        Turn(*[Call("weather", {"city": "Oslo"})] * 5),
        Turn(Call("weather", {"city": "Oslo"})),
        Turn(Say("Done.")),
    )
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=desk.tools, on_repeat="stop")
        assert (await session.ask("Do it.")).rounds == 7
    assert len(desk.runs) == 10
    assert NOTE not in json.dumps(bodies(server))


@pytest.mark.alternating
@MADE
@pytest.mark.parametrize(("repeats", "rounds"), [("allow", 6), ("warn", 6), ("stop", 4)])
async def test_the_policy_says_what_is_done_about_repetitions(
    made: Made, repeats: Repeats, rounds: int
) -> None:
    def stubborn(request: dict[str, Any]) -> Turn:  # Any: a request body
        off = request.get("tool_choice") in ("none", {"type": "none"})
        return Turn(Say("That is all.")) if off else Turn(Call("weather", {"city": "Oslo"}))

    server = made()
    server.script = OpenAIServer(stubborn).script
    async with hosting(a=server, limits=RuntimeLimits(max_rounds=6)) as runtime:
        session = await runtime.open("a", tools=Desk().tools, on_repeat=repeats)
        answer = await session.ask("How warm is it?")
        assert (answer.status, answer.text, answer.rounds) == ("complete", "That is all.", rounds)
    assert server.refusals == []
    assert (NOTE in json.dumps(bodies(server))) == (repeats == "warn")
    assert all(body.get("tools") for body in bodies(server))


async def test_a_policy_that_does_not_exist_is_refused_in_one_line() -> None:
    async with hosting(a=openai()) as runtime:
        wrong: Any = "never"
        with pytest.raises(ConfigError, match=r"^on_repeat= takes 'allow', 'warn' or 'stop', not 'never'$"):
            await runtime.open("a", on_repeat=wrong)


@pytest.mark.parametrize("repeats", ["warn", "stop"])
async def test_a_turn_that_waited_is_guarded_by_what_its_log_says(repeats: Repeats) -> None:
    desk = Desk()
    both = Turn(Call("weather", {"city": "Oslo"}), Call("look", {"n": 1}), Call("weather", {"town": "x"}))
    server = openai(both, both, both, Turn(Say("Done.")))
    async with hosting(a=server, limits=RuntimeLimits(max_tool_corrections=2)) as runtime:
        session = await runtime.open("a", tools=[*desk.tools, LOOK], on_repeat=repeats)
        answer = await session.ask("Do it.")
        for number in (2, 5, 8):
            assert answer.status == "awaiting"
            put_away(session)
            answer = await session.ask(results={CallId(f"hist_tool_{number}"): number})
        assert (answer.status, answer.rounds) == ("complete", 4)
    assert server.refusals == []
    assert desk.runs == ["Oslo", "Oslo"]
    assert [("not available any more" in each) for each in said(server)[-3:]] == [True, False, True]
    assert_paired(bodies(server)[-1])


async def test_results_that_the_caller_passes_count_as_repetitions() -> None:
    server = openai(*again(Call("look", {"n": 1}), times=3), Turn(Say("That is all.")))
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[LOOK], on_repeat="stop")
        answer = await session.ask("Do it.")
        for number in (1, 2, 3):
            put_away(session)
            answer = await session.ask(results={CallId(f"hist_tool_{number}"): "nothing"})
        assert (answer.text, answer.rounds) == ("That is all.", 4)
    assert [body.get("tool_choice") for body in bodies(server)] == [None, None, None, "none"]
    assert said(server) == ["nothing"] * 3
