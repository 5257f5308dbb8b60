"""A batch: the calls of one model message, sorted before anything runs.

A call runs only if its tool exists, its arguments are valid and its approval is given; else it is answered at
once: with a structured `tool_error` the model can correct itself by, or with a denial. Nothing is run that was
not understood. A call of a tool without a body, and one that nobody here can approve of, waits for the caller.
"""

from collections.abc import Awaitable, Callable, Container, Mapping
from sys import intern
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from actors.core.data.ingest import ingest
from actors.core.data.jsonio import JsonObject, JsonValue, dump, quote
from actors.core.log.events import Denied, Refused, Scheduled
from actors.core.schemas.arguments import ArgumentError, tool_error, unknown_tool_error
from actors.core.schemas.repair import Repair, RepairMode, read_arguments
from actors.core.values.content import ToolCall

if TYPE_CHECKING:
    from actors.core.schemas.readings import FittingValue

Approve: TypeAlias = Callable[[ToolCall], bool | str | Awaitable[bool | str]]
"""Says whether a call of a tool with `approval="ask"` may run: True, or else why not, if that is a text."""


class BoundArguments(Struct, frozen=True):
    """Arguments that passed: what to call the function with."""

    kwargs: Mapping[str, Any]  # Any: whatever types the function asks for


class Runnable(Protocol):
    """What a batch needs to know of a tool."""

    def approval_of(self, arguments: dict[str, JsonValue]) -> Literal["allow", "ask", "deny"]:
        """Return who must agree before it runs with these arguments."""

    @property
    def is_external(self) -> bool:
        """Whether it has no body: the caller passes the results of its calls."""

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Return the function's arguments, or what is missing and wrong in those given."""

    def only_reading(self, arguments: Mapping[str, JsonValue]) -> "FittingValue | None":
        """Return wrong arguments as they fit the schema, if exactly one reading of them does."""


class Planned(Struct, frozen=True):
    """A call that can run, with its function's arguments; `asks` says whether someone must approve of it first."""

    call: ToolCall
    arguments: Mapping[str, Any]  # Any: see `BoundArguments`
    asks: bool


class Waits(Struct, frozen=True):
    """A call that waits for the caller: for its result if it `is_external`, else for somebody's approval."""

    call: ToolCall
    is_external: bool


class Plan(Struct, frozen=True):
    """What is to be done with a batch, in call order. What is `scheduled` must be durable before anything runs."""

    run: tuple[Planned, ...]
    answered: tuple[Refused | Denied, ...]
    waits: tuple[Waits, ...]
    scheduled: tuple[Scheduled, ...]


def plan(
    calls: tuple[ToolCall, ...],
    tools: Mapping[str, Runnable],
    most: int,
    *,
    can_ask: bool,
    approved: bool = False,
    waited: bool = False,
    barred: Container[str] = (),
    repair: RepairMode = "unambiguous",
) -> Plan:
    """Sort the calls of one message into those that can run, those that are answered at once, and those that wait.

    No more than `most` are run; the rest are refused, and the model is told. `can_ask`: somebody here can approve of a
    call; if not, calls that want that wait. `approved`: somebody has; `waited`: for that, and they are scheduled.
    `barred`: tools that were called wrongly too often in this turn, and are not run in it any more. `repair`: what is
    done about arguments with a slip. A call that was repaired has its repaired arguments in all parts of the plan.
    """
    taken, others = calls[:most], calls[most:]
    read = [_bound(call, None if call.name in barred else tools.get(call.name), repair) for call in taken]
    found = [_sorted(each, tools, barred, can_ask=can_ask, approved=approved) for each in read]
    found += [_too_many(call, most) for call in others]
    return Plan(
        tuple([each for each in found if isinstance(each, Planned)]),
        tuple([each for each in found if isinstance(each, Refused | Denied)]),
        tuple([each for each in found if isinstance(each, Waits)]),
        () if waited else tuple([each.scheduled for each in (*read, *map(_Bound, others))]),
    )


def denied(call: ToolCall, reason: str = "") -> Denied:
    """Return the answer to a call that nobody approved of, with the reason if there is one."""
    why = f": {reason}" if reason else "."
    return Denied(call.id, quote(f"Running {call.name!r} was not approved{why}"))


class _Bound(Struct, frozen=True):
    """A call with its arguments as they were read, and what its tool makes of them; None where they are not read."""

    call: ToolCall
    bound: BoundArguments | tuple[ArgumentError, ...] | None = None
    repairs: tuple[Repair, ...] = ()
    arguments: dict[str, JsonValue] = {}

    @property
    def scheduled(self) -> Scheduled:
        """What is written of the call before anything runs."""
        call = self.call
        repaired = tuple([replace(each, call_id=call.id) for each in self.repairs])
        return Scheduled(call.id, intern(call.name), call.json, repaired)


def _bound(call: ToolCall, tool: Runnable | None, repair: RepairMode) -> _Bound:
    """Return a call with the arguments that its tool takes, read otherwise than they are written if need be."""
    repairs: tuple[Repair, ...] = ()
    if repair != "strict" and call.is_malformed:
        call, repairs = _readable(call)
    if tool is None or call.is_malformed:
        return _Bound(call, None, repairs)
    arguments = call.arguments
    bound = tool.bind(arguments)
    if repair == "strict" or not isinstance(bound, tuple):
        return _Bound(call, bound, repairs, arguments)
    reading = tool.only_reading(arguments)
    if reading is None or not isinstance(reading.value, dict):
        return _Bound(call, bound, repairs)
    read = tool.bind(reading.value)
    if isinstance(read, tuple):  # the function's own types want something else
        return _Bound(call, bound, repairs)
    call = call.with_arguments(JsonObject(dump(reading.value)))
    return _Bound(call, read, repairs + reading.repairs, reading.value)


def _sorted(
    read: _Bound, tools: Mapping[str, Runnable], barred: Container[str], *, can_ask: bool, approved: bool
) -> Planned | Refused | Denied | Waits:
    call, bound = read.call, read.bound
    tool = tools.get(call.name)
    if tool is None:
        return _refused(call, unknown_tool_error(call.name, tools))
    if call.name in barred:
        return _barred(call)
    if bound is None:
        return _refused(call, tool_error(call.name, (), call.raw or ""))
    if isinstance(bound, tuple):
        return _refused(call, tool_error(call.name, bound))
    approval = tool.approval_of(read.arguments)
    if approval == "deny":
        return denied(call)
    if tool.is_external:  # who passes its result has approved of it
        return Waits(call, is_external=True)
    asks = approval == "ask" and not approved
    return Waits(call, is_external=False) if asks and not can_ask else Planned(call, bound.kwargs, asks)


def _readable(call: ToolCall) -> tuple[ToolCall, tuple[Repair, ...]]:
    """Return a call with the arguments that its malformed ones can be read as without loss, and the slips."""
    read = read_arguments(call.raw or "")
    if read is None:
        return call, ()
    json, kinds = read
    return call.with_arguments(json), tuple([Repair(kind) for kind in kinds])


def _refused(call: ToolCall, problem: dict[str, JsonValue]) -> Refused:
    return Refused(call.id, ingest(problem).json)


def _too_many(call: ToolCall, most: int) -> Refused:
    message = f"At most {most} calls of one message are run; make the others again."
    return _refused(call, {"tool_error": {"kind": "too_many_calls", "tool": call.name, "message": message}})


def _barred(call: ToolCall) -> Refused:
    message = f"{call.name} was called wrongly too often and is not available any more in this turn; go on without it."
    return _refused(call, {"tool_error": {"kind": "tool_unavailable", "tool": call.name, "message": message}})
