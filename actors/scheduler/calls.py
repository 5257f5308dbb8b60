"""Run one tool call: get its approval, acquire a thread if it needs one, run the tool, and end the call exactly once.

Whatever the tool does, the call has exactly one end. If a stopped tool does not end in time, the call is closed without
the tool, which continues in quarantine.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from functools import partial
from itertools import islice
from typing import Any

import anyio
from msgspec import Struct

from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, quote
from actors.core.data.truncate import SizeLimits
from actors.core.log.call_events import CallEvent, Failed, Returned, Started
from actors.core.log.events import SubagentUsage
from actors.core.stream_events.events import ToolFailedEvent
from actors.core.turn.batch import Approve, Planned, denial
from actors.core.turn.tool_output import is_large, split_output
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import AskFailed, JournalError, KernelError, ReentrantCall, ResourceBusy, ThreadsBusy
from actors.interrupts import is_delivered, is_group
from actors.kernel.contained import ContainedTask
from actors.kernel.deadlines import Timer
from actors.kernel.event_loop import Waiter, event_loop, wake
from actors.kernel.host_code import call_host
from actors.kernel.variables import call_with_variables
from actors.scheduler.children import Subagents
from actors.scheduler.executor import Executor, Inside
from actors.scheduler.from_threads import loop_context, run_in
from actors.scheduler.ordering import ResourceWriter
from actors.scheduler.threads import READERS, THREADS, SlotRequest, Threads, ThreadSlot
from actors.scheduler.views import NO_VIEW, TurnView, context_of, subagents_of
from actors.tools import Tool
from actors.tools.signature import is_async

READING = 2
"""Large results that a process converts at once. The threads share one interpreter, so more would be no faster."""

GRACE = 0.5
"""Seconds a stopped tool may take to clean up before its call is closed without it."""

MOST_SAID, MOST_LEAVES = 4096, 16
"""Limits on an error message for the model: its characters, and the errors of an exception group."""


class BatchContext(Struct, frozen=True):
    """The values that the calls of one batch share.

    Args:
        executor: Runs the tools.
        context: The context variables of the caller. Each call gets a copy.
        approve: The host's approval function.
        begin: Logs the start of a call, and returns when the event is durable.
        ended: Called with the event that ends a call, or None if the call was stopped.
        view: The part of the turn that tools can read.
    """

    executor: Executor
    context: Context
    approve: Approve | None
    begin: "Callable[[Started], Awaitable[object]]"
    ended: "Callable[[CallExecution, CallEvent | None], None]"
    view: TurnView = NO_VIEW


class _Raised(Struct, frozen=True):
    """An exception from a tool's thread, passed as a value."""

    error: BaseException


class CallExecution:
    """One tool call. Call `try_acquire`, then `start` once the call's `Started` event is durable."""

    call: ToolCall
    tool: Tool[..., Any]
    site: BatchContext
    is_begun: bool
    is_late: bool
    is_over: bool
    is_closed: bool

    def __init__(
        self, planned: Planned, tool: Tool[..., Any], site: BatchContext
    ) -> None:  # Any: any function
        self.call, self.tool, self.site = planned.call, tool, site
        self.arguments: Mapping[str, Any] = planned.arguments  # Any: whatever types the function asks for
        self._asks = planned.asks
        self._place: ThreadSlot | None = None
        self._thread: ThreadSlot | None = None
        self._task: ContainedTask | None = None
        self._inside: Inside | None = None
        self._timer: Timer | None = None
        self._writer: ResourceWriter | None = None
        self._subagents: Subagents | None = None
        self.delegated: Sequence[SubagentUsage] = ()
        """The usage of the call's subagent sessions that have ended."""
        self._fault: BaseException | None = None  # raised by the tool's `keys_of` rule
        self._began: float | None = None  # start time on the loop's clock, until the call is counted
        self.is_begun = self.is_late = False
        self._is_stopped = self._runs_on = self.is_over = self.is_closed = False

    @property
    def start_event(self) -> Started:
        """The log event of the call's start."""
        return Started(self.call.id, self.tool.effects)

    @property
    def is_told(self) -> bool:
        """True if the tool was asked to stop."""
        return self._is_stopped or self.is_late

    def try_acquire(self) -> bool:
        """Try to acquire what the call needs, without waiting. Return True if `start` can begin the call at once."""
        if (self.tool.resources and self._must_wait()) or self._asks:
            return False
        if self.site.executor.quarantine.is_disabled(self.tool):
            return False
        if not self.tool.is_async:
            self._place = THREADS.take(self.site.executor.limits.threads)
        self.is_begun = self.tool.is_async or self._place is not None
        return self.is_begun

    def _must_wait(self) -> bool:
        """Enter the order of the calls that write to the same resources. Return True if another call comes first."""
        rule = partial(self.tool.keys_of, self.call.arguments)
        keys = call_host(partial(call_with_variables, self.site.context, rule), self._note_fault)
        if keys is None:
            return True
        self._writer = self.site.executor.order.enter(keys)
        return self._writer.has_to_wait

    def _note_fault(self, error: BaseException) -> None:
        """Keep an error of the tool's `keys_of` rule. The call fails with it."""
        self._fault = error

    def start(self) -> None:
        """Start the task that runs the call."""
        call, context = self.call, self.site.context.copy()
        if self.is_begun:
            self._began = self.site.executor.now()
        self._inside = self.site.executor.enter(context)
        self._task = self.site.executor.start(self._run, call.name, call.id, context)

    def stop(self) -> None:
        """Ask the tool to stop. A tool in a thread notices it only if it checks its `ToolContext`."""
        self._is_stopped = True
        self._end_subagents()
        if self._inside is not None:
            self._inside.stop()
        if self._task is None:
            self._give_back()
            if self._writer is not None:
                self._writer.end()
        elif self._thread is None:
            self._task.cancel()

    def close(self, event: CallEvent | None) -> None:
        """End the call without waiting for its tool, which continues in quarantine."""
        self._leave()
        self._has_ended(event)
        if self._writer is not None:
            self._writer.close()
        if self._thread is not None:
            self._thread.abandon()
        elif self._task is not None:
            self._task.detach()
        if self._task is not None and not self.is_over and not self._runs_on:
            self._runs_on = True
            self.site.executor.quarantine.enter(self.tool)

    def _leave(self) -> None:
        """Mark the call as closed: nothing waits for the tool, or for the tasks it started, any more."""
        self.is_closed = True
        if self._inside is not None:
            self._inside.leave()

    def _give_back(self) -> None:
        """Return a thread that was acquired and not used."""
        place, self._place = self._place, None
        if place is not None:
            place.give_back()

    def _end_subagents(self) -> None:
        if self._subagents is not None:
            self._subagents.end()

    def _has_ended(self, event: CallEvent | None) -> None:
        """Report the end of the call, after all sessions that its tool opened have ended."""
        if self._began is not None:
            began, self._began = self._began, None
            self.site.executor.count(self.tool.name, began, failed=isinstance(event, Failed))
        if self._subagents is None:
            self.site.ended(self, event)
        else:
            self._subagents.end_then(partial(self.site.ended, self, event))

    async def _run(self) -> None:
        event: CallEvent | None = None
        try:
            event = await self._end()
        except GeneratorExit as error:  # closed from outside, so `_end` could not return an event
            event = self._failure_event(error)
        finally:
            if self._timer is not None:
                self.site.executor.forget(self._timer)
            self.is_over = True
            self._leave()
            if self._runs_on:
                self.site.executor.quarantine.leave(self.tool)
            self._give_back()
            if self._writer is not None:
                self._writer.end()
            self._has_ended(event)

    async def _end(self) -> CallEvent | None:
        """Run the call, return the event of its end, or None if it was stopped. Do not await after a tool raised."""
        try:
            if self._asks and (answer := await self._ask_approval()) is not True:
                return denial(self.call, answer if isinstance(answer, str) else "")
            if self._fault is not None:
                raise self._fault
            if self._writer is not None and self._writer.has_to_wait:
                await self._writer.wait_for_turn()
            if not self.is_begun and self.site.executor.quarantine.is_disabled(self.tool):
                return Failed(self.call.id, _disabled_error(self.tool.name))
            if not self.tool.is_async and self._place is None:
                self._place = await self._wait_for_slot(THREADS, self.site.executor.limits.threads)
            if self._is_stopped or not (self.is_begun or await self._record_start()):
                return None
            if self.tool.timeout is not None:
                self._timer = self.site.executor.after(self.tool.timeout, self._time_out)
            return await self._call_tool()
        except (ThreadsBusy, ResourceBusy) as error:
            self._tell(error)
            return Failed(self.call.id, _not_run(self.tool.name, error))
        except GeneratorExit:  # a coroutine must not return a value after this exception
            raise
        except BaseException as error:  # a tool may raise anything, a stray cancellation or an exit included
            if is_delivered(error):
                raise
            return self._failure_event(error)

    async def _record_start(self) -> bool:
        """Record the start of the call. Return True if it was recorded."""
        try:
            await self.site.begin(self.start_event)
        except (KernelError, JournalError):  # its session has ended, or goes on from its log
            return False
        self.is_begun, self._began = True, self.site.executor.now()
        return True

    async def _call_tool(self) -> CallEvent | None:
        arguments, name = self.arguments, self.tool.context_parameter
        if name is not None:
            view, executor = self.site.view, self.site.executor
            self._subagents = subagents_of(self, view, executor)
            self.delegated = self._subagents.delegated
            context = context_of(self, view, self._subagents, executor, self.tool.timeout)
            arguments = {**arguments, name: context}
        call = partial(self.tool.function, **arguments)
        if self.tool.is_async:
            value = await call()
            return await self._read_large(value) if is_large(value) else self._return_event(value)
        value = await self._run_in_thread(lambda: self._ready(call()))
        if isinstance(value, _Raised):
            return self._failure_event(value.error)
        return value if isinstance(value, Returned) else self._return_event(await value)

    def _ready(self, value: Any) -> Any:  # Any: whatever a function returns
        """Convert a return value to an event, in the tool's thread. An awaitable is returned unchanged."""
        return value if inspect.isawaitable(value) else self._return_event(value)

    def _return_event(self, value: object, *, plain_only: bool = False) -> Returned:
        limits = self.site.executor.limits.result
        return Returned(self.call.id, *split_output(value, limits, plain_only=plain_only))

    async def _read_large(self, value: object) -> Returned:
        """Return the event of a large return value. A thread converts plain data; other values may run host code here.

        The tool has returned in time. A timeout or an error during the conversion must not change its result.
        """
        if self._timer is not None:
            self.site.executor.forget(self._timer)
        try:
            self._place = await self._wait_for_slot(READERS, READING)
            read = await self._run_in_thread(partial(self._return_event, value, plain_only=True))
        except GeneratorExit:
            raise
        except BaseException as error:
            if is_delivered(error):
                raise
            return self._return_event(value)
        return read if isinstance(read, Returned) else self._return_event(value)

    def _failure_event(self, error: BaseException) -> CallEvent | None:
        """Return the event of a call whose tool raised; None if the tool raised because it was cancelled."""
        assert self._task is not None
        if self.is_late:
            return self._too_late
        if self._task.cancelled:
            return None
        self._tell(error)
        return Failed(self.call.id, quote(for_model(error)))

    async def _ask_approval(self) -> object:
        """Ask the host's `approve` callback, and return its answer. A callback that raises gives no answer."""
        approve = self.site.approve
        assert approve is not None
        try:
            if is_async(approve):
                answer: Any = approve(self.call)  # Any: what the host's function returns
            else:
                self._place = await self._wait_for_slot(THREADS, self.site.executor.limits.threads)
                answer = await self._run_in_thread(partial(approve, self.call))
            if inspect.isawaitable(answer):
                answer = await answer
        except BaseException as error:
            answer = _Raised(error)
        if isinstance(answer, _Raised):
            assert self._task is not None
            if self._task.cancelled or is_delivered(answer.error):
                raise answer.error
            self._tell(answer.error)
            return None
        said: object = answer
        return said

    async def _wait_for_slot(self, pool: Threads, most: int) -> ThreadSlot:
        """Wait for a thread of a pool. `most`: how many threads of the pool may be busy.

        Raises:
            ThreadsBusy: No thread became free in time, or none can become free.
        """
        executor, here = self.site.executor, event_loop()
        waiter = here.waiter()
        request = SlotRequest(executor.tenant, executor.key, most, partial(here.soon, partial(wake, waiter)))
        with anyio.move_on_after(executor.limits.wait):
            try:
                pool.ask(request)
                if not request.is_answered:
                    await waiter
                return request.result()
            except BaseException:  # the request may have received a thread just before the cancellation
                pool.withdraw(request)
                raise
        raise ThreadsBusy(f"none of the {most} threads for tools became free in {executor.limits.wait} s")

    async def _run_in_thread(self, work: Callable[[], object]) -> Any:  # Any: its result, or `_Raised`
        """Run `work` in the thread of the call's slot. If the caller is cancelled, the thread continues."""
        place, self._place = self._place, None
        assert place is not None
        here, context, thread = event_loop(), copy_context(), loop_context()
        waiter = here.waiter()

        def run() -> None:
            try:
                with thread():
                    value: object = run_in(context, work)
            except BaseException as error:  # returned as a value: raised here, it would end only the thread
                value = _Raised(error)
            try:
                here.soon(partial(_hand, waiter, value))
            except RuntimeError:  # the loop has ended
                _drop(value)

        self._thread = place
        place.run(run)
        try:
            return await waiter
        except BaseException:
            place.abandon()
            if waiter.done() and not waiter.cancelled():  # the result arrived together with a cancellation
                _drop(waiter.result())
            raise
        finally:
            self._thread = None

    def _time_out(self) -> None:
        """Stop a call that timed out. It is closed after `GRACE`; at once if its thread has no context to check."""
        if self._task is None or self._is_stopped:
            return
        self.is_late = True
        self._end_subagents()
        self._tell(TimeoutError(f"{self.tool.name} did not return within {self.tool.timeout} s"))
        if self._thread is not None and self.tool.context_parameter is None:
            self.close(self._too_late)
            return
        if self._thread is None:
            self._task.cancel()
        self._timer = self.site.executor.after(GRACE, partial(self.close, self._too_late))

    @property
    def _too_late(self) -> Failed:
        return Failed(self.call.id, quote(f"The tool did not return within {self.tool.timeout} s."))

    def _tell(self, error: BaseException) -> None:
        self.site.executor.report_failure(self.call.id, self.tool.name, error)
        if (put := self.site.view.put) is not None:
            view = self.site.view
            put(ToolFailedEvent(view.turn, view.round, self.call.id, type(error).__name__))


def for_model(error: BaseException) -> str:
    """Return the type and message of an exception, and of the errors in a group, shortened for the model.

    Errors that address the tool's author, such as `ReentrantCall`, are replaced by a general message.
    """
    if is_group(error):
        return _group_for_model(error)
    return _shorten(_text_of(error), MOST_SAID)


def _group_for_model(group: BaseExceptionGroup[BaseException]) -> str:
    leaves = [*islice(_flatten(group), MOST_LEAVES + 1)]
    room = MOST_SAID // (len(leaves) + 1)
    lines = [_text_of(group), *[f"- {_text_of(leaf)}" for leaf in leaves[:MOST_LEAVES]]]
    more = ["- and more"] if len(leaves) > MOST_LEAVES else []
    return "\n".join([*[_shorten(line, room) for line in lines], *more])


def _flatten(group: BaseException) -> Iterator[BaseException]:
    """Yield the errors in nested exception groups, in order."""
    waiting = [group]
    while waiting:
        error = waiting.pop()
        if is_group(error):
            waiting.extend(reversed(error.exceptions))
        else:
            yield error


def _text_of(error: BaseException) -> str:
    if isinstance(error, KernelError | ReentrantCall):
        return "The tool failed for a reason that lies in the program that runs it."
    try:
        told = (
            error.result.why if isinstance(error, AskFailed) else str(error)
        )  # its advice is for the operator
        text = str.__str__(told)  # a subclass of str has methods of its own
    except BaseException:  # a `__str__` of the host may raise anything
        text = "(its text could not be read)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 6]} [cut]"


def _disabled_error(tool: str) -> Json:
    message = "Earlier calls of it have not ended, so it did not run. Go on without it."
    return ingest({"tool_error": {"kind": "tool_barred", "tool": tool, "message": message}}).json


def external_ends(results: Mapping[str, object], limits: SizeLimits) -> tuple[Returned | Failed, ...]:
    """Return the ends of external calls: `Failed` if the result is an exception, else `Returned`."""
    return tuple(
        [
            Failed(CallId(call_id), quote(for_model(value)))
            if isinstance(value, BaseException)
            else Returned(CallId(call_id), *split_output(value, limits))
            for call_id, value in results.items()
        ]
    )


def _not_run(tool: str, error: ThreadsBusy | ResourceBusy) -> Json:
    kind, why = _NOT_RUN[type(error)]
    message = f"{why}, so it did not run. Try again later."
    return ingest({"tool_error": {"kind": kind, "tool": tool, "message": message}}).json


_NOT_RUN: dict[type[Exception], tuple[str, str]] = {
    ThreadsBusy: ("no_thread", "No thread was free to run it"),
    ResourceBusy: ("resource_busy", "An earlier call, which was ended, still works on what it writes to"),
}


def _hand(waiter: Waiter, value: object) -> None:
    """Pass the result of a thread to its call, if the call still waits."""
    if waiter.done():
        _drop(value)
    else:
        waiter.set_result(value)


def _drop(value: object) -> None:
    """Drop the result of a thread. A coroutine is closed; otherwise Python warns that it was never awaited."""
    if inspect.iscoroutine(value):
        value.close()
