"""What one session offers its model: the tools of its host, and those of its toolsets, in an order that keeps.

In:  tools and owners of toolsets, as the host listed them.
Out: a `Toolset`, and another whenever a toolset offers something else.

A tool that is there already keeps its place and its name, so what providers have cached of the list stays valid as far
as it can; new ones stand behind all others. Of two tools of one name the later is called `TOOLSET__TOOL`.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeAlias

from actors.core.values.identity import content_name
from actors.errors import ToolChanged, ToolDefinitionError, ToolsetDown
from actors.tools import Tool, Toolset
from actors.tools.tool import replaced
from actors.tools.toolsets.owner import ToolsetOwner

AnyTool: TypeAlias = Tool[..., Any]  # Any: any function
Key: TypeAlias = tuple[int, str]
"""Which part a tool is of, and what it is called there."""
Arrangement: TypeAlias = tuple[tuple[int, ...] | None, dict[Key, str], Toolset]
"""What an offer has taken over of its toolsets, and the names it gave."""

LONGEST = 64  # characters of a name


class Offer:
    """The tools of one session, in the parts they came in.

    Args:
        parts: A tool of the host's, or the owner of a toolset, in the host's order.
        same: Returns the set of the same tools that is in use already, if there is one.
    """

    __slots__ = ("__weakref__", "_names", "_parts", "_same", "_seen", "owners", "tools")

    def __init__(
        self,
        parts: Sequence[AnyTool | ToolsetOwner],
        same: Callable[[Toolset], Toolset] = lambda tools: tools,
    ) -> None:
        self._parts, self._same = parts, same
        self.owners = tuple(part for part in parts if isinstance(part, ToolsetOwner))
        self._seen: tuple[int, ...] | None = None
        self._names: dict[Key, str] = {}
        self.tools = Toolset()
        self.refresh()

    def refresh(self) -> bool:
        """Take over what the toolsets offer now; say whether `tools` is another than before."""
        if not self.owners and self._seen is not None:
            return False
        seen = tuple([owner.version for owner in self.owners])
        if seen == self._seen:
            return False
        listed = dict(self._listed())
        self._names = {key: name for key, name in self._names.items() if key in listed}
        new = sorted((key for key in listed if key not in self._names), key=self._rank)
        taken, apart = set(self._names.values()), list[Key]()
        for key in new:  # a free name is kept, whatever the order in which a toolset lists its tools
            if key[1] in taken:
                apart.append(key)
            else:
                self._names[key] = key[1]
                taken.add(key[1])
        for key in apart:
            self._names[key] = self._name(key)
        order = self._names if self._seen is not None else {key: self._names[key] for key in listed}
        self._names, self._seen = dict(order), seen
        self.tools = self._same(Toolset([self._bound(key, name, listed[key]) for key, name in order.items()]))
        return True

    @property
    def may_change(self) -> bool:
        """Whether it has toolsets that are declared within turns."""
        return any(owner.source.within_turn for owner in self.owners)

    @property
    def arrangement(self) -> Arrangement:
        """What is offered now, to be `restore`d."""
        return self._seen, self._names, self.tools

    def restore(self, arrangement: Arrangement) -> None:
        """Offer again what was offered before a `refresh`. The next one takes the change over."""
        self._seen, self._names, self.tools = arrangement

    async def catch_up(self) -> bool:
        """Say whether a toolset that is declared `within_turn` offers something else than when it was taken over.

        A list that one is reading is waited for.
        """
        versions = zip(self.owners, self._seen or (), strict=True)
        following = [each for each in versions if each[0].source.within_turn]
        for owner, _ in following:
            await owner.caught_up()
        return any(owner.version != version for owner, version in following)

    def _listed(self) -> Iterable[tuple[Key, AnyTool]]:
        for number, part in enumerate(self._parts):
            if isinstance(part, ToolsetOwner):
                yield from (((number, name), tool) for name, tool in part.tools.items())
            else:
                yield (number, part.name), part

    def _rank(self, key: Key) -> tuple[bool, int, str]:
        """Return the order in which names are given. Tools of the host's come first: they keep their names."""
        is_of_a_toolset = isinstance(self._parts[key[0]], ToolsetOwner)
        return is_of_a_toolset, key[0], key[1] if is_of_a_toolset else ""

    def _name(self, key: Key) -> str:
        """Return a name that none of the others has."""
        part, name = self._parts[key[0]], key[1]
        taken = set(self._names.values())
        if name not in taken:
            return name
        if not isinstance(part, ToolsetOwner):
            raise ToolDefinitionError(f"Two tools are named {name!r}; give one another name with name=")
        name = apart(part.source.name, name)
        tries = (name, *(fitting(f"{name}_{number}") for number in range(2, 2 + len(taken))))
        return next(each for each in tries if each not in taken)

    def _bound(self, key: Key, name: str, tool: AnyTool) -> AnyTool:
        part = self._parts[key[0]]
        return bound(part, key[1], name, tool) if isinstance(part, ToolsetOwner) else tool


def bound(owner: ToolsetOwner, tool_name: str, name: str, tool: AnyTool) -> AnyTool:
    """Return a tool of a toolset as sessions have it: each call goes to the tool as it is then.

    The same for all sessions, as long as the toolset's tool is the same: they share what is made of it.
    """
    known = owner.bound.get((tool_name, name))
    if known is None or known[0] is not tool:
        known = owner.bound[tool_name, name] = (
            tool,
            replaced(tool, name=name, function=_called(owner, tool_name, tool)),
        )
    return known[1]


def _called(owner: ToolsetOwner, name: str, tool: AnyTool) -> Callable[..., Any]:  # Any: any function
    if tool.is_external:
        return tool.function
    return _awaited(owner, name, tool) if tool.is_async else _threaded(owner, name, tool)


def _awaited(owner: ToolsetOwner, name: str, tool: AnyTool) -> Callable[..., Any]:  # Any: any function
    @wraps(tool.function)
    async def called(**arguments: Any) -> object:  # Any: whatever types the function asks for
        function, opening = _current_function(tool, await owner.current(name)), owner.openings
        try:
            return await function(**arguments)
        except ToolsetDown as error:
            if not _may_run_again(tool, error):
                raise
        return await _current_function(tool, await owner.current(name, beyond=opening))(**arguments)

    return called


def _threaded(owner: ToolsetOwner, name: str, tool: AnyTool) -> Callable[..., Any]:  # Any: any function
    @wraps(tool.function)
    def called(**arguments: Any) -> object:  # Any: whatever types the function asks for
        return _current_function(tool, owner.current_in_thread(name))(**arguments)

    return called


def _current_function(checked: AnyTool, current: AnyTool) -> Callable[..., Any]:  # Any: any function
    """Return the function that is called now.

    Raises:
        ToolChanged: The tool has another definition than the one by which its call was checked and approved.
    """
    if current is checked or _definition(current) == _definition(checked):
        return current.function
    raise ToolChanged(
        f"Tool {checked.name!r} has changed since it was declared, so the call did not run; it can be called as it is "
        "now once it has been declared anew"
    )


def _definition(tool: AnyTool) -> tuple[object, ...]:
    """Return by what a tool's calls are checked. Rules count as the same if an opening merely made them anew."""
    rules = (tool.approval, tool.resources)
    return tool.parameters, tool.effects, tool.is_external, *map(_rule, rules)


def _rule(rule: object) -> object:
    code = getattr(rule, "__code__", None)
    if code is None:
        return rule
    cells = getattr(rule, "__closure__", None) or ()
    return code, getattr(rule, "__defaults__", None), tuple(cell.cell_contents for cell in cells)


def _may_run_again(tool: AnyTool, lost: ToolsetDown) -> bool:
    """Say whether a call may be made again that was lost with its toolset."""
    return tool.effects != "once" or not lost.may_have_run


def apart(toolset: str, name: str) -> str:
    """Return a tool's name with its toolset's in front."""
    return fitting(f"{fitting(toolset)}__{name}")


def fitting(name: str) -> str:
    """Return a name that every provider takes: the name itself where it is one; one that was cut ends in a digest."""
    usable = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if not usable[:1].isalpha():
        usable = f"t_{usable}"
    if len(usable) <= LONGEST:
        return usable
    return f"{usable[: LONGEST - 9]}_{content_name(name)[:8]}"
