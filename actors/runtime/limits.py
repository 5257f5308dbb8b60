"""Derive the limits of a runtime and its turns. Limits that are not configured depend on the available memory."""

from typing import TYPE_CHECKING

from msgspec import Struct

from actors.core.turn.bounds import Bounds

if TYPE_CHECKING:
    from actors.config.settings import RuntimeLimits

SHARE = 2
"""Sessions may hold 1/SHARE of the process's memory. The rest is for connections, tools and Python."""
ACTIVE_EACH = 4 * 1024 * 1024
"""Bytes of the memory limit per idle session that keeps its actors."""
FEWEST_ACTIVE, MOST_ACTIVE = 64, 4096
"""Bounds of that number. Creating actors costs a fifteenth of a turn, and leaving a runtime must stop each actor."""
UNKNOWN = 8 * 1024 * 1024 * 1024
"""Assumed memory of the process, in bytes, if the system does not report it."""


class HostLimits(Struct, frozen=True):
    """The limits of a host.

    Args:
        active: Most idle sessions that keep their actors.
        sessions: Most open sessions.
        memory: Most bytes that all sessions together may hold.
    """

    active: int
    sessions: int
    memory: int


def fitted_limits(active: int | None, sessions: int, memory: int | None) -> HostLimits:
    """Return the limits of a host on this machine."""
    from actors.runtime.machine import usable_memory  # when a runtime is entered: it reads files

    return host_limits(active, sessions, memory, usable_memory())


def host_limits(active: int | None, sessions: int, memory: int | None, usable: int | None) -> HostLimits:
    """Return the limits of a host.

    Args:
        active: As in `HostLimits`; None to derive it from the memory.
        sessions: As in `HostLimits`.
        memory: As in `HostLimits`; None for half of the usable memory.
        usable: Bytes that the process may use; None if the system does not report it.
    """
    memory = (usable or UNKNOWN) // SHARE if memory is None else memory
    if active is None:
        active = min(max(memory // ACTIVE_EACH, FEWEST_ACTIVE), MOST_ACTIVE)
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
