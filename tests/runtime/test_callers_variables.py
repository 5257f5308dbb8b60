"""Whatever of a program runs for an ask sees the context variables of who asked."""

from contextvars import ContextVar
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from actors import tool
from actors.testing import Call, Say, Turn
from tests.runtime_support import hosting, openai

pytestmark = pytest.mark.anyio
WHO: ContextVar[str] = ContextVar("who", default="nobody")
SEEN: list[tuple[str, str]] = []


def note(place: str) -> str:
    """Note who asked, as it is seen there."""
    SEEN.append((place, WHO.get()))
    return "a"


def noted(text: str) -> str:
    """Validate anything."""
    note("argument")
    return text


class Weather(BaseModel):
    """An answer with a form."""

    place: Annotated[str, AfterValidator(lambda text: note("output") and text)]


def rule(arguments: dict[str, Any]) -> str:  # Any: JSON
    """Name what a call writes to."""
    return note("resources")


@pytest.fixture(autouse=True)
def unseen() -> None:
    """Begin anew."""
    SEEN.clear()


async def test_a_rule_and_a_validator_see_the_variables_of_each_ask() -> None:
    @tool(resources=rule)
    async def write(text: Annotated[str, AfterValidator(noted)]) -> str:
        """Write something down."""
        return note("tool")

    turns = [Turn(Call("write", {"text": "x"})), Turn(Say("Done."))] * 2
    async with hosting(a=openai(*turns)) as runtime:
        WHO.set("who opened")
        session = await runtime.open("a", tools=[write])
        for who in ("one", "two"):
            WHO.set(who)
            SEEN.clear()
            await session.ask("Write it.")
            assert {place for place, _ in SEEN} == {"resources", "argument", "tool"}
            assert {seen for _, seen in SEEN} == {who}


async def test_a_validator_of_the_answer_sees_the_variables_of_its_ask() -> None:
    async with hosting(a=openai(Turn(Say('{"place": "here"}')))) as runtime:
        WHO.set("who opened")
        session = await runtime.open("a")
        WHO.set("who asked")
        SEEN.clear()
        await session.ask("Where?", output=Weather)
    assert set(SEEN) == {("output", "who asked")}
