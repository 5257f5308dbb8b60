"""Plan a batch: decide for each call of a model message whether it runs, is answered immediately, or waits.

The scheduler actor carries out the plan.

A call runs only if its tool exists, its arguments are valid and it is approved. Otherwise it is answered immediately,
either with a structured `tool_error`, from which the model can correct the call, or with a denial. Two kinds of calls
wait for the caller: calls of external tools, and calls that need an approval if no `approve` callback is set.
"""

from collections.abc import Awaitable, Callable, Container, Mapping
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from actors.core.data.ingest import ingest
from actors.core.data.jsonio import JsonObject, JsonValue, dump, quote
from actors.core.log.call_events import Denied, Refused, Scheduled
from actors.core.schemas.arguments import ArgumentError, tool_error, unknown_tool_error
from actors.core.schemas.repair import Repair, RepairMode, read_arguments
from actors.core.values.content import ToolCall

if TYPE_CHECKING:
    from actors.core.schemas.readings import FittingValue

Approve: TypeAlias = Callable[[ToolCall], bool | str | Awaitable[bool | str]]
"""Decides whether a call of a tool with `approval="ask"` may run. Returns True to allow the call, and False or a string
to deny it; the string is the reason."""


class BoundArguments(Struct, frozen=True):
    """Valid arguments, in the form in which the tool's function receives them.

    Args:
        kwargs: The validated and converted value of each parameter, by the parameter's name.
    """

    kwargs: Mapping[str, Any]  # Any: each parameter of the function has its own type


class Runnable(Protocol):
    """The part of a tool's interface that is needed to plan a batch."""

    def approval_of(self, arguments: dict[str, JsonValue]) -> Literal["allow", "ask", "deny"]:
        """Return whether a call with these arguments may run (`allow`), needs an approval (`ask`), or is denied."""
        ...

    @property
    def is_external(self) -> bool:
        """True if the tool has no body, so that the caller provides the results of its calls."""
        ...

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Validate a call's arguments. Return them as the function receives them, or the errors."""
        ...

    def _single_interpretation(self, arguments: Mapping[str, JsonValue]) -> "FittingValue | None":
        """Return the only interpretation of invalid arguments that fits the schema.

        Return `None` if there are none or several.
        """


class RunnableCall(Struct, frozen=True):
    """A call that can run, with the arguments for the tool's function.

    If `needs_approval` is True, the `approve` callback must allow the call before it runs.
    """

    call: ToolCall
    arguments: Mapping[str, Any]  # Any: each parameter of the function has its own type
    needs_approval: bool


class WaitingCall(Struct, frozen=True):
    """A call that waits for the caller. It waits for its result if `is_external` is True, otherwise for an approval."""

    call: ToolCall
    is_external: bool


class Plan(Struct, frozen=True):
    """The plan for a batch, in call order.

    Args:
        run: Calls to run.
        answered: Completions of the calls that are answered without running.
        waiting: Calls that wait for the caller.
        scheduled: Events that must be durable before a call of the batch runs.
    """

    run: tuple[RunnableCall, ...]
    answered: tuple[Refused | Denied, ...]
    waiting: tuple[WaitingCall, ...]
    scheduled: tuple[Scheduled, ...]


def plan(
    calls: tuple[ToolCall, ...],
    tools: Mapping[str, Runnable],
    max_calls: int,
    *,
    can_ask: bool,
    approved: bool = False,
    waited: bool = False,
    disabled_tools: Container[str] = (),
    repair: RepairMode = "unambiguous",
) -> Plan:
    """Decide for each call of one message whether it runs, is answered immediately, or waits.

    Args:
        calls: The calls, in the order of the message.
        tools: The tools of the turn, by name.
        max_calls: Maximum number of calls that may run. Further calls are refused with an error for the model.
        can_ask: True if an `approve` callback exists. Without a callback, calls that need an approval wait.
        approved: True if the calls were approved.
        waited: True if the calls have waited for approval, so that the log already contains their `Scheduled` events.
        disabled_tools: Tools that the model called with errors too often in this turn. Their calls are refused.
        repair: The rule for interpreting malformed arguments. The plan contains the repaired arguments.
    """
    taken, others = calls[:max_calls], calls[max_calls:]
    read = [
        _bind(call, None if call.name in disabled_tools else tools.get(call.name), repair) for call in taken
    ]
    found = [_plan_call(each, tools, disabled_tools, can_ask=can_ask, approved=approved) for each in read]
    found += [_too_many_calls_refusal(call, max_calls) for call in others]
    return Plan(
        tuple([each for each in found if isinstance(each, RunnableCall)]),
        tuple([each for each in found if isinstance(each, Refused | Denied)]),
        tuple([each for each in found if isinstance(each, WaitingCall)]),
        () if waited else tuple([each.event for each in (*read, *map(_BoundCall, others))]),
    )


def denial(call: ToolCall, reason: str = "") -> Denied:
    """Return the completion of a denied call. `reason` is text for the model."""
    why = f": {reason}" if reason else "."
    return Denied(call.id, quote(f"Running {call.name!r} was not approved{why}"))


class _BoundCall(Struct, frozen=True):
    """A call with the result of binding its arguments to its tool.

    Args:
        call: The call, with repaired arguments if they were malformed.
        bind_result: The bound arguments, or their errors; None if the arguments are not JSON, or the tool is unknown or
            disabled.
        repairs: The repairs of the arguments.
        json_arguments: The bound arguments as JSON values.
    """

    call: ToolCall
    bind_result: BoundArguments | tuple[ArgumentError, ...] | None = None
    repairs: tuple[Repair, ...] = ()
    json_arguments: dict[str, JsonValue] = {}

    @property
    def event(self) -> Scheduled:
        """The `Scheduled` event, which must be durable before a call of the batch runs."""
        call = self.call
        repaired = tuple([replace(each, call_id=call.id) for each in self.repairs])
        return Scheduled(call.id, intern(call.name), call.json, repaired)


def _bind(call: ToolCall, tool: Runnable | None, repair: RepairMode) -> _BoundCall:
    """Bind a call's arguments to its tool. Repair invalid arguments that have exactly one valid interpretation."""
    repairs: tuple[Repair, ...] = ()
    if repair != "strict" and call.is_malformed:
        call, repairs = _parse_malformed(call)
    if tool is None or call.is_malformed:
        return _BoundCall(call, None, repairs)
    arguments = call.arguments
    bound = tool.bind(arguments)
    if repair == "strict" or not isinstance(bound, tuple):
        return _BoundCall(call, bound, repairs, arguments)
    reading = tool._single_interpretation(arguments)
    if reading is None or not isinstance(reading.value, dict):
        return _BoundCall(call, bound, repairs)
    read = tool.bind(reading.value)
    if isinstance(read, tuple):  # the value fits the schema but not the types of the function's parameters
        return _BoundCall(call, bound, repairs)
    call = call.with_arguments(JsonObject(dump(reading.value)))
    return _BoundCall(call, read, repairs + reading.repairs, reading.value)


def _plan_call(
    bound_call: _BoundCall,
    tools: Mapping[str, Runnable],
    disabled_tools: Container[str],
    *,
    can_ask: bool,
    approved: bool,
) -> RunnableCall | Refused | Denied | WaitingCall:
    call, bound = bound_call.call, bound_call.bind_result
    tool = tools.get(call.name)
    if tool is None:
        return _refusal(call, unknown_tool_error(call.name, tools))
    if call.name in disabled_tools:
        return _disabled_tool_refusal(call)
    if bound is None:
        return _refusal(call, tool_error(call.name, (), call.raw or ""))
    if isinstance(bound, tuple):
        return _refusal(call, tool_error(call.name, bound))
    approval = tool.approval_of(bound_call.json_arguments)
    if approval == "deny":
        return denial(call)
    if tool.is_external:
        # The call needs no separate approval: the caller approves it by providing its result.
        return WaitingCall(call, is_external=True)
    needs_approval = approval == "ask" and not approved
    return (
        WaitingCall(call, is_external=False)
        if needs_approval and not can_ask
        else RunnableCall(call, bound.kwargs, needs_approval)
    )


def _parse_malformed(call: ToolCall) -> tuple[ToolCall, tuple[Repair, ...]]:
    """Convert a call's malformed arguments to JSON if no content is lost. Return the call and its repairs, if any."""
    read = read_arguments(call.raw or "")
    if read is None:
        return call, ()
    json, kinds = read
    return call.with_arguments(json), tuple([Repair(kind) for kind in kinds])


def _refusal(call: ToolCall, problem: dict[str, JsonValue]) -> Refused:
    return Refused(call.id, ingest(problem).json)


def _too_many_calls_refusal(call: ToolCall, max_calls: int) -> Refused:
    message = (
        f"At most {max_calls} calls of one message are run; repeat the remaining calls in your next message."
    )
    return _refusal(call, {"tool_error": {"kind": "too_many_calls", "tool": call.name, "message": message}})


def _disabled_tool_refusal(call: ToolCall) -> Refused:
    message = (
        f"{call.name} was called with errors too often and is not available any more in this turn; "
        "continue without this tool."
    )
    return _refusal(call, {"tool_error": {"kind": "tool_unavailable", "tool": call.name, "message": message}})
