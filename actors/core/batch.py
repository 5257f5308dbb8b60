"""A batch: the calls of one model message, sorted before anything runs.

A call runs only if its tool exists, its arguments are valid and its approval is given; else it is answered at
once: with a structured `tool_error` the model can correct itself by, or with a denial. Nothing is run that was
not understood.
"""

from collections.abc import Awaitable, Callable, Mapping
from sys import intern
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from actors.core.arguments import ArgumentError, tool_error, unknown_tool_error
from actors.core.content import ToolCall
from actors.core.events import Denied, Refused, Scheduled
from actors.core.ingest import ingest
from actors.core.jsonio import JsonValue, quote

Approve: TypeAlias = Callable[[ToolCall], bool | Awaitable[bool]]
"""Says whether a call of a tool with `approval="ask"` may run."""


class BoundArguments(Struct, frozen=True):
    """Arguments that passed: what to call the function with."""

    kwargs: Mapping[str, Any]  # Any: whatever types the function asks for


class Runnable(Protocol):
    """What a batch needs to know of a tool."""

    def approval_of(self, arguments: dict[str, JsonValue]) -> Literal["allow", "ask", "deny"]:
        """Return who must agree before it runs with these arguments."""

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Return the function's arguments, or what is missing and wrong in those given."""


class Planned(Struct, frozen=True):
    """A call that can run, with its function's arguments; `asks` says whether someone must approve of it first."""

    call: ToolCall
    arguments: Mapping[str, Any]  # Any: see `BoundArguments`
    asks: bool


class Plan(Struct, frozen=True):
    """What is to be done with a batch, in call order. What is `scheduled` must be durable before anything runs."""

    run: tuple[Planned, ...]
    answered: tuple[Refused | Denied, ...]
    scheduled: tuple[Scheduled, ...]


def plan(calls: tuple[ToolCall, ...], tools: Mapping[str, Runnable], most: int, *, can_ask: bool) -> Plan:
    """Sort the calls of one message into those that can run and those that are answered at once.

    No more than `most` are run; the rest are refused, and the model is told. `can_ask`: somebody can approve of a call;
    if not, tools that want that are denied.
    """
    run: list[Planned] = []
    answered: list[Refused | Denied] = []
    for number, call in enumerate(calls):
        found = _sorted(call, tools, can_ask=can_ask) if number < most else _too_many(call, most)
        if isinstance(found, Planned):
            run.append(found)
        else:
            answered.append(found)
    scheduled = tuple([Scheduled(call.id, intern(call.name), call.json) for call in calls])
    return Plan(tuple(run), tuple(answered), scheduled)


def denied(call: ToolCall) -> Denied:
    """Return the answer to a call that nobody approved of."""
    return Denied(call.id, quote(f"Running {call.name!r} was not approved."))


def _sorted(call: ToolCall, tools: Mapping[str, Runnable], *, can_ask: bool) -> Planned | Refused | Denied:
    tool = tools.get(call.name)
    if tool is None:
        return _refused(call, unknown_tool_error(call.name, tools))
    if call.is_malformed:
        return _refused(call, tool_error(call.name, (), call.raw or ""))
    arguments = call.arguments
    bound = tool.bind(arguments)
    if isinstance(bound, tuple):
        return _refused(call, tool_error(call.name, bound))
    approval = tool.approval_of(arguments)
    if approval == "allow" or (approval == "ask" and can_ask):
        return Planned(call, bound.kwargs, approval == "ask")
    return denied(call)


def _refused(call: ToolCall, problem: dict[str, JsonValue]) -> Refused:
    return Refused(call.id, ingest(problem).json)


def _too_many(call: ToolCall, most: int) -> Refused:
    message = f"At most {most} calls of one message are run; make the others again."
    return _refused(call, {"tool_error": {"kind": "too_many_calls", "tool": call.name, "message": message}})
