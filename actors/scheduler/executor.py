"""Where the tools of a runtime run, and where what they do wrong is told.

A tool is other people's code. It runs in a task that it may spoil (`actors.kernel.contained`), or in one of the
process's threads (`actors.scheduler.threads`). What it raises is logged with its traceback and given to the host's
hook; the model is told in one line.
"""

from collections.abc import Callable
from contextvars import Context, ContextVar
from functools import partial

from msgspec import Struct

from actors.core.data.ingest import DEFAULT_LIMITS
from actors.core.data.truncate import SizeLimits
from actors.core.stats.measures import ToolMeasures
from actors.kernel import System
from actors.kernel.contained import Contained
from actors.kernel.deadlines import Timer
from actors.kernel.receiver import Child, Delegate, current, current_child
from actors.kernel.tasks import Work
from actors.scheduler.children import NOBODY, OpenBelow
from actors.scheduler.ordering import ResourceOrder
from actors.scheduler.quarantine import Quarantine
from actors.scheduler.watchdog import CallLabel
from actors.telemetry import logger


class ToolFailure(Struct, frozen=True):
    """What went wrong in a tool, for the host. The model is told less.

    Args:
        session: Whose tool.
        call_id: Which call.
        tool: Its name.
        error: What it raised, with its traceback.
    """

    session: str
    call_id: str
    tool: str
    error: BaseException


class Inside(Struct, eq=False):
    """In a call: the session it works for, and what that session was asked from, if that was a call too.

    Tasks that its tool starts are in it as well, until it `is_over`: nobody waits for those that outlive it. `asks_as`
    is the batch, for which the tool asks actors.
    """

    system: System
    session: str
    outer: "Inside | None"
    asks_as: Child | None
    is_over: bool = False

    def stop(self) -> None:
        """Note that the call was told to end."""
        if self.asks_as is not None:
            self.asks_as.is_cancelled = True

    def leave(self) -> None:
        """Note that the call has ended, or was closed without its tool."""
        self.is_over = True
        if self.asks_as is not None:
            self.asks_as.is_over = True


inside: ContextVar[Inside | None] = ContextVar("inside", default=None)


def is_inside(system: System, session: str) -> bool:
    """Say whether the caller is a tool that the session waits for, or works for such a tool."""
    here = inside.get()
    while here is not None and not here.is_over:
        if here.system is system and here.session == session:
            return True
        here = here.outer
    return False


class ToolLimits(Struct, frozen=True):
    """Bounds of the tools of a runtime.

    Args:
        batch: Calls of one message that are run.
        threads: Threads of the process that may be in use when a tool begins that needs one.
        wait: Seconds that a call waits for one.
        result: How much of what a call returned is kept.
    """

    batch: int
    threads: int
    wait: float
    result: SizeLimits = DEFAULT_LIMITS


class Executor:
    """Runs one session's tools.

    Args:
        system: Whose host they belong to.
        session: The session.
        limits: How many, and how long.
        quarantine: Where calls go on that are closed.
        failed: Told what goes wrong in a tool. It must not raise.
        deps: What the host gave its tools.
        key: Tells this session from every other, those of the same id included.
        tenant: Whose it is. Tenants share the threads alike.
        open_below: Opens sessions for its tools.
        measures: What is counted of its calls.
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
        """Who writes to what, one after another."""
        self.running: int = 0
        """Tools that have not ended, those included whose call was closed without them."""

    def enter(self, context: Context) -> Inside:
        """Have it known in a context that it is inside a call of this session, which the running child makes."""
        child = current_child()
        here = Inside(self._system, self.session, context.get(inside), child and Delegate(child))
        context.run(inside.set, here)
        context.run(current.set, here.asks_as)
        return here

    def start(self, work: Work, name: str, call_id: str, context: Context) -> Contained:
        """Run a tool, in a context that was entered."""
        self.running += 1
        about = CallLabel(self.session, call_id, name)
        return self._system.containment.start(work, partial(self._on_task_end, name), name, context, about)

    def start_apart(self, work: Work, name: str) -> None:
        """Do something for a tool that may have left its own task unusable."""
        self._system.tasks.start(work, partial(_log_crash, name), name)

    def now(self) -> float:
        """Return the loop's clock, in seconds."""
        return self._system.now()

    def count(self, tool: str, began: float, *, failed: bool) -> None:
        """Count a call that has ended, which began then."""
        self._measures.end(tool, self.now() - began, failed=failed)

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` then. It must not raise."""
        return self._system.deadlines.at(self._system.now() + seconds, action)

    def forget(self, timer: Timer) -> None:
        """Do not call a timer's action."""
        self._system.deadlines.withdraw(timer)

    def report_failure(self, call_id: str, tool: str, error: BaseException) -> None:
        """Report a tool's exception to the host."""
        logger.tool_failed(self.session, call_id, tool, error)
        if self._failed is not None:
            self._failed(ToolFailure(self.session, call_id, tool, error))

    def _on_task_end(self, name: str, error: BaseException | None) -> None:
        self.running -= 1
        if isinstance(error, RuntimeError):  # a scope that was not the innermost when it was left
            logger.tool_spoiled(self.session, name, error)


def _log_crash(name: str, error: BaseException | None) -> None:
    if error is not None:
        logger.actor_crashed(name, error)
