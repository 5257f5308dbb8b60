"""Callbacks that run for an ask see the context variables of its caller."""

from contextvars import ContextVar
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from actors import tool
from actors.testing import Call, Say, Turn
from tests.runtime_support import openai, runtime_with

pytestmark = pytest.mark.anyio
CALLER: ContextVar[str] = ContextVar("who", default="nobody")
SEEN: list[tuple[str, str]] = []


def note(place: str) -> str:
    """Record the caller's variable as seen at `place`."""
    SEEN.append((place, CALLER.get()))
    return "a"


def note_argument(text: str) -> str:
    """Accept any text."""
    note("argument")
    return text


class Weather(BaseModel):
    """An output type."""

    place: Annotated[str, AfterValidator(lambda text: note("output") and text)]


def rule(arguments: dict[str, Any]) -> str:  # Any: JSON
    """Return the resource that a call writes to."""
    return note("resources")


@pytest.fixture(autouse=True)
def clear_seen() -> None:
    """Forget earlier observations."""
    SEEN.clear()


async def test_tools_rules_and_validators_see_the_context_variables_of_each_ask() -> None:
    @tool(resources=rule)
    async def write(text: Annotated[str, AfterValidator(note_argument)]) -> str:
        """Write something down."""
        return note("tool")

    turns = [Turn(Call("write", {"text": "x"})), Turn(Say("Done."))] * 2
    async with runtime_with(a=openai(*turns)) as runtime:
        CALLER.set("who opened")
        session = await runtime.open("a", tools=[write])
        for who in ("one", "two"):
            CALLER.set(who)
            SEEN.clear()
            await session.ask("Write it.")
            assert {place for place, _ in SEEN} == {"resources", "argument", "tool"}
            assert {seen for _, seen in SEEN} == {who}


async def test_an_output_validator_sees_the_context_variables_of_its_ask() -> None:
    async with runtime_with(a=openai(Turn(Say('{"place": "here"}')))) as runtime:
        CALLER.set("who opened")
        session = await runtime.open("a")
        CALLER.set("who asked")
        SEEN.clear()
        await session.ask("Where?", output=Weather)
    assert set(SEEN) == {("output", "who asked")}
