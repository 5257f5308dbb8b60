"""Run the tool calls of one model message concurrently, and report how each call ended.

`actors.core.turn.batch` decides which calls run, and `actors.scheduler.calls` runs one call. Only the scheduler actor
reports calls to the ledger, one batch at a time. The `Scheduled` events are durable before any tool starts, and the
`Started` event of a call is durable before its tool starts. A batch has ended when the end of every call is durable.

A stopped call is closed when its tool ends or after `GRACE` seconds, whichever is first. A tool that is still running
at that time is quarantined, and its result is recorded as a late result.
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
from actors.kernel.receiver import call_with_variables
from actors.ledger.ledger_actor import LedgerCommand, LedgerSnapshot, Record, Recorded
from actors.scheduler.calls import GRACE, BatchContext, CallExecution
from actors.scheduler.executor import Executor
from actors.scheduler.failures import describe_for_model
from actors.scheduler.views import NO_VIEW, TurnView
from actors.telemetry import logger
from actors.tools import Approval, Tool

Tools: TypeAlias = Mapping[str, Tool[..., Any]]  # Any: tool signatures differ


class BatchEnded(Struct, frozen=True):
    """The result of a batch. Every call has ended durably, except for calls that wait for a result or a decision.

    Args:
        refused: Number of calls with an unknown tool or invalid arguments.
        external: The external calls, which wait for results, in call order.
        approvals: The calls that wait for approval, in call order.
        delegated: The usage of the subagents that the calls opened.
        repaired: The repairs of malformed arguments.
        snapshot: The ledger after the last event of the batch; None if the batch recorded no event.
    """

    refused: int = 0
    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    delegated: tuple[SubagentUsage, ...] = ()
    repaired: tuple[Repair, ...] = ()
    snapshot: LedgerSnapshot | None = None


class RunBatch(Query[BatchEnded], frozen=True):
    """Run the calls of one model message. While another batch runs, the query fails with `SessionError`.

    Args:
        calls: The calls, in the model's order.
        variables: Context variables of the ask's caller.
        view: Information about the turn, which tools can read.
        approved: Whether the calls have been approved.
        waited: Whether the log already contains the `Scheduled` events of the calls, because the calls waited for a
            decision or had started before a crash.
        policy: The disabled tools and the repeated results of the turn.
        repair: The rules for repairing malformed arguments.
        after_crash: Whether the calls had started before a crash. A call that cannot run again then stays open.
        counts: Counts the recorded events, even if the sender of this query no longer exists when the batch ends.
    """

    calls: tuple[ToolCall, ...]
    variables: Variables = field(default_factory=copy_context)
    view: TurnView = NO_VIEW
    approved: bool = False
    waited: bool = False
    policy: CallPolicy = NO_POLICY
    repair: RepairMode = "unambiguous"
    after_crash: bool = False
    counts: ToolCounts = field(default_factory=ToolCounts)


class StopBatch(Command, frozen=True):
    """Stop the running batch, if there is one. The reply to its `RunBatch` follows within `GRACE` seconds.

    `StopBatch` waits in the mailbox like other commands. A control message could overtake the `RunBatch` that it stops.
    """

    reason: Reason = "cancelled"


class CloseCalls(Query[Recorded], frozen=True):
    """Close calls that will not run, and record the reason."""

    calls: tuple[CallId, ...]
    reason: Reason


class EndCalls(Query[Recorded], frozen=True):
    """Record the ends of calls that did not run here: results of external calls, and denials."""

    events: tuple[Completion, ...]


class CheckCall(Query[tuple[ArgumentError, ...]], frozen=True):
    """Query the errors in a call's arguments. The answer is empty if there are none, or if the tool is unknown.

    `variables` are the caller's context variables.
    """

    call: ToolCall
    variables: Variables


SchedulerCommand: TypeAlias = RunBatch | StopBatch | CloseCalls | EndCalls | CheckCall


class SchedulerActor(Actor[SchedulerCommand]):
    """The owner of a session's running batch. A crash of this actor stops the tools; recovery closes the open calls."""

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
        """Keep the context, which starts batches as child tasks."""
        self._context = context

    def receive(self, command: SchedulerCommand) -> None:
        assert self._context is not None
        match command:
            case RunBatch(reply=reply) | CloseCalls(reply=reply) | EndCalls(reply=reply) if reply.is_done:
                return  # the sender no longer exists, and the code that ends the turn closes the open calls
            case RunBatch():
                if self._batch is not None:
                    command.reply.fail(
                        SessionError("A batch is running; stop the batch, or wait until it ends")
                    )
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
        """Check the calls and their arguments, and decide which calls run, wait or fail."""
        calls = command.calls
        called = dict.fromkeys([call.name for call in calls])
        # If a tool is unknown, all tools are needed for the error message, which lists them.
        names = called if called.keys() <= self._tools.keys() else self._tools
        guarded = {name: _GuardedTool(self._tools[name]) for name in names}
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
        if command.after_crash:
            planned = replace(planned, answered=(), waiting=())
        return _Batch(planned, self._ledger, self._executor, command.policy, command.counts)

    async def _run(self, command: RunBatch, batch: "_Batch") -> None:
        """Run a batch in a child task, and reply with its result."""
        try:
            ended = await batch.run(command, self._tools, self._approve)
        finally:
            self._batch = None
        command.reply.send(ended)

    async def _record(self, reply: Reply[Recorded], events: tuple[CallEvent, ...]) -> None:
        """Record events in the ledger in a child task, and reply with the ledger's answer."""
        reply.send(await self._ledger.ask(Record(events)))

    def _check_arguments(self, call: ToolCall) -> tuple[ArgumentError, ...]:
        """Return the errors in a call's arguments. There are none if the tool is unknown."""
        tool = self._tools.get(call.name)
        bound = None if tool is None else _GuardedTool(tool).bind(call.arguments)
        return bound if isinstance(bound, tuple) else ()


class _Batch:
    """A running batch of tool calls."""

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
        self._unrecorded_events: list[CallEvent] = []
        self._waiter: Waiter | None = None

    async def run(self, command: RunBatch, tools: Tools, approve: Approve | None) -> BatchEnded:
        """Run the calls that can run, and record how they ended.

        Calls that wait for a result or a decision are returned without having ended.
        """
        context = BatchContext(
            self._executor, command.variables, approve, self._record_start, self.on_call_end, command.view
        )
        calls = [CallExecution(planned, tools[planned.call.name], context) for planned in self._plan.run]
        try:
            # The `Scheduled` events and the first `Started` events share one append.
            begin = tuple([each.start_event for each in calls if each.try_acquire()])
            await self._record((*self._plan.scheduled, *self._plan.answered, *begin))
            self._start_calls(calls)
            await self._collect_ends(len(calls))
        finally:
            # If this task was cancelled, nothing waits for the tools that still run.
            if left := [each for each in calls if not each.is_over]:
                self._stop_abandoned(left)
            self._open.clear()  # from here on, every result is a late result
        waiting = await self._waiting_calls()
        refused = sum(isinstance(event, Refused) for event in self._plan.answered)
        external = tuple([each.call for each in waiting if each.is_external])
        approvals = tuple([each.call for each in waiting if not each.is_external])
        delegated = tuple([each for call in calls for each in call.delegated])
        repaired = tuple([each for call in self._plan.scheduled for each in call.repaired])
        return BatchEnded(refused, external, approvals, delegated, repaired, self._snapshot)

    async def _waiting_calls(self) -> tuple[WaitingCall, ...]:
        """Return the calls that wait for a result or a decision. If the batch was stopped, cancel them instead."""
        waiting = self._plan.waiting
        if waiting and self._stopping is not None:
            await self._record(tuple([Cancelled(each.call.id, self._stopping) for each in waiting]))
            return ()
        return waiting

    def stop(self, reason: Reason) -> None:
        """Stop every tool that still runs. A second stop has no effect."""
        if self._stopping is None:
            self._stopping = reason
            for each in tuple(self._open.values()):
                each.stop()
            self._executor.call_after(GRACE, self._close_remaining)

    def _stop_abandoned(self, calls: Sequence[CallExecution]) -> None:
        """Stop calls for which no batch waits any more. After `GRACE` seconds, tools that still run are quarantined."""
        for each in calls:
            each.stop()
        self._executor.call_after(GRACE, partial(_close_open, calls))

    def on_call_end(self, ended_call: CallExecution, event: CallEvent | None) -> None:
        """Record the end of a call. `event` is None if the tool was stopped.

        The result of a call that is already closed is recorded as a late result.
        """
        if self._open.pop(ended_call.call.id, None) is not None:
            ended = event or Cancelled(ended_call.call.id, self._stop_reason())
            before = self._policy.known.get(ended_call.call.id)
            if before is not None:
                ended = mark_repeated(ended, before, has_note=self._policy.has_note)
            self._unrecorded_events.append(ended)
            wake(self._waiter)
        elif isinstance(event, Returned | Failed) and not ended_call.has_timed_out:
            self._executor.start_separate_task(partial(self._record_late, event), "late")

    def _start_calls(self, calls: Sequence[CallExecution]) -> None:
        """Start the calls. If the batch was stopped before this, close them instead."""
        for each in calls:
            self._open[each.call.id] = each
        for each in calls:
            if self._stopping is None:
                each.start()
            else:
                each.close(None)

    def _close_remaining(self) -> None:
        """Close the calls that are still open after the grace period."""
        for each in tuple(self._open.values()):
            each.close(None)

    async def _record_start(self, started: Started) -> None:
        """Record the start of a call in the ledger."""
        await self._ledger.ask(Record((started,)))

    async def _record_late(self, event: CallEvent) -> None:
        """Record a late result, unless the session is ending."""
        with suppress(KernelError, JournalError):  # the session has ended or is ending
            await self._ledger.ask(Record((event,)))

    async def _collect_ends(self, remaining: int) -> None:
        """Record the ends of `remaining` calls as they arrive. Ends that arrive together are recorded in one append."""
        while remaining:
            if not self._unrecorded_events:
                self._waiter = event_loop().waiter()
                await self._waiter
            events, self._unrecorded_events = self._unrecorded_events, []
            remaining -= len(events)
            await self._record(tuple(events))

    async def _record(self, events: tuple[CallEvent, ...]) -> None:
        """Record events in the ledger, and count the rejected, repeated and repaired calls among them."""
        if not events:  # all calls were scheduled earlier, and no call can start immediately
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
        """Return the reason for which the batch was stopped; `interrupted` if it was not stopped."""
        return self._stopping or "interrupted"


def _close_open(calls: Sequence[CallExecution]) -> None:
    """Close the calls whose tools have not ended."""
    for each in calls:
        if not (each.is_over or each.is_closed):
            each.close(None)


class _GuardedTool:
    """A wrapper of a tool that catches exceptions of the tool's approval rule and parameter types.

    If the approval rule raises, the call is denied. If a parameter type raises, the arguments are rejected.
    """

    def __init__(self, tool: Tool[..., Any]) -> None:  # Any: tool signatures differ
        self.tool = tool
        self.is_external = tool.is_external

    def approval_of(self, arguments: dict[str, JsonValue]) -> Approval:
        return call_host(partial(self.tool.approval_of, arguments), self._deny)

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        return call_host(partial(self.tool.bind, arguments), self._reject_arguments)

    def _single_interpretation(self, arguments: Mapping[str, JsonValue]) -> FittingValue | None:
        return self.tool._single_interpretation(arguments)

    def _deny(self, error: BaseException) -> Approval:
        """Log an exception that the approval rule raised, and deny the call."""
        logger.host_code_failed(f"the approval rule of tool {self.tool.name!r}", error, "denied")
        return "deny"

    def _reject_arguments(self, error: BaseException) -> tuple[ArgumentError, ...]:
        """Log an exception that a parameter type raised, and return it as an error in the arguments."""
        logger.host_code_failed(f"the types of tool {self.tool.name!r}", error, "refused")
        return (ArgumentError("", describe_for_model(error)),)
