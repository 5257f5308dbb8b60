"""Manage toolsets: tools that must be opened before use, and that stay open longer than one call.

Sessions list toolsets in their `tools=`. The runtime's `Toolsets` opens each toolset once for all sessions that use it,
and closes it after the last of these sessions. Toolsets are closed in reverse order of opening.
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
from actors.tools.toolsets.source import LiveTools, ToolItem, ToolSource, check_tool_list, toolset_source

__all__ = ["LiveTools", "SessionTools", "ToolItem", "ToolSource", "Toolsets"]

CLOSE_WAIT = 1.0
"""Seconds to wait for a toolset that is closing before the next one is closed too.

A toolset that hangs gets the same time in addition to its `closing` timeout.
"""


class Toolsets:
    """The open toolsets of a runtime's sessions.

    Args:
        system: Owns the tasks and deadlines of the toolsets.
        configured: Returns the toolset of an MCP server in the configuration. Called with its name; must return the
            same object for the same name.
    """

    def __init__(self, system: System, configured: Callable[[str], ToolSource]) -> None:
        self._system, self._configured = system, configured
        self._owners: list[ToolsetOwner] = []  # in order of opening
        # by the `id()` of the object in `tools=`; the entry keeps the object alive, so that the id stays unique
        self._shared: dict[int, tuple[object, ToolsetOwner]] = {}
        self._changes = Changes(system.loop)
        self._is_over = False
        # by the identities of the tools; weak references, because a tool may refer to the session that uses it
        self._known_tools: WeakValueDictionary[tuple[int, ...], SessionTools] = WeakValueDictionary()
        self._toolsets: WeakValueDictionary[tuple[int, ...], Toolset] = WeakValueDictionary()

    async def open(self, items: Iterable[ToolItem], check: Callable[[Toolset], object]) -> SessionTools:
        """Open the toolsets among `items`, and return the tools of a session.

        `check` is called with the tools, and raises an error if the session cannot use them. Sessions with the same
        tools share the result. If the caller is cancelled, toolsets that no other session uses are closed.

        Raises:
            ToolDefinitionError: An item is invalid, or two of the host's own tools have the same name.
            ToolsetFailed: A toolset cannot be opened. The toolsets opened for this session are closed.
        """
        parts: list[AnyTool | ToolsetOwner] = []
        try:
            for item in check_tool_list(items):
                parts.append(await self._resolve_item(item))
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
        """Return the tools of a session. If it uses no toolsets, sessions with the same tools share the result."""
        tools = tuple([id(part) for part in parts if isinstance(part, Tool)])
        if len(tools) < len(parts):
            return SessionTools(parts, self._shared_toolset)
        if (known := self._known_tools.get(tools)) is None:
            known = self._known_tools[tools] = SessionTools(parts, self._shared_toolset)
        return known

    def _shared_toolset(self, tools: Toolset) -> Toolset:
        """Return an equal set that another session already uses, to save memory. If there is none, return `tools`."""
        return self._toolsets.setdefault(tuple(map(id, tools)), tools)

    async def _resolve_item(self, item: ToolItem) -> AnyTool | ToolsetOwner:
        """Convert an entry of `tools=` to a tool or to the owner of a toolset.

        Increment the owner's number of users.
        """
        if isinstance(item, str):
            item = self._configured(item)
        if (source := toolset_source(item)) is None:
            return item if is_tool(item) else tool(cast("Callable[..., object]", item))
        # if the toolset is being closed, it can be opened again only after it has closed
        await self._changes.wait_until(
            lambda: (known := self._shared.get(id(item))) is None or known[1].users
        )
        if self._is_over:
            raise ShuttingDown(
                f"Toolset {source.name!r} cannot be opened, because the runtime is shutting down"
            )
        known = self._shared.get(id(item))
        owner = ToolsetOwner(source, self._system) if known is None else known[1]
        if known is None:
            self._owners.append(owner)
            if source.shared:
                self._shared[id(item)] = item, owner
        owner.users += 1
        return owner

    def release(self, owners: Iterable[ToolsetOwner]) -> "anyio.Event":
        """End a session's use of these toolsets, and start to close the toolsets that no session uses any more.

        Returns:
            An event that is set when the toolsets are closed or the time for closing has expired. The caller need not
            wait.
        """
        unused: list[ToolsetOwner] = []
        for owner in owners:
            owner.users -= 1
            if not owner.users:
                unused.append(owner)
        return self._start_closing(unused)

    async def close(self) -> None:
        """Close all toolsets, the last opened first, and wait until they are closed. Then none can be opened again."""
        self._is_over = True
        await self._start_closing(self._owners).wait()

    def _start_closing(self, owners: Iterable[ToolsetOwner]) -> "anyio.Event":
        """Start a task that closes these toolsets, in reverse order of opening.

        The returned event is set when the task has ended.
        """
        over = anyio.Event()
        unused = set(owners)
        if closing := [owner for owner in reversed(self._owners) if owner in unused]:
            self._system.launch(partial(self._close, closing), partial(_report_end, over), "toolsets")
        else:
            over.set()
        return over

    async def _close(self, owners: list[ToolsetOwner]) -> None:
        """Close toolsets, the last opened first, and log each toolset that hangs."""
        for owner in owners:
            owner.close()
            with anyio.move_on_after(CLOSE_WAIT):  # a slow toolset must not delay the others
                await owner.wait_closed()
        for owner in owners:
            with anyio.move_on_after(owner.source.closing + CLOSE_WAIT) as scope:
                await owner.wait_closed()
            if scope.cancelled_caught:
                logger.toolset_stuck(owner.source.name)
        self._owners = [owner for owner in self._owners if owner not in owners]
        self._shared = {key: kept for key, kept in self._shared.items() if kept[1] not in owners}
        self._changes.notify()


def _report_end(closed: "anyio.Event", error: BaseException | None) -> None:
    """Report the end of a task that closed toolsets, and log its error."""
    closed.set()
    if error is not None:
        logger.actor_crashed("toolsets", error)
