"""Count the tools that still run although their calls were closed.

A tool that swallows its cancellation may use the CPU, and a tool that blocks holds a thread, so each slows down all
sessions. They are counted by tool for the whole runtime. A tool with too many of them is disabled until some have
ended.
"""

from collections import Counter
from typing import Any, TypeAlias

from actors.telemetry import logger
from actors.tools import Tool

AnyTool: TypeAlias = Tool[..., Any]  # Any: any function


class Quarantine:
    """The closed calls of a runtime whose tools still run.

    Args:
        most: The number of these calls at which a tool is disabled.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[tuple[str, int]] = Counter()
        self.entered: int = 0
        """Number of calls that have ever entered quarantine."""

    @property
    def size(self) -> int:
        """Number of calls in quarantine."""
        return self._held.total()

    def by_tool(self) -> dict[str, int]:
        """Return the number of calls in quarantine, by tool name."""
        held = Counter[str]()
        for (name, _), count in self._held.items():
            held[name] += count
        return dict(held)

    def enter(self, tool: AnyTool) -> None:
        """Count a closed call whose tool still runs."""
        key = _key(tool)
        self._held[key] += 1
        self.entered += 1
        if self._held[key] == self._most:
            logger.tool_barred(tool.name, self._most)

    def leave(self, tool: AnyTool) -> None:
        """Stop counting a call: its tool has ended."""
        key = _key(tool)
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    def is_disabled(self, tool: AnyTool) -> bool:
        """Return True if a tool must not be called now."""
        return bool(self._held) and self._held[_key(tool)] >= self._most


def _key(tool: AnyTool) -> tuple[str, int]:
    return tool.name, id(tool.function)
