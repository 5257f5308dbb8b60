"""A toolset: tools that have to be opened before they can be called, as those of a server or a browser.

A session takes one in its `tools=`: an async context manager whose block gives tools, or a `ToolSource` that says how
such a one is made and how long to wait for it. What is opened, kept and closed is `actors.tools.toolsets.owner`'s.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

from actors.errors import ToolDefinitionError
from actors.tools import Tool

Offered: TypeAlias = Tool[..., Any] | Callable[..., Any]  # Any: any function


@runtime_checkable
class LiveTools(Protocol):
    """What the block of a toolset gives if its tools may change, or its connection may be lost.

    A block may give a plain iterable instead. Then the tools stay as they are, and the toolset is lost only when an
    error ends its block.

    Where `tools` follows a change only after a while, as a list that has to be read from a server, the object may also
    have an attribute `is_changing`, true meanwhile: a turn waits for it if the toolset is declared `within_turn`.
    """

    @property
    def tools(self) -> Iterable[Offered]:
        """The tools as they are now."""
        ...

    async def changed(self) -> None:
        """Return when `tools` has changed. Raise when the connection is lost: the toolset is opened again then.

        It is called again after each return, in the task that opened the toolset, and cancelled when that is closed.
        """
        ...


Given: TypeAlias = "Iterable[Offered] | LiveTools"
Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Given]]


@dataclass(frozen=True, eq=False)
class ToolSource:
    """How a toolset is opened, and how long it may take.

    The same object in several sessions of a runtime is one toolset: it is opened for the first and closed after the
    last. It may be used in several runtimes, one after the other or at once; each opens its own.

    Args:
        open: Returns the async context manager that gives the tools. Called each time the toolset is opened, so after
            a loss too: one that can be entered only once has to be made anew.
        name: Names it in errors, and sets its tools apart where two have the same name.
        shared: Whether the sessions that use it share one. Otherwise each session has its own.
        opening: Seconds that opening may take.
        waiting: Seconds that a call waits while the toolset is being opened again.
        closing: Seconds that closing may take before it is cancelled.
        within_turn: Whether the next request of a turn declares the tools that a call changed. Otherwise the next ask
            does, which keeps what providers have cached of the turn.

    Raises:
        ToolDefinitionError: A field cannot be used.
    """

    open: Opening
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
                f"ToolSource takes a function that returns an async context manager, not {type(self.open).__name__}"
            )
        for field in ("opening", "waiting", "closing"):
            if not 0 < getattr(self, field) < float("inf"):
                raise ToolDefinitionError(
                    f"Toolset {self.name!r} has {field}={getattr(self, field)!r}; it takes seconds above 0"
                )
        if not isinstance(self.within_turn, bool):
            raise ToolDefinitionError(
                f"Toolset {self.name!r} has within_turn={self.within_turn!r}; it takes True or False"
            )


Item: TypeAlias = Offered | ToolSource | AbstractAsyncContextManager[Given] | str
"""An entry of `tools=`. A text names an MCP server of the configuration."""


def is_list(items: object) -> TypeGuard[Iterable[Any]]:  # Any: as they are judged one by one
    """Say whether something is several entries, and not one, or none."""
    return isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping | Tool | ToolSource)


def listed(items: object) -> Iterable[Item]:
    """Return the entries of a `tools=`.

    Raises:
        ToolDefinitionError: It is one entry and no list of them.
    """
    if not is_list(items):
        raise ToolDefinitionError(
            f"tools= takes a list, as [{_named(items)}], not one {type(items).__name__}"
        )
    return items


def _named(item: object) -> str:
    """Return what an entry may be called in an example."""
    if isinstance(item, str):
        return repr(item[:80])
    name = getattr(item, "__name__", getattr(item, "name", ""))
    return name if isinstance(name, str) and name.isidentifier() else "tool"


def source_of(item: object) -> ToolSource | None:
    """Return the toolset that an entry of `tools=` is; None if it is a tool or a plain function.

    Raises:
        ToolDefinitionError: It would be one if it were called, or is nothing that can be called.
    """
    if isinstance(item, ToolSource):
        return item
    if isinstance(item, Tool):
        return None
    if isinstance(item, AbstractAsyncContextManager):
        if isinstance(item, type):
            return None
        made: AbstractAsyncContextManager[Given] = item
        return ToolSource(lambda: made, type(item).__name__)
    if _makes_toolsets(item):
        name = getattr(item, "__name__", "it")
        raise ToolDefinitionError(
            f"{name!r} makes a toolset; give ToolSource({name}, name), or {name}() to open it just once"
        )
    if not callable(item):
        raise ToolDefinitionError(
            f"tools= has a value of type {type(item).__name__}; it takes functions, tools, toolsets, and names of MCP "
            "servers. A tool that was described elsewhere is made by Tool.from_schema or Tool.external"
        )
    return None


def _makes_toolsets(item: object) -> bool:
    """Say whether this is a class of async context managers, or a function made by `asynccontextmanager`."""
    if isinstance(item, type):
        return issubclass(item, AbstractAsyncContextManager)
    import inspect

    inner = getattr(item, "__wrapped__", None)
    return callable(item) and inner is not None and inspect.isasyncgenfunction(inner)
