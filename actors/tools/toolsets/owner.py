"""The owner of an open toolset: opens it, keeps it, opens it again when it was lost, and closes it, in one place.

Each opening is one task, which enters the toolset's context manager, stays in it, and leaves it: so cancel scopes and
task groups of the toolset's are left where they were entered. It is foreign code, and runs contained: what it does to
its task ends there. The owner itself is plain state; what happens next is decided where a task ends, and by a timer.

    opening --> up --> down --> up ...      a loss, and the way back: at growing distances, sooner if a call waits
       |           |     |
    failed         +-----+--> closed        `failed` is of the first opening; nobody tries that again
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import anyio

from actors import telemetry
from actors.errors import ActorsError, ToolDefinitionError, ToolsetDown, ToolsetFailed
from actors.kernel import System
from actors.kernel.deadlines import Timer
from actors.kernel.parking import Changes
from actors.tools import Tool, Toolset
from actors.tools.toolsets.source import Given, LiveTools, ToolSource, is_list

FIRST = 0.2
"""Seconds between a loss and the first try to open again, and at least between any two tries."""
MOST = 30.0
"""Seconds between two tries at most. Each is twice as far from the last, until the toolset stayed up for longer."""

REASON = 1200
"""Characters of why a toolset is not there: with the last lines that its program wrote to standard error."""

State: TypeAlias = Literal["opening", "up", "down", "failed", "closed"]


class ToolsetOwner:
    """Owns one toolset of a system. It begins to open it at once; `opened` waits for that.

    Args:
        source: What it opens.
        system: Whose tasks and deadlines it uses.
    """

    def __init__(self, source: ToolSource, system: System) -> None:
        self.source = source
        self.state: State = "opening"
        self.tools: Mapping[str, Tool[..., Any]] = {}  # Any: any function
        """What it offers now, by name, or offered last; in the order in which it gave them."""
        self.version = 0
        """Grows whenever `tools` changes."""
        self.users = 0
        """Sessions that use it."""
        self.bound: dict[tuple[str, str], tuple[Tool[..., Any], Tool[..., Any]]] = {}  # Any: any function
        """Tools as sessions have them, by their names here and there, beside what they were made of."""
        self.openings = 0
        """How often it was begun to be opened."""
        self._system = system
        self._changes = Changes(system.parking)
        self._given: Given = ()
        self._is_settled = threading.Event()  # for the threads of plain functions
        self._why: BaseException | None = None
        self._closing = self._was_up = self._is_wanted = False
        self._scope: anyio.CancelScope | None = None
        self._watching: anyio.CancelScope | None = None
        self._timer: Timer | None = None
        self._began = 0.0
        self._delay = FIRST
        self._start()

    async def opened(self) -> None:
        """Wait until the toolset is open for the first time.

        Raises:
            ToolsetFailed: It cannot be opened.
        """
        await self._changes.until(lambda: self.state != "opening")
        if self.state == "failed" or (self.state == "closed" and not self.version):
            raise ToolsetFailed(f"Toolset {self.source.name!r} cannot be opened: {self._because}")

    async def caught_up(self) -> None:
        """Show the tools as they are now. A list that is being read is waited for, `waiting` seconds at most."""
        with anyio.move_on_after(self.source.waiting):
            await self._changes.until(lambda: not self._is_reading)
        if self._is_up() and isinstance(self._given, LiveTools):
            with suppress(Exception):  # `_followed` meets it too, and opens the toolset again
                self._publish(self._given.tools)

    @property
    def _is_reading(self) -> bool:
        with suppress(Exception):  # it is the toolset's own
            return self._is_up() and bool(getattr(self._given, "is_changing", False))
        return False

    async def current(self, name: str, *, beyond: int = 0) -> Tool[..., Any]:  # Any: any function
        """Return one of its tools as it is now; while the toolset is down, wait for it.

        `beyond`: of a later opening than this one.

        Raises:
            ToolsetDown: It is not up in time, or has no such tool any more.
        """
        if not self._is_up(beyond):
            self._hasten()
            with anyio.move_on_after(self.source.waiting):
                await self._changes.until(lambda: self._is_up(beyond) or self.state == "closed")
        return self._found(name, beyond)

    def current_in_thread(self, name: str) -> Tool[..., Any]:  # Any: any function
        """Return what `current` returns, in a tool's thread, which waits instead of a task."""
        if self.state == "down":
            self._system.parking.soon(self._hasten)
            self._is_settled.wait(self.source.waiting)
        return self._found(name)

    def _is_up(self, beyond: int = 0) -> bool:
        return self.state == "up" and self.openings > beyond

    def _found(self, name: str, beyond: int = 0) -> Tool[..., Any]:  # Any: any function
        if not self._is_up(beyond):
            raise ToolsetDown(
                f"Toolset {self.source.name!r} is not available now ({self._because}), so the call did not run"
            )
        if (found := self.tools.get(name)) is None:
            raise ToolsetDown(
                f"Toolset {self.source.name!r} has no tool {name!r} any more; the call did not run"
            )
        return found

    def close(self) -> None:
        """Have the toolset closed; `closed` waits for that. What is being opened is cancelled."""
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

    async def closed(self) -> None:
        """Wait until nothing of the toolset is left."""
        await self._changes.until(lambda: self.state in ("closed", "failed"))

    def _start(self) -> None:
        self._timer = None
        self._began = self._system.now()
        self.openings += 1
        self._scope = anyio.CancelScope(deadline=self._began + self.source.opening)
        if self._closing:
            self._scope.cancel()
        name = f"toolset/{self.source.name}"
        self._system.containment.start(self._keep, self._over, name, self._system.variables.copy())

    async def _keep(self) -> None:
        """Open the toolset, stay in it until it is to be closed or is lost, and leave it."""
        assert self._scope is not None
        with self._scope as scope:
            async with self.source.open() as given:
                scope.deadline = float("inf")
                try:
                    with anyio.CancelScope() as self._watching:
                        await self._watch(given)
                finally:  # a lost one is not opened again before it is left
                    scope.deadline = self._system.now() + self.source.closing
        if scope.cancelled_caught and (self._was_up or not self._closing):
            raise TimeoutError(self._late)

    async def _watch(self, given: Given) -> None:
        """Show what the toolset offers, until it is to be closed or is lost."""
        self._publish(given.tools if isinstance(given, LiveTools) else given)
        self._given = given
        self._was_up = True
        self._settle("up")
        try:
            await self._followed(given)
        except BaseException as error:  # a cancellation too: an error within the block may have ended it
            if isinstance(error, Exception) or not self._closing:
                self._lost()  # calls wait from now on, while the block is left
            raise

    async def _followed(self, given: Given) -> None:
        """Show what changes, for ever."""
        if not isinstance(given, LiveTools):
            await anyio.sleep_forever()
            return
        while True:
            await given.changed()
            self._publish(given.tools)
            self._changes.tell()

    def _publish(self, given: Any) -> None:  # Any: whatever somebody's block gave
        if not is_list(given):
            raise ToolDefinitionError(f"it gave {type(given).__name__}; a toolset gives a list of tools")
        tools = {tool.name: tool for tool in Toolset(given)}
        if self.version == 0 or not _alike(tools, self.tools):
            self.version += 1
        self.tools = tools

    def _over(self, error: BaseException | None) -> None:
        """Decide what follows the end of an opening's task. Must not raise."""
        self._scope = self._watching = None
        was_up, self._why = self._was_up, error
        self._was_up = False
        if self._closing:
            if was_up and self.state == "up" and error is not None:
                telemetry.toolset_unclosed(self.source.name, behind(error) or error)
            self._settle("closed")
        elif not self.version:
            self._settle("failed")
        else:
            self._lost()
            lasted = self._system.now() - self._began
            self._delay = FIRST if was_up and lasted > self._delay else min(2 * self._delay, MOST)
            telemetry.toolset_lost(self.source.name, behind(error), self._delay)
            self._plan(FIRST if self._is_wanted else self._delay)

    def _lost(self) -> None:
        self._is_settled.clear()
        self.state = "down"
        self._changes.tell()

    def _hasten(self) -> None:
        """Open again soon: a call waits."""
        self._is_wanted = True
        if self._timer is not None:
            self._withdraw()
            self._plan(max(self._began + FIRST - self._system.now(), 0))

    def _plan(self, seconds: float) -> None:
        self._is_wanted = False
        self._timer = self._system.deadlines.at(self._system.now() + seconds, self._start)

    def _withdraw(self) -> None:
        assert self._timer is not None
        self._system.deadlines.withdraw(self._timer)
        self._timer = None

    def _settle(self, state: State) -> None:
        self.state = state
        self._is_settled.set()
        self._changes.tell()

    @property
    def _late(self) -> str:
        if self._was_up:
            return f"it did not close within {self.source.closing} s"
        return f"it did not open within {self.source.opening} s"

    @property
    def _because(self) -> str:
        return "it ended by itself" if self._why is None else reason(self._why)


def _alike(
    one: Mapping[str, Tool[..., Any]], other: Mapping[str, Tool[..., Any]]
) -> bool:  # Any: any function
    """Say whether two lists of tools say the same to a model, whatever their order."""
    return one.keys() == other.keys() and all(_told(one[name]) == _told(other[name]) for name in one)


def _told(tool: Tool[..., Any]) -> tuple[object, ...]:  # Any: any function
    return tool.description, tool.parameters, tool.approval, tool.timeout, tool.effects, tool.resources


def behind(error: BaseException | None) -> BaseException | None:
    """Return what lies behind groups of errors: the first."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def reason(given: BaseException) -> str:
    """Return in one line why a toolset is not there."""
    error, text = behind(given), ""
    with suppress(Exception):  # its __str__ may raise anything
        text = " ".join(str(error).split())[:REASON]
    if isinstance(error, ActorsError | TimeoutError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
