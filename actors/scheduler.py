"""The scheduler actor: runs the tool calls of one model message at the same time, and says how each ended.

What may run, and what is refused, is `actors.core.batch`. This actor alone reports to the ledger, a batch at a time:
`Scheduled` is durable before any tool starts, and the batch is over when every call's end is durable.

A tool is other people's code, so each runs in a task of the runtime's workshop and not of this actor's: it may
hang, raise anything, or swallow its cancellation. A stopped call is closed when its tool ends or after the
grace, whichever is first. What the tool still does then runs in quarantine, and what it still returns is
recorded as a late result.
"""

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol, TypeAlias, assert_never

import anyio
import anyio.lowlevel
import anyio.to_thread

from actors import telemetry
from actors.core.arguments import ArgumentError
from actors.core.batch import FAN_OUT, Approve, Plan, plan
from actors.core.content import ToolCall
from actors.core.events import CallEvent, Cancelled, Failed, Reason, Returned, Started
from actors.core.identity import CallId
from actors.core.jsonio import JsonValue, quote
from actors.core.returned import parted
from actors.errors import JournalError, KernelError, SessionError
from actors.journal import Prelude
from actors.kernel import Actor, Command, Context, Query, Receiver, Ref, Sender, channel
from actors.kernel.tasks import Work
from actors.ledger import LedgerCommand, Record
from actors.tools import Approval, Bound, Tool

Tools: TypeAlias = Mapping[str, Tool[..., Any]]  # Any: any function

GRACE = 0.5
"""Seconds a stopped tool may take to clean up before its call is closed without it."""


class Workshop(Protocol):
    """Where tools run: a place that outlives the batch. The runtime owns it."""

    @property
    def threads(self) -> int:
        """Threads one session's tools may have, those that are not async."""

    def start(self, work: Work, name: str) -> anyio.CancelScope:
        """Start a task that ends with the runtime at the latest; return what cancels it. What it raises is logged."""


@dataclass(frozen=True, slots=True)
class BatchEnded:
    """Every call of the batch is closed, and that is durable.

    Args:
        ends: How each call ended, in call order, as the name of its event: `returned`,
            `failed`, `refused`, `denied`, `cancelled`.
        seq: Number of the last event in the log.
    """

    ends: tuple[tuple[CallId, str], ...]
    seq: int

    @property
    def refused(self) -> int:
        """How many calls were refused for their name or arguments."""
        return sum(how == "refused" for _, how in self.ends)


@dataclass(frozen=True)
class RunBatch(Query[BatchEnded]):
    """Run the calls of one model message. One batch at a time: a second is refused with `SessionError`.

    `prelude` is written ahead of all of them.
    """

    calls: tuple[ToolCall, ...]
    prelude: Prelude | None = None


@dataclass(frozen=True)
class StopBatch(Command):
    """Stop the running batch, if there is one. Its `RunBatch` is answered as ever, soon.

    It travels as mail, so that it cannot overtake the `RunBatch` it stops.
    """

    reason: Reason = "cancelled"


@dataclass(frozen=True)
class CloseCalls(Query[None]):
    """Close calls that will not be run. `prelude` is written ahead of that."""

    calls: tuple[CallId, ...]
    reason: Reason
    prelude: Prelude | None = None


SchedulerCommand: TypeAlias = RunBatch | StopBatch | CloseCalls


class SchedulerActor(Actor[SchedulerCommand]):
    """Runs one session's batches. A crash stops the tools; the log says which calls are open then."""

    level: ClassVar[int] = 2

    def __init__(
        self, tools: Tools, ledger: Ref[LedgerCommand], workshop: Workshop, approve: Approve | None = None
    ) -> None:
        self._tools = tools
        self._approve = approve
        self._ledger = ledger
        self._workshop = workshop
        self._batch: _Batch | None = None
        self._threads: anyio.CapacityLimiter | None = None
        self._context: Context[SchedulerCommand] | None = None

    def started(self, context: Context[SchedulerCommand]) -> None:
        """Keep the context: batches are its children."""
        self._context = context

    def receive(self, command: SchedulerCommand) -> None:
        assert self._context is not None
        match command:
            case RunBatch(reply=reply) | CloseCalls(reply=reply) if reply.done:
                return  # its asker is gone: what is open of its turn is closed by whoever ended that
            case RunBatch():
                if self._batch is not None:
                    command.reply.fail(SessionError("A batch is running; stop it, or wait for its end."))
                    return
                self._batch = self._planned(command.calls)
                self._context.start(self._run, command, self._batch)
            case StopBatch(reason=reason):
                if self._batch is not None:
                    self._batch.stop(reason)
            case CloseCalls():
                self._context.start(self._close, command)
            case _:
                assert_never(command)

    def stopped(self) -> None:
        """Stop the tools of a batch that is still running."""
        if self._batch is not None:
            self._batch.stop("interrupted")

    def _planned(self, calls: tuple[ToolCall, ...]) -> "_Batch":
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(self._workshop.threads)
        careful = {call.name: _Careful(tool) for call in calls if (tool := self._tools.get(call.name))}
        planned = plan(calls, careful, None if self._approve is None else partial(_approved, self._approve))
        return _Batch(planned, self._tools, self._ledger, self._workshop.start, self._threads)

    async def _run(self, command: RunBatch, batch: "_Batch") -> None:
        try:
            ended = await batch.run(command.calls, command.prelude)
        finally:
            self._batch = None
        command.reply.send(ended)

    async def _close(self, command: CloseCalls) -> None:
        events = tuple(Cancelled(call_id, command.reason) for call_id in command.calls)
        await self._ledger.ask(Record(events, command.prelude))
        command.reply.send(None)


class _Batch:
    """One batch while it runs."""

    def __init__(
        self,
        planned: Plan,
        tools: Tools,
        ledger: Ref[LedgerCommand],
        start: Callable[[Work, str], anyio.CancelScope],
        threads: anyio.CapacityLimiter,
    ) -> None:
        self._plan = planned
        self._tools = tools
        self._ledger = ledger
        self._start = start
        self._threads = threads
        self._open: dict[CallId, anyio.CancelScope] = {}
        self._ends: dict[CallId, str] = {
            event.call_id: type(event).__name__.lower() for event in planned.answered
        }
        self._stopping: Reason | None = None
        self._deadline = math.inf
        self._seq = 0
        self._news: tuple[Sender[CallEvent | None], Receiver[CallEvent | None]] = channel(FAN_OUT + 1)

    async def run(self, calls: Sequence[ToolCall], prelude: Prelude | None) -> BatchEnded:
        """Run what can run, record every end, and return the ends in call order."""
        started = tuple(Started(call.id) for call, _ in self._plan.run)
        await self._record((*self._plan.scheduled, *self._plan.answered, *started), prelude)
        for call, arguments in self._plan.run:
            running = _Running(self, self._tools[call.name], call.id, arguments, self._threads)
            self._open[call.id] = self._start(running.run, call.name)
        if self._stopping is not None:
            self._cancel_tools()
        try:
            await self._collect()
        finally:
            self._cancel_tools()
            self._open.clear()  # what still comes, comes late
        return BatchEnded(tuple((call.id, self._ends[call.id]) for call in calls), self._seq)

    def stop(self, reason: Reason) -> None:
        """Cancel every tool that is still running. Stopping again changes nothing."""
        if self._stopping is None:
            self._stopping = reason
            self._deadline = anyio.current_time() + GRACE
            self._cancel_tools()
            self._news[0].send_nowait(None)

    @property
    def stopping(self) -> bool:
        """Whether no further tool may begin."""
        return self._stopping is not None

    def ended(self, call_id: CallId, event: CallEvent | None) -> None:
        """Take how a tool ended; None if it was stopped. After its call was closed, what comes is late."""
        if self._open.pop(call_id, None) is not None:
            self._news[0].send_nowait(event or Cancelled(call_id, self._why()))
        elif event is not None:
            self._start(partial(self._late, event), "late")  # the tool may have left its own task unusable

    async def _late(self, event: CallEvent) -> None:
        with suppress(KernelError, JournalError):  # its session has ended, or is just ending
            await self._ledger.ask(Record((event,)))

    async def _collect(self) -> None:
        """Record ends as they come, those of one moment together, until every call is closed."""
        remaining = len(self._plan.run)
        while remaining:
            events = await self._next()
            remaining -= len(events)
            if events:
                await self._record(tuple(events))

    async def _next(self) -> list[CallEvent]:
        """Wait for ends; once the batch is stopped only for the grace, then close what is open."""
        news = self._news[1]
        if self._stopping is None:
            first = await news.receive()
        else:
            first = None
            with anyio.CancelScope(deadline=self._deadline):
                first = await news.receive()
            if first is None and anyio.current_time() >= self._deadline:
                closed: list[CallEvent] = [Cancelled(call_id, self._why()) for call_id in self._open]
                self._open.clear()
                return closed
        events = [] if first is None else [first]
        with suppress(anyio.WouldBlock):
            while True:
                if (event := news.receive_nowait()) is not None:
                    events.append(event)
        return events

    async def _record(self, events: tuple[CallEvent, ...], prelude: Prelude | None = None) -> None:
        for event in events:
            if isinstance(event, Returned | Failed | Cancelled):
                self._ends[event.call_id] = type(event).__name__.lower()
        self._seq = await self._ledger.ask(Record(events, prelude))

    def _why(self) -> Reason:
        return self._stopping or "interrupted"

    def _cancel_tools(self) -> None:
        """Cancel what can hear it. A thread cannot: it is waited for, within the grace and then in quarantine."""
        for call, _ in self._plan.run:
            if call.id in self._open and self._tools[call.name].is_async:
                self._open[call.id].cancel()


@dataclass(frozen=True, slots=True)
class _Running:
    """One tool while it runs. Whatever it does, exactly one end comes of it."""

    batch: _Batch
    tool: Tool[..., Any]  # Any: any function
    call_id: CallId
    arguments: Mapping[str, Any]  # Any: whatever types the function asks for
    threads: anyio.CapacityLimiter

    async def run(self) -> None:
        event: CallEvent | None = None
        try:
            if not self.batch.stopping:
                event = await self._end()
        except GeneratorExit as error:  # thrown in from outside, it drops what the callee returns
            event = self._failed(error)
        finally:
            self.batch.ended(self.call_id, event)

    async def _end(self) -> CallEvent | None:
        """Return how the tool ended, None if it did not begin; raises only the cancellation of this task."""
        try:
            if self.tool.timeout is None:
                return await self._returned()
            with anyio.move_on_after(self.tool.timeout):
                return await self._returned()
            return Failed(self.call_id, quote(f"The tool did not return within {self.tool.timeout} s."))
        except GeneratorExit as error:  # Python lets nothing be awaited after this one
            return self._failed(error)
        except BaseException as error:  # a tool may raise anything, a stray cancellation or an exit included
            await anyio.lowlevel.checkpoint()  # raises here if it is this task that is being cancelled
            return self._failed(error)

    async def _returned(self) -> CallEvent | None:
        call = partial(self.tool.function, **self.arguments)
        if self.tool.is_async:
            return await self._awaited(call())
        ended = await anyio.to_thread.run_sync(
            self._in_thread, call, abandon_on_cancel=True, limiter=self.threads
        )
        return await self._awaited(ended) if inspect.iscoroutine(ended) else ended

    async def _awaited(self, value: Awaitable[object]) -> CallEvent:
        return self._given(await value)

    def _in_thread(self, call: Callable[[], object]) -> Any:  # Any: an end, or a coroutine to be awaited
        """Call the function; what it raises must not cross from its thread into the event loop."""
        if self.batch.stopping:  # it waited for a thread until it was stopped
            return None
        try:
            value = call()
            return value if inspect.iscoroutine(value) else self._given(value)
        except BaseException as error:
            return self._failed(error)

    def _given(self, value: object) -> Returned:
        return Returned(self.call_id, *parted(value))

    def _failed(self, error: BaseException) -> Failed:
        return Failed(self.call_id, quote(_words(error)))


@dataclass(frozen=True, slots=True)
class _Careful:
    """A tool whose types may raise anything when they read a value: arguments that do that are wrong ones."""

    tool: Tool[..., Any]  # Any: any function

    @property
    def approval(self) -> Approval:
        return self.tool.approval

    def bind(self, arguments: Mapping[str, JsonValue]) -> Bound | tuple[ArgumentError, ...]:
        try:
            return self.tool.bind(arguments)
        except Exception as error:
            return (ArgumentError("", _words(error)),)


def _approved(approve: Approve, call: ToolCall) -> bool:
    """Ask for approval; whoever cannot say has not given it."""
    try:
        return approve(call) is True  # a coroutine, say, is no approval
    except Exception as error:
        telemetry.crashed(f"approval of {call.name}", error)
        return False


def _words(error: BaseException) -> str:
    """Return an exception's type and text on a few lines at most, whatever its own methods do."""
    try:
        text = str.__str__(str(error))  # a subclass of str has methods of its own
    except BaseException:  # its __str__ may raise anything too
        text = "(its text could not be read)"
    return f"{type(error).__name__}: {text}"[:4096] if text else type(error).__name__
