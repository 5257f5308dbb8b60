"""The scheduler actor: runs the tool calls of one model message concurrently, and reports how each ended.

`actors.core.turn.batch` decides which calls run, and `actors.scheduler.calls` runs one call. Only this actor reports
calls to the ledger, one batch at a time. The `Scheduled` events are durable before any tool starts, and the `Started`
event of a call is durable before its tool starts. A batch is over when the end of every call is durable.

A stopped call is closed when its tool ends or after `GRACE`, whichever is first. A tool that still runs then is
quarantined, and its result is recorded as a late result.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from typing import Any, ClassVar, TypeAlias, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from actors.core.data.jsonio import JsonValue
from actors.core.log.call_events import (
    CallEvent,
    Cancelled,
    Completion,
    Failed,
    Reason,
    Refused,
    Returned,
    Scheduled,
    Started,
)
from actors.core.log.events import SubagentUsage
from actors.core.schemas.arguments import ArgumentError
from actors.core.schemas.readings import FittingValue
from actors.core.schemas.repair import Repair, RepairMode
from actors.core.stats.stats import ToolCounts
from actors.core.turn.batch import Approve, BoundArguments, Plan, WaitingCall, plan
from actors.core.turn.guards import NO_POLICY, CallPolicy, mark_repeated
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import JournalError, KernelError, SessionError
from actors.kernel import Actor, Command, Context, Query, Ref, Reply
from actors.kernel.event_loop import Waiter, event_loop, wake
from actors.kernel.host_code import call_host
from actors.kernel.variables import call_with_variables
from actors.ledger.ledger_actor import LedgerCommand, LedgerSnapshot, Record, Recorded
from actors.scheduler.calls import GRACE, BatchContext, CallExecution, for_model
from actors.scheduler.executor import Executor
from actors.scheduler.views import NO_VIEW, TurnView
from actors.telemetry import logger
from actors.tools import Approval, Tool

Tools: TypeAlias = Mapping[str, Tool[..., Any]]  # Any: any function


class BatchEnded(Struct, frozen=True):
    """The end of a batch: the end of every call is durable, except of the calls that wait for the caller.

    Args:
        refused: The number of calls with an unknown tool or invalid arguments.
        external: The calls that wait for their results, in call order.
        approvals: The calls that wait for approval, in call order.
        delegated: The usage of the subagents of the calls.
        repaired: The repairs of malformed arguments.
        snapshot: The ledger after the last event of the batch; None if the batch recorded none.
    """

    refused: int = 0
    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    delegated: tuple[SubagentUsage, ...] = ()
    repaired: tuple[Repair, ...] = ()
    snapshot: LedgerSnapshot | None = None


class RunBatch(Query[BatchEnded], frozen=True):
    """Run the calls of one model message. While a batch runs, a second one fails with `SessionError`.

    Args:
        calls: The calls, in the model's order.
        variables: Context variables of the ask's caller.
        view: The part of the turn that tools can read.
        approved: The calls have been approved.
        waited: The calls waited for the caller, so they are already scheduled.
        policy: The disabled tools and the repeated results of the turn.
        repair: How malformed arguments are repaired.
        again: The calls had started before a crash. A call that cannot run again stays open, without an error result.
        counts: Counts the recorded events, even if the sender of this query is gone when the batch ends.
    """

    calls: tuple[ToolCall, ...]
    variables: Variables = field(default_factory=copy_context)
    view: TurnView = NO_VIEW
    approved: bool = False
    waited: bool = False
    policy: CallPolicy = NO_POLICY
    repair: RepairMode = "unambiguous"
    again: bool = False
    counts: ToolCounts = field(default_factory=ToolCounts)


class StopBatch(Command, frozen=True):
    """Stop the running batch, if there is one. The reply to its `RunBatch` follows within `GRACE`.

    It is not a control message, because it must not overtake the `RunBatch` that it stops.
    """

    reason: Reason = "cancelled"


class CloseCalls(Query[Recorded], frozen=True):
    """Close calls that will not run."""

    calls: tuple[CallId, ...]
    reason: Reason


class EndCalls(Query[Recorded], frozen=True):
    """Record the ends of calls that did not run here: external calls and denials."""

    events: tuple[Completion, ...]


class CheckCall(Query[tuple[ArgumentError, ...]], frozen=True):
    """Query the errors in a call's arguments. An unknown tool reports none.

    `variables` are the caller's context variables.
    """

    call: ToolCall
    variables: Variables


SchedulerCommand: TypeAlias = RunBatch | StopBatch | CloseCalls | EndCalls | CheckCall


class SchedulerActor(Actor[SchedulerCommand]):
    """The owner of a session's running batch. A crash stops the tools, and recovery closes the open calls."""

    level: ClassVar[int] = 2

    def __init__(
        self, tools: Tools, ledger: Ref[LedgerCommand], executor: Executor, approve: Approve | None = None
    ) -> None:
        self._tools = tools
        self._approve = approve
        self._ledger = ledger
        self._executor = executor
        self._batch: _Batch | None = None
        self._context: Context[SchedulerCommand] | None = None

    def on_start(self, context: Context[SchedulerCommand]) -> None:
        """Keep the context, which starts batches as children."""
        self._context = context

    def receive(self, command: SchedulerCommand) -> None:
        assert self._context is not None
        match command:
            case RunBatch(reply=reply) | CloseCalls(reply=reply) | EndCalls(reply=reply) if reply.is_done:
                return  # the sender is gone; the code that ends the turn closes the open calls
            case RunBatch():
                if self._batch is not None:
                    command.reply.fail(SessionError("A batch is running; stop it, or wait for its end."))
                    return
                self._batch = self._plan_batch(command)
                self._context.start(self._run, command, self._batch)
            case StopBatch(reason=reason):
                if self._batch is not None:
                    self._batch.stop(reason)
            case CloseCalls(calls=calls, reason=reason):
                events = tuple([Cancelled(call_id, reason) for call_id in calls])
                self._context.start(self._record, command.reply, events)
            case EndCalls(events=events):
                self._context.start(self._record, command.reply, events)
            case CheckCall(reply=reply, call=call, variables=variables):
                reply.send(call_with_variables(variables, partial(self._check_arguments, call)))
            case _:
                assert_never(command)

    def _plan_batch(self, command: RunBatch) -> "_Batch":
        calls = command.calls
        called = dict.fromkeys([call.name for call in calls])
        # the error for an unknown tool lists all tools
        names = called if called.keys() <= self._tools.keys() else self._tools
        guarded = {name: _Guarded(self._tools[name]) for name in names}
        most = self._executor.limits.batch
        can_ask = self._approve is not None
        planning = partial(
            plan,
            calls,
            guarded,
            most,
            can_ask=can_ask,
            approved=command.approved,
            waited=command.waited,
            disabled_tools=command.policy.disabled_tools,
            repair=command.repair,
        )
        planned = call_with_variables(command.variables, planning)
        if command.again:
            planned = replace(planned, answered=(), waiting=())
        return _Batch(planned, self._ledger, self._executor, command.policy, command.counts)

    async def _run(self, command: RunBatch, batch: "_Batch") -> None:
        try:
            ended = await batch.run(command, self._tools, self._approve)
        finally:
            self._batch = None
        command.reply.send(ended)

    async def _record(self, reply: Reply[Recorded], events: tuple[CallEvent, ...]) -> None:
        reply.send(await self._ledger.ask(Record(events)))

    def _check_arguments(self, call: ToolCall) -> tuple[ArgumentError, ...]:
        tool = self._tools.get(call.name)
        bound = None if tool is None else _Guarded(tool).bind(call.arguments)
        return bound if isinstance(bound, tuple) else ()


class _Batch:
    """A running batch."""

    def __init__(
        self,
        planned: Plan,
        ledger: Ref[LedgerCommand],
        executor: Executor,
        policy: CallPolicy,
        counts: ToolCounts,
    ) -> None:
        self._plan = planned
        self._counts = counts
        self._policy = policy
        self._ledger = ledger
        self._executor = executor
        self._open: dict[CallId, CallExecution] = {}
        self._stopping: Reason | None = None
        self._snapshot: LedgerSnapshot | None = None
        self._news: list[CallEvent] = []  # events that are not recorded yet
        self._waiter: Waiter | None = None

    async def run(self, command: RunBatch, tools: Tools, approve: Approve | None) -> BatchEnded:
        """Run the calls that can run, and record the end of every call."""
        site = BatchContext(
            self._executor, command.variables, approve, self._begin, self.on_call_end, command.view
        )
        calls = [CallExecution(planned, tools[planned.call.name], site) for planned in self._plan.run]
        try:
            begin = tuple([each.start_event for each in calls if each.try_acquire()])
            await self._record((*self._plan.scheduled, *self._plan.answered, *begin))
            self._start(calls)
            await self._collect(len(calls))
        finally:
            if left := [each for each in calls if not each.is_over]:
                self._abandon(left)
            self._open.clear()  # from here on, every result is late
        waiting = await self._waiting()
        refused = sum(isinstance(event, Refused) for event in self._plan.answered)
        external = tuple([each.call for each in waiting if each.is_external])
        approvals = tuple([each.call for each in waiting if not each.is_external])
        delegated = tuple([each for call in calls for each in call.delegated])
        repaired = tuple([each for call in self._plan.scheduled for each in call.repaired])
        return BatchEnded(refused, external, approvals, delegated, repaired, self._snapshot)

    async def _waiting(self) -> tuple[WaitingCall, ...]:
        """Return the calls that wait for the caller. If the batch was stopped, cancel them and return none."""
        waiting = self._plan.waiting
        if waiting and self._stopping is not None:
            await self._record(tuple([Cancelled(each.call.id, self._stopping) for each in waiting]))
            return ()
        return waiting

    def stop(self, reason: Reason) -> None:
        """Stop every tool that still runs. Stopping a batch again has no effect."""
        if self._stopping is None:
            self._stopping = reason
            for each in tuple(self._open.values()):
                each.stop()
            self._executor.after(GRACE, self._give_up)

    def _abandon(self, calls: Sequence[CallExecution]) -> None:
        """Stop calls that no batch waits for. After `GRACE`, those whose tools still run are quarantined."""
        for each in calls:
            each.stop()
        self._executor.after(GRACE, partial(_close_open, calls))

    def on_call_end(self, running: CallExecution, event: CallEvent | None) -> None:
        """Record the end of a call; None if its tool was stopped. A result for a closed call becomes a late result."""
        if self._open.pop(running.call.id, None) is not None:
            ended = event or Cancelled(running.call.id, self._stop_reason())
            before = self._policy.known.get(running.call.id)
            if before is not None:
                ended = mark_repeated(ended, before, has_note=self._policy.has_note)
            self._news.append(ended)
            wake(self._waiter)
        elif isinstance(event, Returned | Failed) and not running.is_late:
            self._executor.start_apart(partial(self._record_late, event), "late")

    def _start(self, calls: Sequence[CallExecution]) -> None:
        for each in calls:
            self._open[each.call.id] = each
        for each in calls:
            if self._stopping is None:
                each.start()
            else:
                each.close(None)

    def _give_up(self) -> None:
        """Close the open calls: the grace period is over."""
        for each in tuple(self._open.values()):
            each.close(None)

    async def _begin(self, started: Started) -> None:
        await self._ledger.ask(Record((started,)))

    async def _record_late(self, event: CallEvent) -> None:
        with suppress(KernelError, JournalError):  # the session has ended, or is ending
            await self._ledger.ask(Record((event,)))

    async def _collect(self, remaining: int) -> None:
        """Record the ends of calls as they arrive, all available ends in one append, until every call is closed."""
        while remaining:
            if not self._news:
                self._waiter = event_loop().waiter()
                await self._waiter
            events, self._news = self._news, []
            remaining -= len(events)
            await self._record(tuple(events))

    async def _record(self, events: tuple[CallEvent, ...]) -> None:
        if not events:  # all calls are already scheduled, and none starts at once
            return
        self._snapshot = (await self._ledger.ask(Record(events))).snapshot
        for event in events:
            match event:
                case Refused():
                    self._counts.tool_calls_invalid_args += 1
                case Returned(repeated=True) | Failed(repeated=True):
                    self._counts.tool_calls_repeated += 1
                case Scheduled() if event.repaired:
                    self._counts.tool_calls_repaired += 1
                case _:
                    pass

    def _stop_reason(self) -> Reason:
        return self._stopping or "interrupted"


def _close_open(calls: Sequence[CallExecution]) -> None:
    """Close the calls whose tools have not ended."""
    for each in calls:
        if not (each.is_over or each.is_closed):
            each.close(None)


class _Guarded:
    """A tool whose rules and types may raise any exception, which counts as invalid arguments."""

    def __init__(self, tool: Tool[..., Any]) -> None:  # Any: any function
        self.tool = tool
        self.is_external = tool.is_external

    def approval_of(self, arguments: dict[str, JsonValue]) -> Approval:
        return call_host(partial(self.tool.approval_of, arguments), self._deny)

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        return call_host(partial(self.tool.bind, arguments), self._reject_arguments)

    def _only_reading(self, arguments: Mapping[str, JsonValue]) -> FittingValue | None:
        return self.tool._only_reading(arguments)

    def _deny(self, error: BaseException) -> Approval:
        """Deny the call, because its approval rule raised."""
        logger.host_code_failed(f"the approval rule of tool {self.tool.name!r}", error, "denied")
        return "deny"

    def _reject_arguments(self, error: BaseException) -> tuple[ArgumentError, ...]:
        logger.host_code_failed(f"the types of tool {self.tool.name!r}", error, "refused")
        return (ArgumentError("", for_model(error)),)
