"""Run one tool call: request approval, acquire a thread if needed, run the tool, and record how the call ended.

The scheduler actor creates one `CallExecution` per call. Each call ends exactly once, whatever the tool does. If a
stopped tool does not end in time, the call is closed anyway, and the tool continues in quarantine.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Any

from msgspec import Struct

from actors.core.data.jsonio import quote
from actors.core.data.truncate import SizeLimits
from actors.core.log.call_events import CallEvent, Failed, Returned, Started
from actors.core.log.events import SubagentUsage
from actors.core.stream_events.round_events import ToolFailedEvent
from actors.core.turn.batch import Approve, RunnableCall, denial
from actors.core.turn.tool_output import is_large, split_output
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import JournalError, KernelError, ResourceBusy, ThreadsBusy
from actors.interrupts import is_from_signal
from actors.kernel.host_code import call_host
from actors.kernel.receiver import call_with_variables
from actors.kernel.shared import Timer
from actors.kernel.tasks import ContainedTask
from actors.scheduler.children import Subagents
from actors.scheduler.executor import Executor, ToolCallMarker
from actors.scheduler.failures import describe_for_model, disabled_error, not_run_error
from actors.scheduler.in_threads import CaughtException, run_in_slot, wait_for_slot
from actors.scheduler.ordering import ResourceWriter
from actors.scheduler.threads import CONVERSION_THREADS, THREADS, ThreadSlot
from actors.scheduler.views import NO_VIEW, TurnView, create_subagents, create_tool_context
from actors.tools import Tool
from actors.tools.signature import is_async

MAX_CONVERSIONS = 2
"""Maximum number of large results that a process converts at once. More threads would wait for the interpreter lock."""

GRACE = 0.5
"""Seconds that a stopped tool may take to clean up. After that, its call is closed and the tool is quarantined."""


class BatchContext(Struct, frozen=True):
    """The values that all calls of one batch share.

    Args:
        executor: Runs the tools.
        context: The caller's context variables. Each call gets a copy.
        approve: The host's approval function.
        record_start: Logs the start of a call, and returns when the event is durable.
        on_end: Called when a call ends, with the call's last event. If the call was stopped, the event is None.
        view: Information about the turn, which tools can read.
    """

    executor: Executor
    context: Context
    approve: Approve | None
    record_start: "Callable[[Started], Awaitable[object]]"
    on_end: "Callable[[CallExecution, CallEvent | None], None]"
    view: TurnView = NO_VIEW


class CallExecution:
    """The execution of one tool call. Call `try_acquire`, then `start` once the call's `Started` event is durable.

    Args:
        planned: The call with its checked arguments.
        tool: The tool to run.
        batch: The values that all calls of the batch share.
    """

    call: ToolCall
    tool: Tool[..., Any]
    batch: BatchContext
    is_begun: bool
    has_timed_out: bool
    is_over: bool
    is_closed: bool

    def __init__(
        self, planned: RunnableCall, tool: Tool[..., Any], batch: BatchContext
    ) -> None:  # Any: tools have functions of any type
        self.call, self.tool, self.batch = planned.call, tool, batch
        self.arguments: Mapping[str, Any] = planned.arguments  # Any: each tool has its own parameter types
        self._needs_approval = planned.needs_approval
        self._slot: ThreadSlot | None = None
        self._thread: ThreadSlot | None = None
        self._task: ContainedTask | None = None
        self._marker: ToolCallMarker | None = None
        self._timer: Timer | None = None
        self._writer: ResourceWriter | None = None
        self._subagents: Subagents | None = None
        self.delegated: Sequence[SubagentUsage] = ()
        """The usage of the call's subagent sessions that have ended."""
        self._fault: BaseException | None = None  # the error that the tool's `resources` function raised
        self._began: float | None = (
            None  # start time on the loop's clock; None before the start and after the count
        )
        self.is_begun = self.has_timed_out = False
        self._is_stopped = self._runs_on = self.is_over = self.is_closed = False

    @property
    def start_event(self) -> Started:
        """The `Started` event, which the log must contain before the tool runs."""
        return Started(self.call.id, self.tool.effects)

    @property
    def is_stop_requested(self) -> bool:
        """True if the tool was asked to stop, because the call was cancelled or timed out."""
        return self._is_stopped or self.has_timed_out

    def try_acquire(self) -> bool:
        """Acquire a thread and other resources for the call without waiting.

        Return True if `start` can run the tool immediately. Otherwise, `start` waits for the resources or the approval.
        """
        if (self.tool.resources and self._must_wait_for_resources()) or self._needs_approval:
            return False
        if self.batch.executor.quarantine.is_disabled(self.tool):
            return False
        if not self.tool.is_async:
            self._slot = THREADS.try_take_slot(self.batch.executor.limits.threads)
        self.is_begun = self.tool.is_async or self._slot is not None
        return self.is_begun

    def _must_wait_for_resources(self) -> bool:
        """Register the call as a writer of its resources. Return True if the tool cannot run now.

        An earlier call may still write to one of the resources, or the tool's `resources` function may have raised.
        """
        rule = partial(self.tool.resource_keys, self.call.arguments)
        keys = call_host(partial(call_with_variables, self.batch.context, rule), self._keep_keys_error)
        if keys is None:
            return True
        self._writer = self.batch.executor.order.add_writer(keys)
        return self._writer.has_to_wait

    def _keep_keys_error(self, error: BaseException) -> None:
        """Store an error that the tool's `resources` function raised. `start` then ends the call with this error."""
        self._fault = error

    def start(self) -> None:
        """Start the task that runs the call."""
        call, context = self.call, self.batch.context.copy()
        if self.is_begun:
            self._began = self.batch.executor.now()
        self._marker = self.batch.executor.mark_context(context)
        self._task = self.batch.executor.start_tool_task(self._run, call.name, call.id, context)

    def stop(self) -> None:
        """Ask the tool to stop. A tool in a thread notices the request only if the tool checks its `ToolContext`."""
        self._is_stopped = True
        self._end_subagents()
        if self._marker is not None:
            self._marker.mark_stopped()
        if self._task is None:
            self._release_unused_slot()
            if self._writer is not None:
                self._writer.leave_order()
        elif self._thread is None:  # a thread cannot be cancelled
            self._task.cancel()

    def close(self, event: CallEvent | None) -> None:
        """End the call with `event` without waiting for its tool. A tool that still runs is counted in quarantine."""
        self._mark_closed()
        self._report_end(event)
        if self._writer is not None:
            self._writer.mark_closed()
        if self._thread is not None:
            self._thread.abandon()
        elif self._task is not None:
            self._task.detach()
        if self._task is not None and not self.is_over and not self._runs_on:
            self._runs_on = True
            self.batch.executor.quarantine.add(self.tool)

    def _mark_closed(self) -> None:
        """Mark the call as closed. From now on, nothing waits for the tool or for the tasks that the tool started."""
        self.is_closed = True
        if self._marker is not None:
            self._marker.mark_ended()

    def _release_unused_slot(self) -> None:
        """Return the thread slot to the pool if it was acquired but not used."""
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.give_back()

    def _end_subagents(self) -> None:
        """Start to close the subagent sessions that the tool opened."""
        if self._subagents is not None:
            self._subagents.close_all()

    def _report_end(self, event: CallEvent | None) -> None:
        """Report the end of the call after all its subagents have ended. If the call was stopped, `event` is None."""
        if self._began is not None:
            began, self._began = self._began, None
            self.batch.executor.count_call(self.tool.name, began, failed=isinstance(event, Failed))
        if self._subagents is None:
            self.batch.on_end(self, event)
        else:
            self._subagents.end_and_notify(partial(self.batch.on_end, self, event))

    async def _run(self) -> None:
        """Run the call in its task, then release its resources and report its end."""
        event: CallEvent | None = None
        try:
            event = await self._run_to_end()
        except GeneratorExit as error:  # the coroutine was closed, so `_run_to_end` could not return an event
            event = self._failure_event(error)
        finally:
            if self._timer is not None:
                self.batch.executor.cancel_timer(self._timer)
            self.is_over = True
            self._mark_closed()
            if self._runs_on:
                self.batch.executor.quarantine.remove(self.tool)
            self._release_unused_slot()
            if self._writer is not None:
                self._writer.leave_order()
            self._report_end(event)

    async def _run_to_end(self) -> CallEvent | None:
        """Run the call and return the event that ends it; None if the call was stopped.

        Do not await after a tool raised, because the tool may have left its task in a broken state.
        """
        try:
            if self._needs_approval and (answer := await self._ask_approval()) is not True:
                return denial(self.call, answer if isinstance(answer, str) else "")
            if self._fault is not None:
                raise self._fault
            if self._writer is not None and self._writer.has_to_wait:
                await self._writer.wait_for_turn()
            if not self.is_begun and self.batch.executor.quarantine.is_disabled(self.tool):
                return Failed(self.call.id, disabled_error(self.tool.name))
            if not self.tool.is_async and self._slot is None:
                self._slot = await wait_for_slot(
                    self.batch.executor, THREADS, self.batch.executor.limits.threads
                )
            # The `Started` event must be durable before the tool runs, because a restart relies on it.
            if self._is_stopped or not (self.is_begun or await self._record_start()):
                return None
            if self.tool.timeout is not None:
                self._timer = self.batch.executor.call_after(self.tool.timeout, self._time_out)
            return await self._call_tool()
        except (ThreadsBusy, ResourceBusy) as error:
            self._report_error(error)
            return Failed(self.call.id, not_run_error(self.tool.name, error))
        except GeneratorExit:  # a coroutine that is being closed must not return a value
            raise
        except BaseException as error:  # a tool may raise any exception, even `SystemExit`
            if is_from_signal(error):
                raise
            return self._failure_event(error)

    async def _record_start(self) -> bool:
        """Record the start of the call. Return False if the start could not be recorded, so the tool must not run."""
        try:
            await self.batch.record_start(self.start_event)
        except (KernelError, JournalError):  # the session has ended, or its actors restart from the log
            return False
        self.is_begun, self._began = True, self.batch.executor.now()
        return True

    async def _call_tool(self) -> CallEvent | None:
        """Call the tool's function in this task or in a thread, and convert the return value to an event."""
        arguments, name = self.arguments, self.tool.context_parameter
        if name is not None:
            view, executor = self.batch.view, self.batch.executor
            self._subagents = create_subagents(self, view, executor)
            self.delegated = self._subagents.delegated
            context = create_tool_context(self, view, self._subagents, executor, self.tool.timeout)
            arguments = {**arguments, name: context}
        call = partial(self.tool.function, **arguments)
        if self.tool.is_async:
            value = await call()
            return await self._convert_large(value) if is_large(value) else self._return_event(value)
        value = await self._run_in_thread(lambda: self._convert_unless_awaitable(call()))
        if isinstance(value, CaughtException):
            return self._failure_event(value.error)
        return value if isinstance(value, Returned) else self._return_event(await value)

    def _convert_unless_awaitable(self, value: Any) -> Any:  # Any: a tool may return any value
        """Convert a return value to an event, in the tool's thread. Return an awaitable unchanged."""
        return value if inspect.isawaitable(value) else self._return_event(value)

    def _return_event(self, value: object, *, plain_only: bool = False) -> Returned:
        """Convert a tool's return value to an event.

        With `plain_only`, raise an error for a value that is not plain data, because converting it may run host code.
        """
        limits = self.batch.executor.limits.result
        return Returned(self.call.id, *split_output(value, limits, plain_only=plain_only))

    async def _convert_large(self, value: object) -> Returned:
        """Convert a large return value to an event: plain data in a thread, and other values in the event loop.

        Converting other values may run host code, which belongs in the event loop. The tool has already returned, so a
        timeout or an error during the conversion must not change the result.
        """
        if self._timer is not None:
            self.batch.executor.cancel_timer(self._timer)
        try:
            self._slot = await wait_for_slot(self.batch.executor, CONVERSION_THREADS, MAX_CONVERSIONS)
            read = await self._run_in_thread(partial(self._return_event, value, plain_only=True))
        except GeneratorExit:
            raise
        except BaseException as error:
            if is_from_signal(error):
                raise
            return self._return_event(value)
        return read if isinstance(read, Returned) else self._return_event(value)

    def _failure_event(self, error: BaseException) -> CallEvent | None:
        """Return the event for a call whose tool raised; None if the tool raised because the call was cancelled."""
        assert self._task is not None
        if self.has_timed_out:
            return self._timeout_event
        if self._task.cancelled:
            return None
        self._report_error(error)
        return Failed(self.call.id, quote(describe_for_model(error)))

    async def _ask_approval(self) -> object:
        """Call the host's `approve` function and return its answer.

        If the function raises, return None, which denies the call.
        """
        approve = self.batch.approve
        assert approve is not None
        try:
            if is_async(approve):
                answer: Any = approve(self.call)  # Any: the host's function may return any value
            else:
                self._slot = await wait_for_slot(
                    self.batch.executor, THREADS, self.batch.executor.limits.threads
                )
                answer = await self._run_in_thread(partial(approve, self.call))
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:
            answer = CaughtException(error)
        if isinstance(answer, CaughtException):
            assert self._task is not None
            if self._task.cancelled or is_from_signal(answer.error):
                raise answer.error
            self._report_error(answer.error)
            return None
        said: object = answer
        return said

    async def _run_in_thread(self, work: Callable[[], object]) -> Any:  # Any: `work` may return anything
        """Run `work` in the thread of the call's slot. Return its value, or its exception as a `CaughtException`."""
        slot, self._slot = self._slot, None
        assert slot is not None
        self._thread = slot
        try:
            return await run_in_slot(slot, work)
        finally:
            self._thread = None

    def _time_out(self) -> None:
        """Stop a call that timed out, and close it after `GRACE` seconds.

        A tool in a thread without a `ToolContext` cannot notice the stop, so its call is closed immediately.
        """
        if self._task is None or self._is_stopped:
            return
        self.has_timed_out = True
        self._end_subagents()
        self._report_error(TimeoutError(f"{self.tool.name} did not return within {self.tool.timeout} s"))
        if self._thread is not None and self.tool.context_parameter is None:
            self.close(self._timeout_event)
            return
        if self._thread is None:
            self._task.cancel()
        self._timer = self.batch.executor.call_after(GRACE, partial(self.close, self._timeout_event))

    @property
    def _timeout_event(self) -> Failed:
        """The event that ends a call whose tool did not return in time."""
        return Failed(self.call.id, quote(f"The tool did not return within {self.tool.timeout} s."))

    def _report_error(self, error: BaseException) -> None:
        """Report an error of the tool to the program and to the reader of the ask's stream."""
        self.batch.executor.report_failure(self.call.id, self.tool.name, error)
        if (put := self.batch.view.put) is not None:
            view = self.batch.view
            put(ToolFailedEvent(view.turn, view.round, self.call.id, type(error).__name__))


def external_ends(results: Mapping[str, object], limits: SizeLimits) -> tuple[Returned | Failed, ...]:
    """Convert a caller's results for external calls to events: `Failed` for an exception, otherwise `Returned`."""
    return tuple(
        [
            Failed(CallId(call_id), quote(describe_for_model(value)))
            if isinstance(value, BaseException)
            else Returned(CallId(call_id), *split_output(value, limits))
            for call_id, value in results.items()
        ]
    )
