"""Feedback pays: a model that heeds what it is told of a wrong call makes it right at once, whatever was wrong."""

import json
import re
from collections.abc import Callable
from typing import Any, Literal

import pytest

from actors.strict.server import LoopbackServer
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn
from actors.tools import tool
from tests.runtime_support import bodies, hosting, results

pytestmark = pytest.mark.anyio

GIVEN: dict[str, Any] = {"city": "Oslo", "days": 3, "unit": "C"}  # Any: JSON
FAULTS = {
    "a missing field": Call("weather", {"city": "Oslo", "unit": "C"}),
    "all fields missing": Call("weather", {}),
    "a wrong type": Call("weather", GIVEN | {"days": "many"}),
    "a value that is no choice": Call("weather", GIVEN | {"unit": "K"}),
    "an unknown field": Call("weather", GIVEN | {"town": "Oslo"}),
    "several at once": Call("weather", {"days": "many", "town": "Oslo"}),
    "an unknown tool": Call("wether", GIVEN),
    "cut JSON": Call("weather", raw='{"city": "Oslo", "da'),
    "words in place of JSON": Call("weather", raw="the weather of Oslo, please"),
}


class Heeding:
    """A model that makes one wrong call, and then goes by nothing but what it was told of it."""

    def __init__(self, first: Call) -> None:
        self.call, self.calls = first, 0

    def __call__(self, request: dict[str, Any]) -> Turn:  # Any: a request body
        said = [*results(request).values()]
        if said and "tool_error" not in said[-1]:
            return Turn(Say(said[-1]))
        if said:
            self.call = self.corrected(json.loads(said[-1][said[-1].index("{") :])["tool_error"])
        self.calls += 1
        return Turn(self.call)

    def corrected(self, error: dict[str, Any]) -> Call:  # Any: JSON
        """Return the call with what the error names mended, and all else as it was."""
        name, arguments = self.call.name, dict(self.call.arguments)
        if hint := re.search(r"Did you mean (\w+)\?", error["message"]):
            name = hint[1]
        if error["kind"] == "malformed_arguments":
            arguments = GIVEN
        for path in error["missing"]:
            arguments[path] = GIVEN[path]
        for wrong in error["wrong"] if error["kind"] == "invalid_arguments" else ():
            if wrong["expected"].startswith("no such field"):
                del arguments[wrong["path"]]
            else:
                arguments[wrong["path"]] = GIVEN[wrong["path"]]
        return Call(name, arguments)


@tool
async def weather(city: str, days: int, unit: Literal["C", "F"] = "C") -> str:
    """Weather of a city."""
    return f"{city}: {days} days, {unit}"


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("made", [OpenAIServer, AnthropicServer])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_model_that_heeds_the_feedback_needs_one_correction_per_fault(
    made: Callable[..., LoopbackServer], fault: str
) -> None:
    model = Heeding(FAULTS[fault])
    server = made(model)
    async with hosting(a=server) as runtime:
        session = await runtime.open("a", tools=[weather])
        answer = await session.ask("How will it be?")
        assert (answer.status, answer.text) == ("complete", "Oslo: 3 days, C")
        statuses = [item.status for item in (await session.ledger()).interactions()]
        assert statuses == ["error", "complete"]
    assert model.calls == 2
    assert server.refusals == []
    assert len(bodies(server)) == 3
