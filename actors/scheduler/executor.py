"""Run the tools of a session, and report the exceptions that they raise.

Tools are host code, so they are isolated. An async tool runs in a separate task, so that a tool that damages its task
harms no other task (`actors.kernel.tasks`). A blocking tool runs in a thread of the process's pool
(`actors.scheduler.threads`). Exceptions are logged with their traceback and passed to the host's `on_tool_error`; the
model gets only the message.
"""

from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from functools import partial

from msgspec import Struct

from actors.core.data.ingest import DEFAULT_LIMITS
from actors.core.data.truncate import SizeLimits
from actors.core.stats.measures import ToolMeasures
from actors.kernel import System
from actors.kernel.receiver import Child, Delegate, current, current_child
from actors.kernel.shared import Timer
from actors.kernel.tasks import ContainedTask, Work
from actors.scheduler.children import NO_SUBAGENTS, OpenSubagent
from actors.scheduler.ordering import ResourceOrder
from actors.scheduler.watchdog import CallLabel, Quarantine
from actors.telemetry import logger


class ToolFailure(Struct, frozen=True):
    """An exception that a tool or an approval function raised, as passed to `Runtime(on_tool_error=)`.

    Args:
        session: Id of the session.
        call_id: Id of the call.
        tool: Name of the tool.
        error: The exception, with its traceback.
    """

    session: str
    call_id: str
    tool: str
    error: BaseException


class ToolCallMarker(Struct, eq=False):
    """A marker for the tool call that runs the current code. The tasks of the tool inherit the marker in a context
    variable.

    The marker makes it possible to detect a tool that waits for its own session. After the call has ended (`is_over`),
    tasks that still run do not count as part of the call, because nothing waits for them.

    Args:
        system: The actor system of the runtime.
        session: Id of the session that made the call.
        outer: The marker of the call that opened this session, if the session is a subagent.
        delegate: Stands for the scheduler's child task that runs the call. A query that the tool sends to an actor
            counts as a query of this task. None if no actor runs the call.
        is_over: Whether the call has ended.
    """

    system: System
    session: str
    outer: "ToolCallMarker | None"
    delegate: Child | None
    is_over: bool = False

    def mark_stopped(self) -> None:
        """Record that the call was asked to stop."""
        if self.delegate is not None:
            self.delegate.is_cancelled = True

    def mark_ended(self) -> None:
        """Record that the call has ended, or was closed while its tool still runs."""
        self.is_over = True
        if self.delegate is not None:
            self.delegate.is_over = True


current_call: ContextVar[ToolCallMarker | None] = ContextVar("current_call", default=None)


def sessions_in_call(system: System) -> Iterator[str]:
    """Yield the ids of the sessions that wait for the tool in which the caller runs: the tool's session, then its
    parents. Yield nothing outside of tools.
    """
    here = current_call.get()
    while here is not None and not here.is_over:
        if here.system is system:
            yield here.session
        here = here.outer


def is_called_from_tool(system: System, session: str) -> bool:
    """Return True if the caller runs in a tool for which the session waits, directly or through subagents."""
    return session in sessions_in_call(system)


class ToolLimits(Struct, frozen=True):
    """Limits for the tools of a runtime.

    Args:
        batch: Maximum number of calls that run per message. Further calls of the message are not run.
        threads: Maximum number of the process's threads that blocking tools may use at once.
        wait: Seconds that a call waits for a thread.
        result: Size limits of a result.
    """

    batch: int
    threads: int
    wait: float
    result: SizeLimits = DEFAULT_LIMITS


class Executor:
    """The executor of one session's tools.

    Args:
        system: The actor system of the runtime.
        session: Id of the session.
        limits: Limits for the tools.
        quarantine: Counts the tools that still run although their calls were closed.
        on_failure: Called with each exception that a tool raises. The function must not raise.
        deps: The `deps` of the session, for its tools.
        key: A key that is unique to this session, even among sessions with the same id.
        tenant: The session's tenant. Tenants share the threads fairly.
        open_subagent: Opens subagent sessions for the tools.
        measures: Counts the calls of each tool.
    """

    quarantine: Quarantine
    session: str
    limits: ToolLimits
    deps: object
    key: str
    tenant: str

    def __init__(
        self,
        system: System,
        session: str,
        limits: ToolLimits,
        quarantine: Quarantine,
        on_failure: Callable[[ToolFailure], object] | None,
        deps: object = None,
        key: str = "",
        tenant: str = "",
        open_subagent: OpenSubagent = NO_SUBAGENTS,
        measures: ToolMeasures | None = None,
    ) -> None:
        self._system, self._on_failure, self.quarantine = system, on_failure, quarantine
        self.open_subagent = open_subagent
        self._measures = ToolMeasures() if measures is None else measures
        self.session, self.limits, self.deps, self.key, self.tenant = session, limits, deps, key, tenant
        self.order: ResourceOrder = ResourceOrder()
        """The order of the calls that write to the same resources."""
        self.running: int = 0
        """Number of tools that have not ended, including tools whose calls were closed."""

    def mark_context(self, context: Context) -> ToolCallMarker:
        """Store a marker for a new call of this session in `context`, and return the marker.

        Queries that code in this context sends to actors count as queries of the current child task.
        """
        child = current_child()
        here = ToolCallMarker(
            self._system, self.session, context.get(current_call), child and Delegate(child)
        )
        context.run(current_call.set, here)
        context.run(current.set, here.delegate)
        return here

    def start_tool_task(self, work: Work, name: str, call_id: str, context: Context) -> ContainedTask:
        """Start the task of a tool, in a context that `mark_context` has marked."""
        self.running += 1
        about = CallLabel(self.session, call_id, name)
        return self._system.contained_tasks.start(
            work, partial(self._on_task_end, name), name, context, about
        )

    def start_separate_task(self, work: Work, name: str) -> None:
        """Run `work` in a separate task. Use this after a tool has ended, because a tool may damage its task."""
        self._system.tasks.start(work, partial(_log_crash, name), name)

    def now(self) -> float:
        """Return the current time on the event loop's clock, in seconds."""
        return self._system.now()

    def count_call(self, tool: str, start_time: float, *, failed: bool) -> None:
        """Count a call that has ended, with its duration.

        `start_time` is the start of the call on the event loop's clock, in seconds.
        """
        self._measures.record_call(tool, self.now() - start_time, failed=failed)

    def call_after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` after `seconds`. `action` must not raise."""
        return self._system.deadlines.call_at(self._system.now() + seconds, action)

    def cancel_timer(self, timer: Timer) -> None:
        """Cancel a timer that `call_after` returned."""
        self._system.deadlines.cancel(timer)

    def report_failure(self, call_id: str, tool: str, error: BaseException) -> None:
        """Log a tool's exception, and report it to the host."""
        logger.tool_failed(self.session, call_id, tool, error)
        if self._on_failure is not None:
            self._on_failure(ToolFailure(self.session, call_id, tool, error))

    def _on_task_end(self, name: str, error: BaseException | None) -> None:
        """Count the end of a tool's task. If the tool damaged the task, log this."""
        self.running -= 1
        if isinstance(error, RuntimeError):  # the tool exited a cancel scope that was not the innermost one
            logger.tool_spoiled(self.session, name, error)


def _log_crash(name: str, error: BaseException | None) -> None:
    if error is not None:
        logger.actor_crashed(name, error)
