"""Own one toolset: open it, keep it open, open it again after a loss, and close it.

Each opening is one task, which enters the toolset's context manager, stays in it, and leaves it. Cancel scopes and task
groups of the toolset are therefore left in the task that entered them. A toolset is foreign code and runs contained:
damage to its task ends with the task. The owner itself is plain state, changed when a task ends and by a timer.

    opening --> up --> down --> up ...      after a loss: retries at growing intervals, sooner if a call waits
       |           |     |
    failed         +-----+--> closed        `failed`: the first opening failed; there are no retries
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import anyio

from actors.errors import ActorsError, ToolDefinitionError, ToolsetDown, ToolsetFailed
from actors.interrupts import is_group
from actors.kernel import System
from actors.kernel.deadlines import Timer
from actors.kernel.event_loop import Changes
from actors.telemetry import logger
from actors.tools import Tool, Toolset
from actors.tools.toolsets.source import LiveTools, OpenedTools, ToolSource, is_tool_list

FIRST = 0.2
"""Seconds between a loss and the first retry, and the minimum between two retries."""
MOST = 30.0
"""Maximum seconds between two retries. The interval doubles until the toolset has stayed up for longer than it."""

REASON = 1200
"""Maximum characters of a failure's reason, which may include the last lines of a program's standard error."""

State: TypeAlias = Literal["opening", "up", "down", "failed", "closed"]


class ToolsetOwner:
    """The owner of one toolset. It starts to open the toolset at once; `wait_open` waits for that.

    Args:
        source: Describes the toolset.
        system: Owns the tasks and deadlines.
    """

    def __init__(self, source: ToolSource, system: System) -> None:
        self.source = source
        self.state: State = "opening"
        self.tools: Mapping[str, Tool[..., Any]] = {}  # Any: any function
        """The current tools by name, or the last ones while it is down; in the toolset's order."""
        self.version: int = 0
        """Incremented when `tools` changes."""
        self.users = 0
        """Number of sessions that use the toolset."""
        self.bound_tools: dict[
            tuple[str, str], tuple[Tool[..., Any], Tool[..., Any]]
        ] = {}  # Any: any function
        """Pairs of a tool and its version for sessions, by the tool's name here and in the session."""
        self.openings: int = 0
        """Number of openings so far, including failed ones."""
        self._system = system
        self._changes = Changes(system.loop)
        self._opened: OpenedTools = ()
        self._is_settled = threading.Event()  # for the threads of plain functions
        self._why: BaseException | None = None
        self._closing = self._was_up = self._is_wanted = False
        self._scope: anyio.CancelScope | None = None
        self._watching: anyio.CancelScope | None = None
        self._timer: Timer | None = None
        self._began = 0.0
        self._delay = FIRST
        self._start()

    async def wait_open(self) -> None:
        """Wait until the first opening has ended.

        Raises:
            ToolsetFailed: The toolset cannot be opened.
        """
        await self._changes.wait_until(lambda: self.state != "opening")
        if self.state == "failed" or (self.state == "closed" and not self.version):
            raise ToolsetFailed(f"Toolset {self.source.name!r} cannot be opened: {self._reason}")

    async def wait_current(self) -> None:
        """Publish the current tools; wait up to `waiting` seconds while the toolset reads its list."""
        with anyio.move_on_after(self.source.waiting):
            await self._changes.wait_until(lambda: not self._is_reading)
        if self._is_up() and isinstance(self._opened, LiveTools):
            with suppress(Exception):  # `_follow` raises the same error, and the toolset opens again
                self._publish(self._opened.tools)

    @property
    def _is_reading(self) -> bool:
        with suppress(Exception):  # an attribute of foreign code
            return self._is_up() and bool(getattr(self._opened, "is_changing", False))
        return False

    async def current(self, name: str, *, beyond: int = 0) -> Tool[..., Any]:  # Any: any function
        """Return the current version of a tool; wait up to `waiting` seconds while the toolset is down.

        With `beyond`, wait for a later opening than that number.

        Raises:
            ToolsetDown: The toolset did not open in time, or no longer has the tool.
        """
        if not self._is_up(beyond):
            self._hasten()
            with anyio.move_on_after(self.source.waiting):
                await self._changes.wait_until(lambda: self._is_up(beyond) or self.state == "closed")
        return self._find(name, beyond)

    def current_in_thread(self, name: str) -> Tool[..., Any]:  # Any: any function
        """Return the result of `current`, in a thread of a tool: the thread waits instead of a task."""
        if self.state == "down":
            self._system.loop.soon(self._hasten)
            self._is_settled.wait(self.source.waiting)
        return self._find(name)

    def _is_up(self, beyond: int = 0) -> bool:
        return self.state == "up" and self.openings > beyond

    def _find(self, name: str, beyond: int = 0) -> Tool[..., Any]:  # Any: any function
        if not self._is_up(beyond):
            raise ToolsetDown(
                f"Toolset {self.source.name!r} is not available now ({self._reason}), so the call did not run"
            )
        if (found := self.tools.get(name)) is None:
            raise ToolsetDown(
                f"Toolset {self.source.name!r} no longer has a tool {name!r}; the call did not run"
            )
        return found

    def close(self) -> None:
        """Start to close the toolset; `wait_closed` waits for the end. A running opening is cancelled."""
        if self._closing:
            return
        self._closing = True
        if self._timer is not None:
            self._withdraw()
            self._settle("closed")
        elif self._was_up and self._scope is not None and self._watching is not None:
            self._scope.deadline = self._system.now() + self.source.closing
            self._watching.cancel()
        elif self._scope is not None:
            self._scope.cancel()

    async def wait_closed(self) -> None:
        """Wait until the toolset's last task has ended."""
        await self._changes.wait_until(lambda: self.state in ("closed", "failed"))

    def _start(self) -> None:
        self._timer = None
        self._began = self._system.now()
        self.openings += 1
        self._scope = anyio.CancelScope(deadline=self._began + self.source.opening)
        if self._closing:
            self._scope.cancel()
        name = f"toolset/{self.source.name}"
        self._system.containment.start(self._keep, self._on_end, name, self._system.variables.copy())

    async def _keep(self) -> None:
        """Open the toolset, stay in it until it is closed or lost, and leave it."""
        assert self._scope is not None
        with self._scope as scope:
            async with self.source.open() as opened:
                scope.deadline = float("inf")
                try:
                    with anyio.CancelScope() as self._watching:
                        await self._watch(opened)
                finally:  # a lost toolset must be left before it opens again
                    scope.deadline = self._system.now() + self.source.closing
        if scope.cancelled_caught and (self._was_up or not self._closing):
            raise TimeoutError(self._timeout_message)

    async def _watch(self, opened: OpenedTools) -> None:
        """Publish the toolset's tools until it is closed or lost."""
        self._publish(opened.tools if isinstance(opened, LiveTools) else opened)
        self._opened = opened
        self._was_up = True
        self._settle("up")
        try:
            await self._follow(opened)
        except (
            BaseException
        ) as error:  # includes cancellation, which an error inside the block may have caused
            if isinstance(error, Exception) or not self._closing:
                self._mark_down()  # from now on calls wait, also while the block is being left
            raise

    async def _follow(self, opened: OpenedTools) -> None:
        """Publish changes until cancelled."""
        if not isinstance(opened, LiveTools):
            await anyio.sleep_forever()
            return
        while True:
            await opened.changed()
            self._publish(opened.tools)
            self._changes.notify()

    def _publish(self, opened: Any) -> None:  # Any: foreign code's value
        if not is_tool_list(opened):
            raise ToolDefinitionError(f"it yielded {type(opened).__name__}; a toolset yields a list of tools")
        tools = {tool.name: tool for tool in Toolset(opened)}
        if self.version == 0 or not _is_same_offer(tools, self.tools):
            self.version += 1
        self.tools = tools

    def _on_end(self, error: BaseException | None) -> None:
        """Decide what follows the end of an opening's task. Must not raise."""
        self._scope = self._watching = None
        was_up, self._why = self._was_up, error
        self._was_up = False
        if self._closing:
            if was_up and self.state == "up" and error is not None:
                logger.toolset_unclosed(self.source.name, root_error(error) or error)
            self._settle("closed")
        elif not self.version:
            self._settle("failed")
        else:
            self._mark_down()
            lasted = self._system.now() - self._began
            self._delay = FIRST if was_up and lasted > self._delay else min(2 * self._delay, MOST)
            logger.toolset_lost(self.source.name, root_error(error), self._delay)
            self._plan(FIRST if self._is_wanted else self._delay)

    def _mark_down(self) -> None:
        self._is_settled.clear()
        self.state = "down"
        self._changes.notify()

    def _hasten(self) -> None:
        """Retry soon, because a call waits."""
        self._is_wanted = True
        if self._timer is not None:
            self._withdraw()
            self._plan(max(self._began + FIRST - self._system.now(), 0))

    def _plan(self, seconds: float) -> None:
        self._is_wanted = False
        self._timer = self._system.deadlines.call_at(self._system.now() + seconds, self._start)

    def _withdraw(self) -> None:
        assert self._timer is not None
        self._system.deadlines.withdraw(self._timer)
        self._timer = None

    def _settle(self, state: State) -> None:
        self.state = state
        self._is_settled.set()
        self._changes.notify()

    @property
    def _timeout_message(self) -> str:
        if self._was_up:
            return f"it did not close within {self.source.closing} s"
        return f"it did not open within {self.source.opening} s"

    @property
    def _reason(self) -> str:
        return "it ended by itself" if self._why is None else reason(self._why)


def _is_same_offer(
    one: Mapping[str, Tool[..., Any]], other: Mapping[str, Tool[..., Any]]
) -> bool:  # Any: any function
    """Return True if both lists have the same tools for a model, in any order."""
    return one.keys() == other.keys() and all(
        _declaration(one[name]) == _declaration(other[name]) for name in one
    )


def _declaration(tool: Tool[..., Any]) -> tuple[object, ...]:  # Any: any function
    return tool.description, tool.parameters, tool.approval, tool.timeout, tool.effects, tool.resources


def root_error(error: BaseException | None) -> BaseException | None:
    """Return the first leaf of nested exception groups."""
    while is_group(error) and error.exceptions:
        error = error.exceptions[0]
    return error


def reason(opened: BaseException) -> str:
    """Return in one line the reason why a toolset is not available."""
    error, text = root_error(opened), ""
    with suppress(Exception):  # its __str__ may raise anything
        text = " ".join(str(error).split())[:REASON]
    if isinstance(error, ActorsError | TimeoutError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
