"""Define `Toolset`, an ordered set of tools. Sessions and the scheduler look tools up by name."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from actors.core.data.jsonio import JsonValue
from actors.core.schemas.arguments import unknown_tool_error
from actors.errors import ConfigError, ToolDefinitionError, nearest
from actors.tools.tool import Tool, is_tool, tool


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
