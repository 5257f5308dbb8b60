"""Count the tools that still run although their calls were closed.

A tool that ignores its cancellation may use the CPU, and a tool that blocks occupies a thread, so these tools slow down
all sessions. They are counted by tool for the whole runtime. A tool with too many such calls is disabled until some of
them have ended.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from actors.telemetry import logger

if TYPE_CHECKING:
    from actors.tools import Tool

AnyTool: TypeAlias = "Tool[..., Any]"  # Any: tool signatures differ


class Quarantine:
    """The closed calls of a runtime whose tools still run.

    Args:
        limit: A tool is disabled while it has at least this many closed calls that still run.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: Counter[tuple[str, int]] = Counter()
        self.entered: int = 0
        """Number of calls that have entered quarantine since the runtime started."""

    @property
    def size(self) -> int:
        """Number of calls in quarantine."""
        return self._held.total()

    def by_tool(self) -> dict[str, int]:
        """Return the number of calls in quarantine for each tool name."""
        held = Counter[str]()
        for (name, _), count in self._held.items():
            held[name] += count
        return dict(held)

    def add(self, tool: AnyTool) -> None:
        """Count a closed call whose tool still runs. The tool is disabled if it has too many such calls."""
        key = _tool_key(tool)
        self._held[key] += 1
        self.entered += 1
        if self._held[key] == self._limit:
            logger.tool_barred(tool.name, self._limit)

    def remove(self, tool: AnyTool) -> None:
        """Stop counting a closed call, because its tool has ended."""
        key = _tool_key(tool)
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    def is_disabled(self, tool: AnyTool) -> bool:
        """Return True if the tool must not be called now, because too many of its closed calls still run."""
        return bool(self._held) and self._held[_tool_key(tool)] >= self._limit


def _tool_key(tool: AnyTool) -> tuple[str, int]:
    """Return a key that distinguishes tools of the same name with different functions."""
    return tool.name, id(tool.function)
