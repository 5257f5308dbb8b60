"""Manage toolsets: tools that must be opened before use, and that live longer than a call.

A session lists toolsets in its `tools=`. The runtime's `Toolsets` opens each toolset once for all sessions that use it,
and closes it after the last one. Toolsets are closed in reverse order of opening.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast
from weakref import WeakValueDictionary

import anyio

from actors.errors import ShuttingDown
from actors.kernel import System
from actors.kernel.event_loop import Changes
from actors.telemetry import logger
from actors.tools import Tool, Toolset, tool
from actors.tools.tool import is_tool
from actors.tools.toolsets.offer import AnyTool, SessionTools
from actors.tools.toolsets.owner import ToolsetOwner
from actors.tools.toolsets.source import LiveTools, ToolItem, ToolSource, check_list, source_of

__all__ = ["LiveTools", "SessionTools", "ToolItem", "ToolSource", "Toolsets"]

HOLD = 1.0
"""Seconds that closing waits for one toolset before it starts the next, and after `closing` for one that hangs."""


class Toolsets:
    """The open toolsets of a runtime's sessions.

    Args:
        system: Owns the tasks and deadlines of the toolsets.
        named: Returns the configured toolset with a name; always the same object for one name.
    """

    def __init__(self, system: System, named: Callable[[str], ToolSource]) -> None:
        self._system, self._named = system, named
        self._owners: list[ToolsetOwner] = []  # in order of opening
        self._shared: dict[
            int, tuple[object, ToolsetOwner]
        ] = {}  # by the id of the host's object, which the entry keeps alive
        self._changes = Changes(system.loop)
        self._is_over = False
        # by the identities of their tools: a tool may refer to the session that has it
        self._known_tools: WeakValueDictionary[tuple[int, ...], SessionTools] = WeakValueDictionary()
        self._toolsets: WeakValueDictionary[tuple[int, ...], Toolset] = WeakValueDictionary()

    async def open(self, items: Iterable[ToolItem], check: Callable[[Toolset], object]) -> SessionTools:
        """Open the toolsets among `items`, and return the tools of a session with them.

        `check` raises if a session cannot have these tools. Sessions with the same tools share the result. If the
        caller is cancelled, toolsets that only this session would have used are closed.

        Raises:
            ToolDefinitionError: An item is invalid, or two of the host's own tools have one name.
            ToolsetFailed: A toolset cannot be opened. The toolsets opened for this session are closed.
        """
        parts: list[AnyTool | ToolsetOwner] = []
        try:
            for item in check_list(items):
                parts.append(await self._part(item))
            for part in parts:
                if isinstance(part, ToolsetOwner):
                    await part.wait_open()
            session_tools = self._session_tools(parts)
            check(session_tools.tools)
            return session_tools
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.release([part for part in parts if isinstance(part, ToolsetOwner)]).wait()
            raise

    def _session_tools(self, parts: list[AnyTool | ToolsetOwner]) -> SessionTools:
        tools = tuple([id(part) for part in parts if isinstance(part, Tool)])
        if len(tools) < len(parts):
            return SessionTools(parts, self._shared_toolset)
        if (known := self._known_tools.get(tools)) is None:
            known = self._known_tools[tools] = SessionTools(parts, self._shared_toolset)
        return known

    def _shared_toolset(self, tools: Toolset) -> Toolset:
        """Return the set of the same tools that another session already uses, or else this set."""
        return self._toolsets.setdefault(tuple(map(id, tools)), tools)

    async def _part(self, item: ToolItem) -> AnyTool | ToolsetOwner:
        if isinstance(item, str):
            item = self._named(item)
        if (source := source_of(item)) is None:
            return item if is_tool(item) else tool(cast("Callable[..., object]", item))
        # a toolset that is closing must be closed before it opens again
        await self._changes.wait_until(
            lambda: (known := self._shared.get(id(item))) is None or known[1].users
        )
        if self._is_over:
            raise ShuttingDown(f"Toolset {source.name!r} is not opened: the runtime is shutting down")
        known = self._shared.get(id(item))
        owner = ToolsetOwner(source, self._system) if known is None else known[1]
        if known is None:
            self._owners.append(owner)
            if source.shared:
                self._shared[id(item)] = item, owner
        owner.users += 1
        return owner

    def release(self, owners: Iterable[ToolsetOwner]) -> "anyio.Event":
        """Drop a session's use of these toolsets, and start to close the unused ones.

        Returns:
            An event that is set when they are closed, or when the time for closing is over. Waiting is optional.
        """
        unused: list[ToolsetOwner] = []
        for owner in owners:
            owner.users -= 1
            if not owner.users:
                unused.append(owner)
        return self._start_closing(unused)

    async def close(self) -> None:
        """Close all toolsets, the last opened first, and wait for that. No toolset can be opened afterwards."""
        self._is_over = True
        await self._start_closing(self._owners).wait()

    def _start_closing(self, owners: Iterable[ToolsetOwner]) -> "anyio.Event":
        over = anyio.Event()
        unused = set(owners)
        if closing := [owner for owner in reversed(self._owners) if owner in unused]:
            self._system.launch(partial(self._close, closing), partial(_finish, over), "toolsets")
        else:
            over.set()
        return over

    async def _close(self, owners: list[ToolsetOwner]) -> None:
        for owner in owners:
            owner.close()
            with anyio.move_on_after(HOLD):
                await owner.wait_closed()
        for owner in owners:
            with anyio.move_on_after(owner.source.closing + HOLD) as scope:
                await owner.wait_closed()
            if scope.cancelled_caught:
                logger.toolset_stuck(owner.source.name)
        self._owners = [owner for owner in self._owners if owner not in owners]
        self._shared = {key: kept for key, kept in self._shared.items() if kept[1] not in owners}
        self._changes.notify()


def _finish(over: "anyio.Event", error: BaseException | None) -> None:
    over.set()
    if error is not None:
        logger.actor_crashed("toolsets", error)
