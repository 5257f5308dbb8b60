"""Tools that have others do the work: `subagent` gives a task to a session below, `handoff` hands the conversation on.

    research = subagent("research", "Find things out.", system="You are thorough.", tools=[search])
    session = await runtime.open("openai:gpt-5.2", tools=[research])

What ties that session to its call is `actors.scheduler.children`; a tool of one's own does the same with
`ToolContext.subagent`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any, Unpack

from actors.core.turn.no_content import NO_CONTENT
from actors.errors import ConfigError, SubagentFailed, ToolDefinitionError
from actors.session.output import output_of
from actors.tools import Tool, ToolContext, tool
from actors.tools.handover import Handover
from actors.tools.options import ToolOptions
from actors.tools.toolsets import ToolItem
from actors.tools.toolsets.source import check_list, source_of


def subagent(
    name: str,
    description: str,
    *,
    target: str | None = None,
    system: str | None = None,
    tools: Iterable[ToolItem] = (),
    output: Any = None,  # Any: a type or a JSON Schema
    **options: Unpack[ToolOptions],
) -> Tool[..., Any]:  # Any: nobody but a session calls it
    """Return a tool that gives its one argument, `task`, to a new session, and returns what that answers.

    A session that does not complete fails the call, and the model is told why. Its calls wait for nobody: they are
    approved as those of the session above, or denied where that has no `approve`.

    Args:
        name: As of any tool.
        description: For the model: what it may leave to it.
        target: Whom it talks to; the target of the session above if not given.
        system: Its system prompt.
        tools: What its model may call. External tools are refused: nobody could pass their results.
        output: The form of its answer, as in `Session.ask`; the call returns that value then, not a text.
        options: Fields of `Tool`.

    Raises:
        ToolDefinitionError: A name no provider takes, an external tool, or something in `tools` that is none.
        ConfigError: `output` has no JSON Schema, or `target` or `system` is no text.
    """
    offered = tuple(check_list(tools))
    for field, given in (("target", target), ("system", system)):
        value: object = given
        if not isinstance(value, str | None):
            raise ConfigError(f"Subagent {name!r}: {field}= takes a text, not {type(value).__name__}")
    for each in offered:
        source_of(each)
    if output is not None:
        output_of(output)
    for each in offered:
        if isinstance(each, Tool) and each.is_external:
            raise ToolDefinitionError(
                f"Subagent {name!r} has the external tool {each.name!r}, whose results nobody could pass; "
                "give that to the session above"
            )

    async def ask(task: str, context: ToolContext[Any]) -> object:  # Any: it uses none
        """Give a task to a subagent.

        Args:
            task: All that it needs to know, in words: it sees nothing of this conversation.
        """
        async with context.subagent(target, tools=offered, system=system) as child:
            result = await child.ask(task, output=output, check=False)
        if result.status != "complete":
            raise SubagentFailed(
                f"{name} did not complete ({result.status}): {result.error or 'no reason given'}"
            )
        if result.incomplete in NO_CONTENT:
            raise SubagentFailed(f"{name} gave no answer: {NO_CONTENT[result.incomplete]}")
        return result.text if output is None else result.output

    return tool(name=name, description=description, **options)(ask)


def handoff(
    name: str,
    description: str,
    *,
    target: str,
    system: str | EllipsisType | None = ...,
    tools: Sequence[ToolItem] | EllipsisType = ...,
    **options: Unpack[ToolOptions],
) -> Tool[..., Any]:  # Any: as above
    """Return a tool without arguments that hands the conversation over to another target.

    When a call of it has returned, the turn ends, and the ask goes on with a turn of that target's over the same
    history, with no new user message. The session stays with it, as after a switch, and with the system prompt and the
    tools that are given here, as after `Session.configure`. What the host holds just then comes first.

    Args:
        name: As of any tool.
        description: For the model: when it should hand over.
        target: Whom the conversation goes on with: a backend or a pool, as in `Runtime.open`.
        system: The system prompt that it goes on with; None for none. What is not given stays.
        tools: Likewise all that its model may call. Read at the hand-over, so two that hand the conversation back and
            forth may be put into each other's lists. Toolsets are opened then; if one cannot be, the ask fails.
        options: Fields of `Tool`.

    Raises:
        ToolDefinitionError: A name no provider takes.
        ConfigError: `target` or `system` is no text, or `tools` no list.
    """
    handover = Handover(target=target, system=system, tools=tools)

    async def hand_over() -> str:
        return "The conversation was handed over. Go on with it."

    made = tool(name=name, description=description, **options)(hand_over)
    return replace(made, _handover=handover)
