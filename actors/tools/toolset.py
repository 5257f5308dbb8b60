"""Define `Toolset`, an ordered set of tools, and sources of tools that must be opened before use.

Sessions and the scheduler look tools up by name in a `Toolset`. A session also accepts a source in its `tools=`, such
as the tools of a server or a browser: an async context manager that yields tools, or a `ToolSource`, which creates
such a context manager and sets its timeouts. `actors.tools.toolset_owner` opens and closes the source.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

from actors.core.data.jsonio import JsonValue
from actors.core.schemas.arguments import unknown_tool_error
from actors.errors import ConfigError, ToolDefinitionError, nearest
from actors.tools.tool import Tool, is_tool, tool

ToolLike: TypeAlias = Tool[..., Any] | Callable[..., Any]  # Any: tool signatures differ
"""A tool, or a function that is converted to a tool."""


class Toolset:
    """An immutable, ordered set of tools with different names.

    Args:
        tools: Tools, or functions that are converted to tools.

    Raises:
        ToolDefinitionError: Two tools have the same name, or a schema is invalid.
    """

    def __init__(
        self, tools: Iterable[Tool[..., Any] | Callable[..., Any]] = ()
    ) -> None:  # Any: tool signatures differ
        self._tools: dict[str, Tool[..., Any]] = {}  # Any: tool signatures differ
        for item in tools:
            added = item if is_tool(item) else tool(item)
            if added.name in self._tools:
                raise ToolDefinitionError(f"Two tools are named {added.name!r}; rename one with name=")
            _ = added._check  # compile the schema now, so that an invalid schema does not fail during a turn
            self._tools[added.name] = added

    def __iter__(self) -> Iterator[Tool[..., Any]]:  # Any: tool signatures differ
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool[..., Any]:  # Any: tool signatures differ
        if found := self._tools.get(name):
            return found
        close = nearest(name, self._tools)
        hint = f"did you mean {close!r}?" if close else f"there are: {', '.join(self._tools) or 'none'}"
        raise ConfigError(f"No tool {name!r} in this set; {hint}")

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._tools)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(self._tools)

    def find(self, name: str) -> Tool[..., Any] | None:  # Any: tool signatures differ
        """Return the tool with this name, or None if there is none."""
        return self._tools.get(name)

    def unknown_tool(self, name: str) -> dict[str, JsonValue]:
        """Return the `tool_error` result for a call of a tool that is not in this set."""
        return unknown_tool_error(name, self._tools)


@runtime_checkable
class LiveTools(Protocol):
    """The value that a toolset's context manager yields if its tools may change or its connection may be lost.

    A context manager may yield a plain iterable instead. Then the tools never change, and the toolset is lost only when
    an error ends its block.

    If the tools are read from a server, `tools` is updated some time after a change. The object may have an attribute
    `is_changing`, which is true in the meantime. If the toolset is declared `within_turn`, a turn then waits for the
    update.
    """

    @property
    def tools(self) -> Iterable[ToolLike]:
        """The current tools, in a stable order."""
        ...

    async def changed(self) -> None:
        """Return when `tools` has changed. Raise when the connection is lost; the toolset is then opened again.

        This method is called again after each return, in the task that opened the toolset, and is cancelled when the
        toolset is closed. The tools are updated at most 20 times a second; more frequent changes are delayed.
        """
        ...


OpenedTools: TypeAlias = "Iterable[ToolLike] | LiveTools"
"""The value that a toolset's context manager yields: its tools, or an object whose tools may change."""
ToolsetOpener: TypeAlias = Callable[[], AbstractAsyncContextManager[OpenedTools]]
"""A function that returns the context manager of a toolset. It is called for each opening."""


@dataclass(frozen=True, eq=False)
class ToolSource:
    """A description of a toolset: how to open it, and its timeouts.

    Sessions of a runtime that list the same object share one toolset, which is opened for the first session and closed
    after the last. Several runtimes may use the same object; each opens its own toolset.

    Args:
        open: Returns the async context manager that yields the tools. The function is called for each opening,
            also after the toolset was lost. If a context manager can be entered only once, the function must return a
            new one each time.
        name: The name in errors, and the prefix of a tool whose name is already in use.
        shared: Whether sessions share the toolset. Otherwise each session opens its own toolset.
        opening: Seconds that opening may take.
        waiting: Seconds that a call waits while the toolset is being opened again.
        closing: Seconds that closing may take before it is cancelled.
        within_turn: If True, a change of the tools takes effect from the turn's next request on. If False, it takes
            effect from the next ask on, which keeps the turn's cached prefix valid.

    Raises:
        ToolDefinitionError: A field is invalid.
    """

    open: ToolsetOpener
    name: str
    _: KW_ONLY
    shared: bool = True
    opening: float = 30.0
    waiting: float = 10.0
    closing: float = 8.0
    within_turn: bool = False

    def __post_init__(self) -> None:
        if not callable(self.open):
            raise ToolDefinitionError(
                "The first argument of ToolSource must be a function that returns an async context manager, "
                f"not {type(self.open).__name__}"
            )
        for field in ("opening", "waiting", "closing"):
            if not 0 < getattr(self, field) < float("inf"):
                raise ToolDefinitionError(
                    f"Toolset {self.name!r} has {field}={getattr(self, field)!r}; use a number of seconds above 0"
                )
        if not isinstance(self.within_turn, bool):
            raise ToolDefinitionError(
                f"Toolset {self.name!r} has within_turn={self.within_turn!r}; use True or False"
            )


ToolItem: TypeAlias = ToolLike | ToolSource | AbstractAsyncContextManager[OpenedTools] | str
"""An entry of `tools=`. A string names an MCP server of the configuration."""


def is_tool_list(items: object) -> TypeGuard[Iterable[Any]]:  # Any: the entries are checked later
    """Return True for an iterable of entries of `tools=`, False for a single entry."""
    return isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping | Tool | ToolSource)


def check_tool_list(items: object) -> Iterable[ToolItem]:
    """Check that `tools=` is an iterable of entries, and return it.

    Raises:
        ToolDefinitionError: `items` is a single entry.
    """
    if not is_tool_list(items):
        raise ToolDefinitionError(
            f"tools= takes a list, such as [{_example_name(items)}], not a single {type(items).__name__}"
        )
    return items


def _example_name(item: object) -> str:
    """Return a name for an invalid `tools=` value, for the example in the error message."""
    if isinstance(item, str):
        return repr(item[:80])
    name = getattr(item, "__name__", getattr(item, "name", ""))
    return name if isinstance(name, str) and name.isidentifier() else "tool"


def toolset_source(item: Any) -> ToolSource | None:  # Any: callers may pass any value
    """Return the toolset of an entry of `tools=`; None if the entry is a tool or a plain function.

    Raises:
        ToolDefinitionError: The entry is a function that returns a toolset, or is not callable.
    """
    if isinstance(item, ToolSource):
        return item
    if isinstance(item, Tool):
        return None
    manager: AbstractAsyncContextManager[OpenedTools] = item
    if isinstance(item, AbstractAsyncContextManager):
        if isinstance(item, type):
            return None
        return ToolSource(lambda: manager, type(manager).__name__)
    if _is_factory(item):
        name = getattr(item, "__name__", "it")
        raise ToolDefinitionError(
            f"{name!r} is a function that creates a toolset; pass ToolSource({name}, name), or {name}() if the toolset "
            "is opened only once"
        )
    if not callable(item):
        raise ToolDefinitionError(
            f"tools= contains a value of type {type(item).__name__}; pass functions, tools, toolsets and names of MCP "
            "servers. For a tool with an explicit schema, use Tool.from_schema or Tool.external"
        )
    return None


def _is_factory(item: object) -> bool:
    """Return True for a class of async context managers, or a function decorated with `asynccontextmanager`."""
    if isinstance(item, type):
        # pyright sees a protocol that is not runtime-checkable
        return issubclass(item, AbstractAsyncContextManager)  # pyright: ignore[reportGeneralTypeIssues]
    import inspect

    inner = getattr(item, "__wrapped__", None)
    return callable(item) and inner is not None and inspect.isasyncgenfunction(inner)
