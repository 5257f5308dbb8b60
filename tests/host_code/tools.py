"""Parts of a tool other than its body: rules, and types with validators."""

from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, GetJsonSchemaHandler

from actors.errors import ConfigError, ToolDefinitionError
from actors.testing import Say, Turn
from actors.tools import tool
from tests.host_code.rows import Bomb, check_unharmed, result_of, row
from tests.runtime_support import openai, runtime_with

MAKERS = ("Tool", "Tool.from_schema", "Tool.external", "tool", "subagent", "handoff")
"""Public functions that define a tool with rules."""


@row(*(f"{maker}.approval" for maker in MAKERS))
async def an_approval_rule_that_raises_has_denied_the_call(bomb: Bomb) -> None:
    @tool(approval=bomb)
    async def work(name: str) -> str:
        """Never run."""
        raise AssertionError

    assert "was not approved" in await result_of(work)
    assert bomb.calls == 1


@row(*(f"{maker}.resources" for maker in MAKERS))
async def a_rule_of_resources_that_raises_fails_its_own_call(bomb: Bomb) -> None:
    @tool(resources=bomb)
    async def work(name: str) -> str:
        """Never run."""
        raise AssertionError

    assert type(bomb.error()).__name__ in await result_of(work)
    assert bomb.calls == 1


@row("type of a tool's parameter")
async def a_type_of_an_argument_that_raises_refuses_its_own_call(bomb: Bomb) -> None:
    @tool
    async def work(name: Annotated[str, AfterValidator(lambda value: bomb(value))]) -> str:
        """Never run."""
        raise AssertionError

    assert type(bomb.error()).__name__ in await result_of(work)
    assert bomb.calls == 1


@row("type of a tool's parameter")
async def a_type_whose_schema_raises_makes_no_tool(bomb: Bomb) -> None:
    class Odd(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, core: object, handler: GetJsonSchemaHandler) -> dict[str, Any]:
            raise bomb.error()

    async def work(odd: Odd) -> str:
        """Never defined."""
        raise AssertionError

    with pytest.raises(ToolDefinitionError, match="no JSON Schema"):
        tool(work)
    async with runtime_with(seconds=60, a=openai(Turn(Say("done")))) as runtime:
        session = await runtime.open("a")
        with pytest.raises(ConfigError, match="no JSON Schema"):
            await session.ask("Say it.", output=Odd)
        assert (await session.ask("Again.")).status == "complete"


@row(
    "Session.ask.output",
    "Session.stream.output",
    "Runtime.resume.output",
    "Runtime.claim.output",
    "subagent.output",
    "run.output",
)
async def a_type_of_an_answer_that_raises_fails_its_own_ask(bomb: Bomb) -> None:
    class City(BaseModel):
        name: Annotated[str, AfterValidator(lambda value: bomb(value))]

    answers = [Turn(Say('{"name":"Oslo"}')) for _ in range(5)]
    async with runtime_with(
        seconds=60, a=openai(*answers, Turn(Say("Well.")), Turn(Say("Fine.")))
    ) as runtime:
        session = await runtime.open("a")
        async with check_unharmed(runtime, session):
            for _ in range(5):
                result = await session.ask("Where?", output=City, check=False)
                assert (result.status, result.output) == ("failed", None)
                assert f"the type in output= raised {type(bomb.error()).__name__}" in result.error
    assert bomb.calls == 5
