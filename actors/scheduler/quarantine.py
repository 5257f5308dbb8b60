"""Quarantine: where calls go on that were closed because their tools did not end.

A tool that swallows its cancellation may spin, one that blocks holds a thread: each costs all sessions a little. So
they are counted by tool for the whole runtime, and a tool of which too many run on gets no further calls until some
have ended.
"""

from collections import Counter
from typing import Any, TypeAlias

from actors.telemetry import logger
from actors.tools import Tool

AnyTool: TypeAlias = Tool[..., Any]  # Any: any function


class Quarantine:
    """The calls of a runtime that run on though they are closed.

    Args:
        most: How many of one tool before it gets no further calls.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[tuple[str, int]] = Counter()
        self.entered: int = 0
        """How many there have been."""

    @property
    def size(self) -> int:
        """How many there are."""
        return self._held.total()

    def by_tool(self) -> dict[str, int]:
        """Return how many there are of each tool."""
        held = Counter[str]()
        for (name, _), count in self._held.items():
            held[name] += count
        return dict(held)

    def enter(self, tool: AnyTool) -> None:
        """Count a call that runs on."""
        key = _key(tool)
        self._held[key] += 1
        self.entered += 1
        if self._held[key] == self._most:
            logger.tool_barred(tool.name, self._most)

    def leave(self, tool: AnyTool) -> None:
        """Count it no longer: its tool has ended."""
        key = _key(tool)
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    def is_disabled(self, tool: AnyTool) -> bool:
        """Say whether a tool gets no further calls now."""
        return bool(self._held) and self._held[_key(tool)] >= self._most


def _key(tool: AnyTool) -> tuple[str, int]:
    return tool.name, id(tool.function)
