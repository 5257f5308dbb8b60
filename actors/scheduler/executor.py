"""Run the tools of a session, and report their exceptions.

Tools are host code, so they are isolated: an async tool runs in a task that it may damage without harm to others
(`actors.kernel.contained`), a blocking tool in a thread of the process's pool (`actors.scheduler.threads`). An
exception is logged with its traceback and passed to the host's `on_tool_error`; the model gets only its message.
"""

from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import partial

from msgspec import Struct

from actors.core.data.ingest import DEFAULT_LIMITS
from actors.core.data.truncate import SizeLimits
from actors.core.stats.measures import ToolMeasures
from actors.kernel import System
from actors.kernel.contained import ContainedTask
from actors.kernel.deadlines import Timer
from actors.kernel.receiver import Child, Delegate, current, current_child
from actors.kernel.tasks import Work
from actors.scheduler.children import NOBODY, OpenBelow
from actors.scheduler.ordering import ResourceOrder
from actors.scheduler.quarantine import Quarantine
from actors.scheduler.watchdog import CallLabel
from actors.telemetry import logger


class ToolFailure(Struct, frozen=True):
    """An exception of a tool or of an approval function, for `Runtime(on_tool_error=)`.

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


class Inside(Struct, eq=False):
    """The call that the current code belongs to. A context variable holds it, so the tasks of a tool inherit it.

    It detects a tool that waits for its own session. Once the call `is_over`, tasks that outlive the call are no longer
    part of it, because nothing waits for them.

    Args:
        system: The actor system of the runtime.
        session: Id of the session that made the call.
        outer: The call that opened this session, if it is a subagent.
        asks_as: The child of the scheduler on whose behalf the tool asks actors.
        is_over: Whether the call has ended.
    """

    system: System
    session: str
    outer: "Inside | None"
    asks_as: Child | None
    is_over: bool = False

    def stop(self) -> None:
        """Record that the call was asked to stop."""
        if self.asks_as is not None:
            self.asks_as.is_cancelled = True

    def leave(self) -> None:
        """Record that the call has ended, or was closed without its tool."""
        self.is_over = True
        if self.asks_as is not None:
            self.asks_as.is_over = True


inside: ContextVar[Inside | None] = ContextVar("inside", default=None)


def is_inside(system: System, session: str) -> bool:
    """Return True if the caller runs in a tool for which the session waits, directly or through subagents."""
    here = inside.get()
    while here is not None and not here.is_over:
        if here.system is system and here.session == session:
            return True
        here = here.outer
    return False


class ToolLimits(Struct, frozen=True):
    """Limits of the tools of a runtime.

    Args:
        batch: Most calls of one message that run.
        threads: Most threads of the process that blocking tools may use at once.
        wait: Seconds that a call waits for a thread.
        result: Size limits of a result.
    """

    batch: int
    threads: int
    wait: float
    result: SizeLimits = DEFAULT_LIMITS


class Executor:
    """Runs one session's tools.

    Args:
        system: The actor system of the runtime.
        session: Id of the session.
        limits: Limits of the tools.
        quarantine: Counts the tools that run on after their calls were closed.
        failed: Called with each exception of a tool. It must not raise.
        deps: The `deps` of the session, for its tools.
        key: A key that is unique to this session, even among sessions with the same id.
        tenant: The session's tenant. Threads are shared fairly between tenants.
        open_below: Opens subagent sessions for the tools.
        measures: Counts the calls.
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
        failed: Callable[[ToolFailure], object] | None,
        deps: object = None,
        key: str = "",
        tenant: str = "",
        open_below: OpenBelow = NOBODY,
        measures: ToolMeasures | None = None,
    ) -> None:
        self._system, self._failed, self.quarantine = system, failed, quarantine
        self.open_below = open_below
        self._measures = ToolMeasures() if measures is None else measures
        self.session, self.limits, self.deps, self.key, self.tenant = session, limits, deps, key, tenant
        self.order: ResourceOrder = ResourceOrder()
        """Orders the calls that write to the same resource."""
        self.running: int = 0
        """Number of tools that have not ended, including those whose calls were closed."""

    def enter(self, context: Context) -> Inside:
        """Mark a context as inside a call of this session. The running child makes the call."""
        child = current_child()
        here = Inside(self._system, self.session, context.get(inside), child and Delegate(child))
        context.run(inside.set, here)
        context.run(current.set, here.asks_as)
        return here

    def start(self, work: Work, name: str, call_id: str, context: Context) -> ContainedTask:
        """Start the task of a tool, in a context that `enter` has marked."""
        self.running += 1
        about = CallLabel(self.session, call_id, name)
        return self._system.containment.start(work, partial(self._on_task_end, name), name, context, about)

    def start_apart(self, work: Work, name: str) -> None:
        """Run work in a separate task, because a tool may have damaged its own."""
        self._system.tasks.start(work, partial(_log_crash, name), name)

    def now(self) -> float:
        """Return the loop's clock, in seconds."""
        return self._system.now()

    def count(self, tool: str, began: float, *, failed: bool) -> None:
        """Count a call that has ended. `began`: its start time on the loop's clock."""
        self._measures.record_call(tool, self.now() - began, failed=failed)

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` after that time. It must not raise."""
        return self._system.deadlines.call_at(self._system.now() + seconds, action)

    def forget(self, timer: Timer) -> None:
        """Cancel a timer."""
        self._system.deadlines.withdraw(timer)

    def report_failure(self, call_id: str, tool: str, error: BaseException) -> None:
        """Report a tool's exception to the host."""
        logger.tool_failed(self.session, call_id, tool, error)
        if self._failed is not None:
            self._failed(ToolFailure(self.session, call_id, tool, error))

    def _on_task_end(self, name: str, error: BaseException | None) -> None:
        self.running -= 1
        if isinstance(error, RuntimeError):  # the tool left a cancel scope that was not the innermost
            logger.tool_spoiled(self.session, name, error)


def _log_crash(name: str, error: BaseException | None) -> None:
    if error is not None:
        logger.actor_crashed(name, error)
