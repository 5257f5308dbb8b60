"""Error messages for wrong calls: a model that follows them corrects any fault in one attempt."""

import json
import re
from collections.abc import Callable
from typing import Any, Literal

import pytest

from actors.strict.server import LoopbackServer
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn
from actors.tools import tool
from tests.runtime_support import bodies, results
from tests.scripted import scripted

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


class ObedientModel:
    """A model that makes one wrong call, and then corrects it using only the error message."""

    def __init__(self, first: Call) -> None:
        self.call, self.calls = first, 0

    def __call__(self, request: dict[str, Any]) -> Turn:  # Any: a request body
        said = [*results(request).values()]
        if said and "tool_error" not in said[-1]:
            return Turn(Say(said[-1]))
        if said:
            self.call = self.correct(json.loads(said[-1][said[-1].index("{") :])["tool_error"])
        self.calls += 1
        return Turn(self.call)

    def correct(self, error: dict[str, Any]) -> Call:  # Any: JSON
        """Return the call with the fields that the error names corrected, and everything else unchanged."""
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
@pytest.mark.parametrize("make_server", [OpenAIServer, AnthropicServer])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_model_that_follows_the_error_message_corrects_its_call_in_one_attempt(
    make_server: Callable[..., LoopbackServer], fault: str
) -> None:
    model = ObedientModel(FAULTS[fault])
    async with scripted(make_server(model), tools=[weather]) as (server, _, session):
        answer = await session.ask("How will it be?")
        assert (answer.status, answer.text) == ("complete", "Oslo: 3 days, C")
        statuses = [item.status for item in (await session.ledger()).interactions()]
        assert statuses == ["error", "complete"]
    assert model.calls == 2
    assert len(bodies(server)) == 3
