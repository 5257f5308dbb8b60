"""A batch: the calls of one model message, sorted before anything runs.

A call runs only if its tool exists, its arguments are valid and its approval is given; else it is answered at
once: with a structured `tool_error` the model can correct itself by, or with a denial. Nothing is run that was
not understood.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, Literal, Protocol, TypeAlias

from actors.core.arguments import ArgumentError, tool_error, unknown_tool_error
from actors.core.content import ToolCall
from actors.core.events import Denied, Refused, Scheduled
from actors.core.jsonio import JsonValue, ingest, quote

FAN_OUT = 64
"""Most calls of one message that are run; the rest are refused, and the model is told."""

Approve: TypeAlias = Callable[[ToolCall], bool]
"""Says whether a call of a tool with `approval="ask"` may run."""


class Bound(Protocol):
    """Arguments that passed."""

    @property
    def kwargs(self) -> Mapping[str, Any]:  # Any: whatever types the tool's function asks for
        """What to call the function with."""


class Runnable(Protocol):
    """What a batch needs to know of a tool."""

    @property
    def approval(self) -> Literal["allow", "ask", "deny"]:
        """Who must agree before it runs."""

    def bind(self, arguments: Mapping[str, JsonValue]) -> Bound | tuple[ArgumentError, ...]:
        """Return the function's arguments, or what is missing and wrong in those given."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with a batch.

    Args:
        run: Calls to run, each with its function's arguments, in call order.
        answered: Calls that will not be run and how each is answered, in call order.
        scheduled: The events that must be durable before anything runs: one for each call.
    """

    run: tuple[tuple[ToolCall, Mapping[str, Any]], ...]  # Any: see `Bound`
    answered: tuple[Refused | Denied, ...]
    scheduled: tuple[Scheduled, ...]


def plan(calls: tuple[ToolCall, ...], tools: Mapping[str, Runnable], approve: Approve | None) -> Plan:
    """Sort the calls of one message into those that can run and those that are answered at once.

    Args:
        calls: In the model's order.
        tools: The session's tools by name.
        approve: Asked for tools that want someone's word; without it they are denied.
    """
    run: list[tuple[ToolCall, Mapping[str, Any]]] = []  # Any: see `Bound`
    answered: list[Refused | Denied] = []
    for number, call in enumerate(calls):
        sorted_call = _sorted(call, tools, approve) if number < FAN_OUT else _too_many(call)
        if isinstance(sorted_call, Refused | Denied):
            answered.append(sorted_call)
        else:
            run.append((call, sorted_call.kwargs))
    scheduled = tuple(Scheduled(call.id, intern(call.name), call.json) for call in calls)
    return Plan(tuple(run), tuple(answered), scheduled)


def _sorted(
    call: ToolCall, tools: Mapping[str, Runnable], approve: Approve | None
) -> Bound | Refused | Denied:
    tool = tools.get(call.name)
    if tool is None:
        return _refused(call, unknown_tool_error(call.name, tools))
    if call.raw is not None:
        return _refused(call, tool_error(call.name, (), call.raw))
    bound = tool.bind(call.arguments)
    if isinstance(bound, tuple):
        return _refused(call, tool_error(call.name, bound))
    if tool.approval == "allow" or (tool.approval == "ask" and approve is not None and approve(call)):
        return bound
    return Denied(call.id, quote(f"Running {call.name!r} was not approved."))


def _refused(call: ToolCall, problem: dict[str, JsonValue]) -> Refused:
    return Refused(call.id, ingest(problem).json)


def _too_many(call: ToolCall) -> Refused:
    message = f"At most {FAN_OUT} calls of one message are run; make the others again."
    return _refused(call, {"tool_error": {"kind": "too_many_calls", "tool": call.name, "message": message}})
