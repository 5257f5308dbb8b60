"""Create tools that delegate a task to a new session (`subagent`), or hand the conversation over to another target
(`handoff`).

    research = subagent("research", "Find things out.", system="You are thorough.", tools=[search])
    session = await runtime.open("openai:gpt-5.2", tools=[research])

The new session ends with the call that opened it (`actors.scheduler.children`). Other tools can open sessions with
`ToolContext.subagent`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any, Unpack

from actors.core.turn.answers import NO_CONTENT
from actors.errors import ConfigError, SubagentFailed, ToolDefinitionError
from actors.session.output import output_of
from actors.tools import Tool, ToolContext, tool
from actors.tools.tool import Handover, ToolOptions
from actors.tools.toolset import check_tool_list, toolset_source
from actors.tools.toolsets import ToolItem


def subagent(
    name: str,
    description: str,
    *,
    target: str | None = None,
    system: str | None = None,
    tools: Iterable[ToolItem] = (),
    output: Any = None,  # Any: any type, or a JSON Schema
    **options: Unpack[ToolOptions],
) -> Tool[..., Any]:  # Any: only sessions call the tool, so the type of its result does not matter
    """Return a tool that sends its one argument, `task`, to a new session and returns the answer.

    If the session's ask does not complete, the call fails and the model receives the reason. If calls in the new
    session need approval, the parent session's `approve` function decides; without `approve`, they are denied.

    Args:
        name: Name of the tool.
        description: Tells the model which tasks it can delegate to the subagent.
        target: Target of the new session, as in `Runtime.open`; by default, the target of the parent session.
        system: System prompt of the new session; none by default.
        tools: The tools that the subagent's model may call. External tools are rejected, because no caller could pass
            their results.
        output: The type of the answer, as in `Session.ask`. The tool then returns a value of this type instead of a
            string.
        options: Fields of `Tool`.

    Raises:
        ToolDefinitionError: A provider does not accept the name, or `tools` contains an external tool or an object that
            is not a tool.
        ConfigError: `output` has no JSON Schema, or `target` or `system` is not a string.
    """
    offered = tuple(check_tool_list(tools))
    for field, given in (("target", target), ("system", system)):
        value: object = given
        if not isinstance(value, str | None):
            raise ConfigError(f"Subagent {name!r}: {field}= takes a string, not {type(value).__name__}")
    for each in offered:
        toolset_source(each)
    if output is not None:
        output_of(output)
    for each in offered:
        if isinstance(each, Tool) and each.is_external:
            raise ToolDefinitionError(
                f"Subagent {name!r} has the external tool {each.name!r}, but no caller could pass its results; "
                "give the tool to the parent session"
            )

    async def ask(task: str, context: ToolContext[Any]) -> object:  # Any: the tool does not use `deps`
        """Give a task to a subagent.

        Args:
            task: Everything that the subagent needs to know, in words: it sees nothing of this conversation.
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
) -> Tool[..., Any]:  # Any: as for `subagent`
    """Return a tool without arguments that hands the conversation over to another target.

    After this tool was called, the turn ends, and the ask continues with a turn by the new target on the same history,
    without a new user message. The session keeps the new target, as after `Session.switch`, and the new system prompt
    and tools, as after `Session.configure`. A switch or a change that the program has queued takes precedence.

    Args:
        name: Name of the tool.
        description: Tells the model when to hand over.
        target: The new target: a backend or a pool, as in `Runtime.open`.
        system: The new system prompt; None removes it. Unchanged by default.
        tools: The new tools of the session; unchanged by default. The list is read at the handover, so two handoff
            tools may be in each other's lists. Toolsets are opened at the handover; if that fails, the ask fails.
        options: Fields of `Tool`.

    Raises:
        ToolDefinitionError: A provider does not accept the name.
        ConfigError: `target` or `system` is not a string, or `tools` is not a list.
    """
    handover = Handover(target=target, system=system, tools=tools)

    async def hand_over() -> str:
        return "The conversation was handed over. Continue it."

    made = tool(name=name, description=description, **options)(hand_over)
    return replace(made, _handover=handover)
