"""Manage toolsets: tools that must be opened before use, and that stay open longer than one call.

Sessions list toolsets in their `tools=`. The runtime's `Toolsets` opens each toolset once for all sessions that use it,
and closes it after the last of these sessions. Toolsets are closed in reverse order of opening.

A session has the host's own tools and the tools of its toolsets, in the order of `tools=`. When the tools of a toolset
change, each remaining tool keeps its place and its name, and new tools are appended. So as much as possible of a
provider's cached prefix stays valid. If two tools have the same name, the later tool is renamed to `TOOLSET__TOOL`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any, TypeAlias, cast
from weakref import WeakValueDictionary

import anyio

from actors.core.values.identity import content_digest
from actors.errors import ShuttingDown, ToolChanged, ToolDefinitionError, ToolsetDown
from actors.kernel import System
from actors.kernel.event_loop import Changes
from actors.telemetry import logger
from actors.tools import tool
from actors.tools.tool import Tool, is_tool, with_function
from actors.tools.toolset import LiveTools, ToolItem, Toolset, ToolSource, check_tool_list, toolset_source
from actors.tools.toolset_owner import ToolsetOwner

__all__ = ["LiveTools", "SessionTools", "ToolItem", "ToolSource", "Toolsets"]

AnyTool: TypeAlias = Tool[..., Any]  # Any: tool signatures differ
ToolKey: TypeAlias = tuple[int, str]
"""The index of an entry of `tools=`, and the name of a tool in that entry."""
Arrangement: TypeAlias = tuple[tuple[int, ...] | None, dict[ToolKey, str], Toolset]
"""A snapshot of a session's tools: the versions of the toolsets, the assigned names by key, and the tools."""
MAX_NAME = 64  # maximum number of characters of a tool's name
CLOSE_WAIT = 1.0
"""Seconds to wait for a toolset that is closing before the next one is closed too.

A toolset that hangs gets the same time in addition to its `closing` timeout.
"""


class SessionTools:
    """The tools of one session, combined from tools of the host and toolsets.

    Args:
        parts: Tools of the host and owners of toolsets, in the order of `tools=`.
        share: Returns an equal `Toolset` that another session already uses, to save memory. If there is none, it
            returns its argument.
    """

    __slots__ = ("__weakref__", "_names", "_parts", "_share", "_versions", "owners", "tools")

    def __init__(
        self,
        parts: Sequence[AnyTool | ToolsetOwner],
        share: Callable[[Toolset], Toolset] = lambda tools: tools,
    ) -> None:
        self._parts, self._share = parts, share
        self.owners: tuple[ToolsetOwner, ...] = tuple(
            part for part in parts if isinstance(part, ToolsetOwner)
        )
        self._versions: tuple[int, ...] | None = None
        self._names: dict[ToolKey, str] = {}
        self.tools: Toolset = Toolset()
        self.refresh()

    def refresh(self) -> bool:
        """Update `tools` to the current tools of the toolsets. Return True if `tools` has changed."""
        if not self.owners and self._versions is not None:
            return False
        versions = tuple([owner.version for owner in self.owners])
        if versions == self._versions:
            return False
        entries = dict(self._entries())
        self._names = {key: name for key, name in self._names.items() if key in entries}
        new = sorted((key for key in entries if key not in self._names), key=self._naming_order)
        taken, clashing = set(self._names.values()), list[ToolKey]()
        for key in new:  # assign free names first, so that names do not depend on the order inside a toolset
            if key[1] in taken:
                clashing.append(key)
            else:
                self._names[key] = key[1]
                taken.add(key[1])
        for key in clashing:
            self._names[key] = self._unused_name(key)
        order = self._names if self._versions is not None else {key: self._names[key] for key in entries}
        self._names, self._versions = dict(order), versions
        self.tools = self._share(
            Toolset([self._bind_tool(key, name, entries[key]) for key, name in order.items()])
        )
        return True

    @property
    def may_change(self) -> bool:
        """True if the tools may change during a turn, because a toolset is declared `within_turn`."""
        return any(owner.source.within_turn for owner in self.owners)

    @property
    def arrangement(self) -> Arrangement:
        """A snapshot of the tools. After a `refresh`, pass it to `restore` to undo the refresh."""
        return self._versions, self._names, self.tools

    def restore(self, arrangement: Arrangement) -> None:
        """Undo a `refresh`. The next `refresh` makes the same change again."""
        self._versions, self._names, self.tools = arrangement

    async def check_for_changes(self) -> bool:
        """Return True if a toolset that is declared `within_turn` has changed its tools since the last `refresh`.

        If such a toolset is reading its list of tools, first wait until it has read the list.
        """
        versions = zip(self.owners, self._versions or (), strict=True)
        changeable = [each for each in versions if each[0].source.within_turn]
        for owner, _ in changeable:
            await owner.refresh_tools()
        return any(owner.version != version for owner, version in changeable)

    def _entries(self) -> Iterable[tuple[ToolKey, AnyTool]]:
        """Yield the current tools of the host and of all toolsets, with their keys."""
        for number, part in enumerate(self._parts):
            if isinstance(part, ToolsetOwner):
                yield from (((number, name), tool) for name, tool in part.tools.items())
            else:
                yield (number, part.name), part

    def _naming_order(self, key: ToolKey) -> tuple[bool, int, str]:
        """Return the sort key for assigning names. The host's own tools come first, so that they keep their names."""
        is_from_toolset = isinstance(self._parts[key[0]], ToolsetOwner)
        return is_from_toolset, key[0], key[1] if is_from_toolset else ""

    def _unused_name(self, key: ToolKey) -> str:
        """Return a name for a tool that no other tool of the session has."""
        part, name = self._parts[key[0]], key[1]
        taken = set(self._names.values())
        if name not in taken:
            return name
        if not isinstance(part, ToolsetOwner):
            raise ToolDefinitionError(f"Two tools are named {name!r}; rename one with name=")
        name = prefixed_name(part.source.name, name)
        tries = (name, *(valid_name(f"{name}_{number}") for number in range(2, 2 + len(taken))))
        return next(each for each in tries if each not in taken)

    def _bind_tool(self, key: ToolKey, name: str, tool: AnyTool) -> AnyTool:
        """Return the tool to declare under this name: a copy if it is a toolset's tool, otherwise the tool itself."""
        part = self._parts[key[0]]
        return bind_tool(part, key[1], name, tool) if isinstance(part, ToolsetOwner) else tool


def bind_tool(owner: ToolsetOwner, tool_name: str, declared_name: str, tool: AnyTool) -> AnyTool:
    """Return a copy of a toolset's tool, with the name that sessions declare. Calls run the tool's current version.

    Sessions share the copy as long as `tool` is the same object.
    """
    known = owner.bound_tools.get((tool_name, declared_name))
    if known is None or known[0] is not tool:
        known = owner.bound_tools[tool_name, declared_name] = (
            tool,
            with_function(tool, name=declared_name, function=_session_function(owner, tool_name, tool)),
        )
    return known[1]


def _session_function(
    owner: ToolsetOwner, name: str, tool: AnyTool
) -> Callable[..., Any]:  # Any: tool signatures differ
    """Return the function of a session's copy of a tool."""
    if tool.is_external:
        return tool.function
    return _async_caller(owner, name, tool) if tool.is_async else _thread_caller(owner, name, tool)


def _async_caller(
    owner: ToolsetOwner, name: str, tool: AnyTool
) -> Callable[..., Any]:  # Any: tool signatures differ
    """Return an async function that calls the current version of a tool.

    If the toolset is lost during a call, the call is repeated once, unless the tool's effects forbid that.
    """

    @wraps(tool.function)
    async def call(**arguments: Any) -> object:  # Any: the wrapped function decides the types
        function, opening = _current_function(tool, await owner.current_tool(name)), owner.openings
        try:
            return await function(**arguments)
        except ToolsetDown as error:
            if not _may_run_again(tool, error):
                raise
        return await _current_function(tool, await owner.current_tool(name, after_opening=opening))(
            **arguments
        )

    return call


def _thread_caller(
    owner: ToolsetOwner, name: str, tool: AnyTool
) -> Callable[..., Any]:  # Any: tool signatures differ
    """Return a function that calls the current version of a tool. The function runs in a thread."""

    @wraps(tool.function)
    def call(**arguments: Any) -> object:  # Any: the wrapped function decides the types
        return _current_function(tool, owner.current_tool_in_thread(name))(**arguments)

    return call


def _current_function(
    checked: AnyTool, current: AnyTool
) -> Callable[..., Any]:  # Any: tool signatures differ
    """Return the function of the tool `current`, which must have the same definition as the tool `checked`.

    Raises:
        ToolChanged: The definitions differ. The call was validated and approved against the definition of `checked`.
    """
    if current is checked or _definition(current) == _definition(checked):
        return current.function
    raise ToolChanged(
        f"Tool {checked.name!r} has changed since it was declared, so the call did not run; a later request will "
        "declare the new definition"
    )


def _definition(tool: AnyTool) -> tuple[object, ...]:
    """Return the fields of a tool that decide how a call is validated and approved."""
    rules = (tool.approval, tool.resources)
    return tool.parameters, tool.effects, tool.is_external, *map(_comparable_rule, rules)


def _comparable_rule(rule: object) -> object:
    """Return a value that compares equal for equal rules.

    Reopening a toolset creates its functions anew, so a function is represented by its code, defaults and closure.
    """
    code = getattr(rule, "__code__", None)
    if code is None:
        return rule
    cells = getattr(rule, "__closure__", None) or ()
    return code, getattr(rule, "__defaults__", None), tuple(cell.cell_contents for cell in cells)


def _may_run_again(tool: AnyTool, lost: ToolsetDown) -> bool:
    """Return True if a call whose toolset was lost may be repeated."""
    return tool.effects != "once" or not lost.may_have_run


def prefixed_name(toolset: str, name: str) -> str:
    """Return a tool's name with the prefix of its toolset: `TOOLSET__TOOL`."""
    return valid_name(f"{valid_name(toolset)}__{name}")


def valid_name(name: str) -> str:
    """Return a name that every provider accepts. A valid name is returned unchanged.

    Invalid characters become `_`. A name that is too long is shortened and ends with a digest.
    """
    usable = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not usable[:1].isalpha():
        usable = f"t_{usable}"
    if len(usable) <= MAX_NAME:
        return usable
    return f"{usable[: MAX_NAME - 9]}_{content_digest(name)[:8]}"


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

        The session counts as a user of the toolset until `release` is called.
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
        """Close all toolsets, the last opened first, and wait until they are closed. Later calls of `open` fail."""
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
            with anyio.move_on_after(CLOSE_WAIT):  # a slow toolset must not delay the other toolsets
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
