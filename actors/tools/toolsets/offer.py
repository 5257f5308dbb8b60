"""Combine the host's tools and those of its toolsets into the tools of one session, in a stable order.

In:  tools and owners of toolsets, in the host's order.
Out: a `Toolset`, and a new one whenever a toolset has changed its tools.

A known tool keeps its place and its name, so that as much as possible of a provider's cached prefix stays valid. New
tools are appended. Of two tools with one name, the later is renamed to `TOOLSET__TOOL`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeAlias

from actors.core.values.identity import content_name
from actors.errors import ToolChanged, ToolDefinitionError, ToolsetDown
from actors.tools import Tool, Toolset
from actors.tools.tool import with_function
from actors.tools.toolsets.owner import ToolsetOwner

AnyTool: TypeAlias = Tool[..., Any]  # Any: any function
Key: TypeAlias = tuple[int, str]
"""The index of a tool's part, and the tool's name in that part."""
Arrangement: TypeAlias = tuple[tuple[int, ...] | None, dict[Key, str], Toolset]
"""The versions of the toolsets, the assigned names, and the resulting tools."""

LONGEST = 64  # characters of a name


class SessionTools:
    """The tools of one session, and the parts that they come from.

    Args:
        parts: Tools of the host and owners of toolsets, in the host's order.
        same: Returns an equal set of tools that is already in use, or else its argument.
    """

    __slots__ = ("__weakref__", "_names", "_parts", "_same", "_versions", "owners", "tools")

    def __init__(
        self,
        parts: Sequence[AnyTool | ToolsetOwner],
        same: Callable[[Toolset], Toolset] = lambda tools: tools,
    ) -> None:
        self._parts, self._same = parts, same
        self.owners: tuple[ToolsetOwner, ...] = tuple(
            part for part in parts if isinstance(part, ToolsetOwner)
        )
        self._versions: tuple[int, ...] | None = None
        self._names: dict[Key, str] = {}
        self.tools: Toolset = Toolset()
        self.refresh()

    def refresh(self) -> bool:
        """Adopt the current tools of the toolsets. Return True if `tools` has changed."""
        if not self.owners and self._versions is not None:
            return False
        versions = tuple([owner.version for owner in self.owners])
        if versions == self._versions:
            return False
        entries = dict(self._entries())
        self._names = {key: name for key, name in self._names.items() if key in entries}
        new = sorted((key for key in entries if key not in self._names), key=self._rank)
        taken, clashing = set(self._names.values()), list[Key]()
        for key in new:  # assign free names first, so names do not depend on a toolset's order
            if key[1] in taken:
                clashing.append(key)
            else:
                self._names[key] = key[1]
                taken.add(key[1])
        for key in clashing:
            self._names[key] = self._name(key)
        order = self._names if self._versions is not None else {key: self._names[key] for key in entries}
        self._names, self._versions = dict(order), versions
        self.tools = self._same(Toolset([self._bind(key, name, entries[key]) for key, name in order.items()]))
        return True

    @property
    def may_change(self) -> bool:
        """True if a toolset is declared `within_turn`."""
        return any(owner.source.within_turn for owner in self.owners)

    @property
    def arrangement(self) -> Arrangement:
        """The current state, for `restore`."""
        return self._versions, self._names, self.tools

    def restore(self, arrangement: Arrangement) -> None:
        """Return to the state before a `refresh`. The next `refresh` adopts the change again."""
        self._versions, self._names, self.tools = arrangement

    async def catch_up(self) -> bool:
        """Return True if a toolset that is declared `within_turn` has changed its tools since the last `refresh`.

        Waits while such a toolset reads its list of tools.
        """
        versions = zip(self.owners, self._versions or (), strict=True)
        following = [each for each in versions if each[0].source.within_turn]
        for owner, _ in following:
            await owner.wait_current()
        return any(owner.version != version for owner, version in following)

    def _entries(self) -> Iterable[tuple[Key, AnyTool]]:
        for number, part in enumerate(self._parts):
            if isinstance(part, ToolsetOwner):
                yield from (((number, name), tool) for name, tool in part.tools.items())
            else:
                yield (number, part.name), part

    def _rank(self, key: Key) -> tuple[bool, int, str]:
        """Return the sort key for assigning names. The host's own tools come first, so they keep their names."""
        is_of_a_toolset = isinstance(self._parts[key[0]], ToolsetOwner)
        return is_of_a_toolset, key[0], key[1] if is_of_a_toolset else ""

    def _name(self, key: Key) -> str:
        """Return a name that no other tool has."""
        part, name = self._parts[key[0]], key[1]
        taken = set(self._names.values())
        if name not in taken:
            return name
        if not isinstance(part, ToolsetOwner):
            raise ToolDefinitionError(f"Two tools are named {name!r}; rename one with name=")
        name = prefixed_name(part.source.name, name)
        tries = (name, *(valid_name(f"{name}_{number}") for number in range(2, 2 + len(taken))))
        return next(each for each in tries if each not in taken)

    def _bind(self, key: Key, name: str, tool: AnyTool) -> AnyTool:
        part = self._parts[key[0]]
        return bind_tool(part, key[1], name, tool) if isinstance(part, ToolsetOwner) else tool


def bind_tool(owner: ToolsetOwner, tool_name: str, name: str, tool: AnyTool) -> AnyTool:
    """Return a toolset's tool for use by sessions: each call runs the toolset's current version of the tool.

    Sessions share the result as long as the toolset's tool stays the same.
    """
    known = owner.bound_tools.get((tool_name, name))
    if known is None or known[0] is not tool:
        known = owner.bound_tools[tool_name, name] = (
            tool,
            with_function(tool, name=name, function=_caller(owner, tool_name, tool)),
        )
    return known[1]


def _caller(owner: ToolsetOwner, name: str, tool: AnyTool) -> Callable[..., Any]:  # Any: any function
    if tool.is_external:
        return tool.function
    return _async_caller(owner, name, tool) if tool.is_async else _thread_caller(owner, name, tool)


def _async_caller(owner: ToolsetOwner, name: str, tool: AnyTool) -> Callable[..., Any]:  # Any: any function
    @wraps(tool.function)
    async def call(**arguments: Any) -> object:  # Any: the function's own types
        function, opening = _current_function(tool, await owner.current(name)), owner.openings
        try:
            return await function(**arguments)
        except ToolsetDown as error:
            if not _may_run_again(tool, error):
                raise
        return await _current_function(tool, await owner.current(name, beyond=opening))(**arguments)

    return call


def _thread_caller(owner: ToolsetOwner, name: str, tool: AnyTool) -> Callable[..., Any]:  # Any: any function
    @wraps(tool.function)
    def call(**arguments: Any) -> object:  # Any: the function's own types
        return _current_function(tool, owner.current_in_thread(name))(**arguments)

    return call


def _current_function(checked: AnyTool, current: AnyTool) -> Callable[..., Any]:  # Any: any function
    """Return the function of the current tool.

    Raises:
        ToolChanged: The tool's definition differs from the one that validated and approved the call.
    """
    if current is checked or _definition(current) == _definition(checked):
        return current.function
    raise ToolChanged(
        f"Tool {checked.name!r} has changed since it was declared, so the call did not run; the next request that "
        "declares the tool will have its new definition"
    )


def _definition(tool: AnyTool) -> tuple[object, ...]:
    """Return the fields that decide how a call is checked.

    Reopening a toolset creates its rules anew, so functions with equal code and closures are equal.
    """
    rules = (tool.approval, tool.resources)
    return tool.parameters, tool.effects, tool.is_external, *map(_rule, rules)


def _rule(rule: object) -> object:
    code = getattr(rule, "__code__", None)
    if code is None:
        return rule
    cells = getattr(rule, "__closure__", None) or ()
    return code, getattr(rule, "__defaults__", None), tuple(cell.cell_contents for cell in cells)


def _may_run_again(tool: AnyTool, lost: ToolsetDown) -> bool:
    """Return True if a call that was lost with its toolset may be repeated."""
    return tool.effects != "once" or not lost.may_have_run


def prefixed_name(toolset: str, name: str) -> str:
    """Return a tool's name, prefixed with its toolset's name."""
    return valid_name(f"{valid_name(toolset)}__{name}")


def valid_name(name: str) -> str:
    """Return a name that every provider accepts: unchanged if it is valid, otherwise cut to length with a digest."""
    usable = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not usable[:1].isalpha():
        usable = f"t_{usable}"
    if len(usable) <= LONGEST:
        return usable
    return f"{usable[: LONGEST - 9]}_{content_name(name)[:8]}"
