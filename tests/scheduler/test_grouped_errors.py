"""An exception group from a tool is shown to the model with the text of each exception."""

import anyio
import pytest

from actors.core.values.identity import CallId
from actors.errors import ReentrantCall
from actors.scheduler.failures import MAX_ERROR_LENGTH, describe_for_model
from actors.testing import Call, Say, Turn
from actors.tools import Tool, tool
from tests.runtime_support import bodies, openai, results
from tests.scripted import scripted

LOOK = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)


def nested_group() -> ExceptionGroup[Exception]:
    inner = ExceptionGroup("inside", [KeyError("city"), OSError("no route")])
    return ExceptionGroup("outside", [ValueError("too cold"), inner])


@tool
async def gather() -> str:
    """Do several things at once."""

    async def fail(error: Exception) -> None:
        raise error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail, ValueError("too cold"))
        tasks.start_soon(fail, OSError("no route"))
    return "done"


@tool
def collect() -> str:
    """Do several things, one after the other."""
    raise nested_group()


@pytest.mark.anyio
@pytest.mark.parametrize("failing_tool", [gather, collect])
async def test_the_model_sees_the_text_of_each_exception_of_a_group(failing_tool: Tool[[], str]) -> None:
    server = openai(Turn(Call(failing_tool.name, {})), Turn(Say("I see.")))
    async with scripted(server, tools=[failing_tool]) as (_, _, session):
        assert (await session.ask("Do it.")).text == "I see."
    (told,) = results(bodies(server)[-1]).values()
    assert "ExceptionGroup: " in told
    assert "- ValueError: too cold" in told
    assert "- OSError: no route" in told


@pytest.mark.anyio
async def test_an_exception_group_passed_as_a_result_is_shown_like_a_raised_group() -> None:
    server = openai(Turn(Call("look", {})), Turn(Say("I see.")))
    async with scripted(server, tools=[LOOK]) as (_, _, session):
        await session.ask("Look.")
        assert (await session.ask(results={CallId("hist_tool_1"): nested_group()})).text == "I see."
    (told,) = results(bodies(server)[-1]).values()
    assert "- KeyError: 'city'" in told


def test_the_errors_of_nested_groups_are_shown_in_order() -> None:
    assert describe_for_model(nested_group()).splitlines()[1:] == [
        "- ValueError: too cold",
        "- KeyError: 'city'",
        "- OSError: no route",
    ]


def test_the_text_of_a_group_is_bounded_and_marks_omissions() -> None:
    many = ExceptionGroup("many", [ValueError(f"{number} " + "x" * 10_000) for number in range(500)])
    told = describe_for_model(many)
    assert len(told) <= MAX_ERROR_LENGTH
    assert told.endswith("\n- and more")
    assert all(f"- ValueError: {number} x" in told for number in range(16))
    assert told.count("[cut]") == 16
    deep: BaseException = ValueError("at the bottom")
    for _ in range(5_000):
        deep = BaseExceptionGroup("", [deep])
    assert describe_for_model(deep).endswith("- ValueError: at the bottom")


def test_errors_for_the_author_of_a_tool_are_redacted_inside_a_group() -> None:
    told = describe_for_model(
        ExceptionGroup("two", [ReentrantCall("secrets of the host"), ValueError("mine")])
    )
    assert "secrets of the host" not in told
    assert told.endswith("- ValueError: mine")


class UnreadableGroup(ExceptionGroup[Exception]):
    def __str__(self) -> str:
        raise SystemExit


def test_an_exception_group_whose_text_cannot_be_read_still_shows_its_errors() -> None:
    told = describe_for_model(UnreadableGroup("x", [ValueError("mine")]))
    assert told == "UnreadableGroup: (the message of the error could not be read)\n- ValueError: mine"
