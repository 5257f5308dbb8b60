"""Determine the limits of a runtime and its turns. By default, they depend on how much memory the process may use."""

from typing import TYPE_CHECKING

from msgspec import Struct

from actors.core.turn.turn import Bounds

if TYPE_CHECKING:
    from actors.config.settings import RuntimeLimits

MEMORY_SHARE = 2
"""By default, sessions may use 1/MEMORY_SHARE of the process's memory; connections, tools and Python need the rest."""
BYTES_PER_ACTIVE = 4 * 1024 * 1024
"""Bytes of the memory limit per idle session that keeps its actors, if `max_active_sessions` is not set."""
FEWEST_ACTIVE, MOST_ACTIVE = 64, 4096
"""Bounds of the derived number of sessions with actors.

Creating a session's actors takes a fifteenth of a turn's time, and a runtime must stop each actor when it exits.
"""
ASSUMED_MEMORY = 8 * 1024 * 1024 * 1024
"""Assumed memory of the process, in bytes, if the system does not report it."""


class HostLimits(Struct, frozen=True):
    """The limits of a host.

    Args:
        active: Maximum number of idle sessions that keep their actors.
        sessions: Maximum number of open sessions.
        memory: Maximum bytes of memory for all sessions together.
    """

    active: int
    sessions: int
    memory: int


def machine_limits(active: int | None, sessions: int, memory: int | None) -> HostLimits:
    """Return the limits of a host on this machine. A limit that is None gets a default; see `host_limits`."""
    from actors.runtime.machine import usable_memory  # imported late, so that `import actors` stays fast

    return host_limits(active, sessions, memory, usable_memory())


def host_limits(active: int | None, sessions: int, memory: int | None, usable: int | None) -> HostLimits:
    """Return the limits of a host, with defaults for limits that are None.

    Args:
        active: Maximum number of idle sessions that keep their actors; None to derive it from `memory`.
        sessions: Maximum number of open sessions.
        memory: Maximum bytes of memory for all sessions together; None for half of the usable memory.
        usable: Bytes of memory that the process may use; None if the system does not report it.
    """
    memory = (usable or ASSUMED_MEMORY) // MEMORY_SHARE if memory is None else memory
    if active is None:
        active = min(max(memory // BYTES_PER_ACTIVE, FEWEST_ACTIVE), MOST_ACTIVE)
    return HostLimits(active, sessions, memory)


def turn_bounds(limits: "RuntimeLimits") -> Bounds:
    """Return the default bounds of turns, which sessions and asks may override."""
    return Bounds(
        limits.max_rounds,
        limits.max_corrections,
        max_tool_corrections=limits.max_tool_corrections,
        on_repeat=limits.on_repeat,
        repair=limits.repair,
    )
