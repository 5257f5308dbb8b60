"""Own one toolset: open it, keep it open, open it again if it is lost, and close it.

For each opening, one task enters the toolset's context manager, stays inside, and exits. So cancel scopes and task
groups of the toolset are entered and exited by the same task. A toolset is foreign code and runs contained: if it
leaves its task in a broken state, no other task is affected. The owner itself has no task: its state changes when a
task ends, or when a timer expires.

    opening --> up --> down --> up ...      `down`: retries at growing intervals, sooner if a call waits
       |           |     |
    failed         +-----+--> closed        `failed`: the first opening failed; there are no retries
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Any, Literal, TypeAlias

import anyio

from actors.errors import ActorsError, ToolDefinitionError, ToolsetDown, ToolsetFailed
from actors.interrupts import is_group
from actors.kernel import System
from actors.kernel.event_loop import Changes
from actors.kernel.shared import Timer
from actors.telemetry import logger
from actors.tools.tool import Tool
from actors.tools.toolset import LiveTools, OpenedTools, Toolset, ToolSource, is_tool_list

FIRST_RETRY = 0.2
"""Seconds between the loss of a toolset and the first retry, and the minimum between two retries."""
MAX_RETRY = 30.0
"""Maximum seconds between two retries. The interval doubles until the toolset stays up for longer than the interval."""
UPDATE_INTERVAL = 0.05
"""Minimum seconds between two updates of a toolset's tools. A toolset that reports a change all the time must not block
the event loop."""
MAX_REASON = 1200
"""Maximum number of characters of an error's reason, which may contain the end of a program's standard error."""
State: TypeAlias = Literal["opening", "up", "down", "failed", "closed"]


class ToolsetOwner:
    """The owner of one toolset. A new owner starts to open its toolset; `wait_open` waits until the toolset is open.

    Args:
        source: Describes the toolset.
        system: Owns the tasks and deadlines.
    """

    def __init__(self, source: ToolSource, system: System) -> None:
        self.source = source
        self.state: State = "opening"
        self.tools: Mapping[str, Tool[..., Any]] = {}  # Any: tool signatures differ
        """The current tools by name, in the toolset's order. While the toolset is down, the last known tools."""
        self.version: int = 0
        """Number of changes of `tools`; 0 before the first opening."""
        self.users = 0
        """Number of sessions that use the toolset."""
        self.bound_tools: dict[
            tuple[str, str], tuple[Tool[..., Any], Tool[..., Any]]
        ] = {}  # Any: tool signatures differ
        """Pairs of a tool and its copy for sessions, by the tool's name in the toolset and its name in the session."""
        self.openings: int = 0
        """Number of openings so far, including failed ones."""
        self._system = system
        self._changes = Changes(system.loop)
        self._opened: OpenedTools = ()
        # Tools that run in threads wait for this event, which is cleared while the toolset is down.
        self._is_settled = threading.Event()
        self._why: BaseException | None = None
        self._closing = self._was_up = self._is_wanted = False
        self._scope: anyio.CancelScope | None = None
        self._watching: anyio.CancelScope | None = None
        self._timer: Timer | None = None
        self._began = 0.0
        self._delay = FIRST_RETRY
        self._start_opening()

    async def wait_open(self) -> None:
        """Wait until the first opening has succeeded or failed.

        Raises:
            ToolsetFailed: The toolset cannot be opened.
        """
        await self._changes.wait_until(lambda: self.state != "opening")
        if self.state == "failed" or (self.state == "closed" and not self.version):
            raise ToolsetFailed(f"Toolset {self.source.name!r} cannot be opened: {self._down_reason}")

    async def refresh_tools(self) -> None:
        """Set `tools` to the toolset's current tools.

        If the toolset is reading its list of tools, first wait up to `source.waiting` seconds.
        """
        with anyio.move_on_after(self.source.waiting):
            await self._changes.wait_until(lambda: not self._is_reading)
        if self._is_up() and isinstance(self._opened, LiveTools):
            # `_publish_changes` will raise the same error, and the toolset is opened again.
            with suppress(Exception):
                self._publish_tools(self._opened.tools)

    @property
    def _is_reading(self) -> bool:
        """True if the toolset is up and reports that it is reading a changed list of tools."""
        with suppress(Exception):  # the attribute belongs to foreign code, which may raise any exception
            return self._is_up() and bool(getattr(self._opened, "is_changing", False))
        return False

    async def current_tool(
        self, name: str, *, after_opening: int = 0
    ) -> Tool[..., Any]:  # Any: tool signatures differ
        """Return the current version of a tool. While the toolset is down, wait up to `source.waiting` seconds first.

        Args:
            name: Name of the tool.
            after_opening: The number of an opening that has been lost. The tool must come from a later opening.

        Raises:
            ToolsetDown: The toolset did not open in time, or no longer has the tool.
        """
        if not self._is_up(after_opening):
            self._retry_soon()
            with anyio.move_on_after(self.source.waiting):
                await self._changes.wait_until(lambda: self._is_up(after_opening) or self.state == "closed")
        return self._find_tool(name, after_opening)

    def current_tool_in_thread(self, name: str) -> Tool[..., Any]:  # Any: tool signatures differ
        """Return the current version of a tool, like `current_tool`, but block the tool's thread while waiting."""
        if self.state == "down":
            self._system.loop.soon(self._retry_soon)
            self._is_settled.wait(self.source.waiting)
        return self._find_tool(name)

    def _is_up(self, after_opening: int = 0) -> bool:
        """Return True if the toolset is open, and was opened after the opening with the number `after_opening`."""
        return self.state == "up" and self.openings > after_opening

    def _find_tool(self, name: str, after_opening: int = 0) -> Tool[..., Any]:  # Any: tool signatures differ
        """Return a tool by its name, or raise `ToolsetDown` if the toolset or the tool is not available."""
        if not self._is_up(after_opening):
            raise ToolsetDown(
                f"Toolset {self.source.name!r} is not available now ({self._down_reason}), so the call did not run"
            )
        if (found := self.tools.get(name)) is None:
            raise ToolsetDown(
                f"Toolset {self.source.name!r} no longer has a tool {name!r}; the call did not run"
            )
        return found

    def close(self) -> None:
        """Start to close the toolset; `wait_closed` waits for the end. An opening in progress is cancelled."""
        if self._closing:
            return
        self._closing = True
        if self._timer is not None:  # the toolset is down, and no task is running
            self._cancel_timer()
            self._enter_state("closed")
        elif self._was_up and self._scope is not None and self._watching is not None:
            self._scope.deadline = self._system.now() + self.source.closing
            self._watching.cancel()
        elif self._scope is not None:
            self._scope.cancel()

    async def wait_closed(self) -> None:
        """Wait until the toolset has closed, or has failed to open."""
        await self._changes.wait_until(lambda: self.state in ("closed", "failed"))

    def _start_opening(self) -> None:
        """Start a task that opens the toolset and keeps it open."""
        self._timer = None
        self._began = self._system.now()
        self.openings += 1
        self._scope = anyio.CancelScope(deadline=self._began + self.source.opening)
        if self._closing:
            self._scope.cancel()
        name = f"toolset/{self.source.name}"
        self._system.contained_tasks.start(
            self._run_opening, self._on_end, name, self._system.variables.copy()
        )

    async def _run_opening(self) -> None:
        """Enter the toolset's context manager, stay inside until the toolset is closed or lost, and exit."""
        assert self._scope is not None
        with self._scope as scope:
            async with self.source.open() as opened:
                scope.deadline = float("inf")
                try:
                    with anyio.CancelScope() as self._watching:
                        await self._publish_until_closed(opened)
                finally:  # exiting the block has a time limit, even if the toolset was lost
                    scope.deadline = self._system.now() + self.source.closing
        # every cancellation is a timeout, except that `close` cancels an opening that is in progress
        if scope.cancelled_caught and (self._was_up or not self._closing):
            raise TimeoutError(self._timeout_message)

    async def _publish_until_closed(self, opened: OpenedTools) -> None:
        """Keep `tools` up to date until the toolset is closed or lost."""
        self._publish_tools(opened.tools if isinstance(opened, LiveTools) else opened)
        self._opened = opened
        self._was_up = True
        self._enter_state("up")
        try:
            await self._publish_changes(opened)
        except BaseException as error:
            # A cancellation also counts as a loss of the toolset: an error inside its block may have caused it.
            if isinstance(error, Exception) or not self._closing:
                self._mark_down()  # calls wait from now on, even before the task has exited the block
            raise

    async def _publish_changes(self, opened: OpenedTools) -> None:
        """Update `tools` after each change, until cancelled.

        Raise if the toolset reports that its connection is lost.
        """
        if not isinstance(opened, LiveTools):
            await anyio.sleep_forever()
            return
        published = -inf
        while True:
            await opened.changed()
            # `changed` may return at once each time, for example if it waits for an event that is never reset
            if (wait := published + UPDATE_INTERVAL - self._system.now()) > 0:
                await anyio.sleep(wait)
            published = self._system.now()
            self._publish_tools(opened.tools)
            self._changes.notify()

    def _publish_tools(self, opened: Any) -> None:  # Any: foreign code may yield any value
        """Set `tools` to the tools that a toolset yielded. If a model would see a difference, increment `version`."""
        if not is_tool_list(opened):
            raise ToolDefinitionError(
                f"the toolset yielded {type(opened).__name__} instead of a list of tools"
            )
        tools = {tool.name: tool for tool in Toolset(opened)}
        if self.version == 0 or not _is_same_for_model(tools, self.tools):
            self.version += 1
        self.tools = tools

    def _on_end(self, error: BaseException | None) -> None:
        """Choose the next state after the task of an opening has ended. This method must not raise."""
        self._scope = self._watching = None
        was_up, self._why = self._was_up, error
        self._was_up = False
        if self._closing:
            if was_up and self.state == "up" and error is not None:
                logger.toolset_unclosed(self.source.name, root_error(error) or error)
            self._enter_state("closed")
        elif not self.version:
            self._enter_state("failed")
        else:
            self._mark_down()
            lasted = self._system.now() - self._began
            self._delay = FIRST_RETRY if was_up and lasted > self._delay else min(2 * self._delay, MAX_RETRY)
            logger.toolset_lost(self.source.name, root_error(error), self._delay)
            self._schedule_opening(FIRST_RETRY if self._is_wanted else self._delay)

    def _mark_down(self) -> None:
        """Enter the state `down`, in which calls wait."""
        self._is_settled.clear()
        self.state = "down"
        self._changes.notify()

    def _retry_soon(self) -> None:
        """Open the toolset again soon, because a call waits for it."""
        self._is_wanted = True
        if self._timer is not None:
            self._cancel_timer()
            self._schedule_opening(max(self._began + FIRST_RETRY - self._system.now(), 0))

    def _schedule_opening(self, seconds: float) -> None:
        """Open the toolset again after this many seconds."""
        self._is_wanted = False
        self._timer = self._system.deadlines.call_at(self._system.now() + seconds, self._start_opening)

    def _cancel_timer(self) -> None:
        """Cancel the timer of the next opening."""
        assert self._timer is not None
        self._system.deadlines.cancel(self._timer)
        self._timer = None

    def _enter_state(self, state: State) -> None:
        """Enter a state in which no call waits: `up`, `failed` or `closed`."""
        self.state = state
        self._is_settled.set()
        self._changes.notify()

    @property
    def _timeout_message(self) -> str:
        if self._was_up:
            return f"it did not close within {self.source.closing} s"
        return f"it did not open within {self.source.opening} s"

    @property
    def _down_reason(self) -> str:
        return "it ended by itself" if self._why is None else failure_reason(self._why)


def _is_same_for_model(
    one: Mapping[str, Tool[..., Any]], other: Mapping[str, Tool[..., Any]]
) -> bool:  # Any: tool signatures differ
    """Return True if a model sees the same tools in both mappings. The order of the tools does not matter."""
    return one.keys() == other.keys() and all(
        _declaration(one[name]) == _declaration(other[name]) for name in one
    )


def _declaration(tool: Tool[..., Any]) -> tuple[object, ...]:  # Any: tool signatures differ
    """Return the fields of a tool that a model sees. A change of its other fields is invisible to the model."""
    return tool.description, tool.parameters, tool.approval, tool.timeout, tool.effects, tool.resources


def root_error(error: BaseException | None) -> BaseException | None:
    """Return the first exception in nested exception groups that is not a group; return other exceptions unchanged."""
    while is_group(error) and error.exceptions:
        error = error.exceptions[0]
    return error


def failure_reason(failure: BaseException) -> str:
    """Return one line that explains why a toolset is not available. `failure` is the exception that it raised."""
    error, text = root_error(failure), ""
    with suppress(Exception):  # `__str__` of a foreign exception may raise any exception
        text = " ".join(str(error).split())[:MAX_REASON]
    if isinstance(error, ActorsError | TimeoutError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
