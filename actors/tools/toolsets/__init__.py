"""Toolsets: tools that have to be opened, and live longer than a call.

A session names them in its `tools=`. The runtime's `Toolsets` has each opened once for all sessions that use it, and
closed after the last, the later ones first.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast
from weakref import WeakValueDictionary

import anyio

from actors import telemetry
from actors.errors import ShuttingDown
from actors.kernel import System
from actors.kernel.parking import Changes
from actors.tools import Tool, Toolset, tool
from actors.tools.toolsets.offer import AnyTool, Offer
from actors.tools.toolsets.owner import ToolsetOwner
from actors.tools.toolsets.source import Item, LiveTools, ToolSource, listed, source_of

__all__ = ["Item", "LiveTools", "Offer", "ToolSource", "Toolsets"]

HOLD = 1.0
"""Seconds that a toolset which does not close holds up the next one, and those who wait for it to be closed more."""


class Toolsets:
    """The toolsets that the sessions of a runtime have open.

    Args:
        system: Whose tasks and deadlines they use.
        named: Returns the one that a configuration has under a name, always the same.
    """

    def __init__(self, system: System, named: Callable[[str], ToolSource]) -> None:
        self._system, self._named = system, named
        self._owners: list[ToolsetOwner] = []  # in the order in which they were opened
        self._shared: dict[
            int, tuple[object, ToolsetOwner]
        ] = {}  # by what the host gave, which is kept alive
        self._changes = Changes(system.parking)
        self._is_over = False
        # by the identities of their tools: a tool may refer to the session that has it
        self._offers: WeakValueDictionary[tuple[int, ...], Offer] = WeakValueDictionary()
        self._toolsets: WeakValueDictionary[tuple[int, ...], Toolset] = WeakValueDictionary()

    async def open(self, items: Iterable[Item], check: Callable[[Toolset], object]) -> Offer:
        """Return what a session with these tools and toolsets offers, with all of them open.

        `check` raises if a session cannot have these tools. Sessions that have the same share what is made of them.

        A caller that is cancelled leaves nothing open that only this session would have used.

        Raises:
            ToolDefinitionError: One of them cannot be used, or two tools of the host's have one name.
            ToolsetFailed: One cannot be opened. What was opened for this session is closed.
        """
        parts: list[AnyTool | ToolsetOwner] = []
        try:
            for item in listed(items):
                parts.append(await self._part(item))
            for part in parts:
                if isinstance(part, ToolsetOwner):
                    await part.opened()
            offer = self._offer(parts)
            check(offer.tools)
            return offer
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.release([part for part in parts if isinstance(part, ToolsetOwner)]).wait()
            raise

    def _offer(self, parts: list[AnyTool | ToolsetOwner]) -> Offer:
        tools = tuple([id(part) for part in parts if isinstance(part, Tool)])
        if len(tools) < len(parts):
            return Offer(parts, self._same)
        if (known := self._offers.get(tools)) is None:
            known = self._offers[tools] = Offer(parts, self._same)
        return known

    def _same(self, tools: Toolset) -> Toolset:
        """Return the set of these tools that another session has already, or this one."""
        return self._toolsets.setdefault(tuple(map(id, tools)), tools)

    async def _part(self, item: Item) -> AnyTool | ToolsetOwner:
        if isinstance(item, str):
            item = self._named(item)
        if (source := source_of(item)) is None:
            return item if isinstance(item, Tool) else tool(cast("Callable[..., object]", item))
        # the same thing is not opened while it is being closed
        await self._changes.until(lambda: (known := self._shared.get(id(item))) is None or known[1].users)
        if self._is_over:
            raise ShuttingDown(f"Toolset {source.name!r} is not opened: the runtime is being left")
        known = self._shared.get(id(item))
        owner = ToolsetOwner(source, self._system) if known is None else known[1]
        if known is None:
            self._owners.append(owner)
            if source.shared:
                self._shared[id(item)] = item, owner
        owner.users += 1
        return owner

    def release(self, owners: Iterable[ToolsetOwner]) -> "anyio.Event":
        """Note that a session no longer uses these toolsets, and have those closed that none uses.

        Returns:
            The event of their being closed, or of the time for that being over. Nobody need wait for it.
        """
        unused: list[ToolsetOwner] = []
        for owner in owners:
            owner.users -= 1
            if not owner.users:
                unused.append(owner)
        return self._closed(unused)

    async def close(self) -> None:
        """Have all of them closed, the last opened first, and wait for that. None is opened any more."""
        self._is_over = True
        await self._closed(self._owners).wait()

    def _closed(self, owners: Iterable[ToolsetOwner]) -> "anyio.Event":
        over = anyio.Event()
        unused = set(owners)
        if closing := [owner for owner in reversed(self._owners) if owner in unused]:
            self._system.launch(partial(self._close, closing), partial(_told, over), "toolsets")
        else:
            over.set()
        return over

    async def _close(self, owners: list[ToolsetOwner]) -> None:
        for owner in owners:
            owner.close()
            with anyio.move_on_after(HOLD):
                await owner.closed()
        for owner in owners:
            with anyio.move_on_after(owner.source.closing + HOLD) as scope:
                await owner.closed()
            if scope.cancelled_caught:
                telemetry.toolset_stuck(owner.source.name)
        self._owners = [owner for owner in self._owners if owner not in owners]
        self._shared = {key: kept for key, kept in self._shared.items() if kept[1] not in owners}
        self._changes.tell()


def _told(over: "anyio.Event", error: BaseException | None) -> None:
    over.set()
    if error is not None:
        telemetry.crashed("toolsets", error)
