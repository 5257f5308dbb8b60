"""How much a runtime hosts, and how long turns may go on. What is left open fits the memory there is."""

from typing import TYPE_CHECKING

from msgspec import Struct

from actors.core.turn.bounds import Bounds

if TYPE_CHECKING:
    from actors.config.settings import RuntimeLimits

SHARE = 2
"""Sessions may hold one byte of so many that the process may use. The rest is for connections, tools and Python."""
ACTIVE_EACH = 4 * 1024 * 1024
"""Bytes of the limit for which one more session with nothing to do keeps its actors."""
FEWEST_ACTIVE, MOST_ACTIVE = 64, 4096
"""Its bounds: making actors takes a fifteenth of a turn, and each of them has to be ended when a runtime is left."""
UNKNOWN = 8 * 1024 * 1024 * 1024
"""What a process may use where the system does not say."""


class HostLimits(Struct, frozen=True):
    """How many sessions a runtime hosts.

    Args:
        active: Of those with nothing to do, how many keep their actors.
        sessions: How many are open.
        memory: Bytes that they hold, all together.
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
        active: As in `HostLimits`; None for as many as suit the memory.
        sessions: As in `HostLimits`.
        memory: As in `HostLimits`; None for a half of what the process may use.
        usable: Bytes that the process may use; None if the system does not say.
    """
    memory = (usable or UNKNOWN) // SHARE if memory is None else memory
    if active is None:
        active = min(max(memory // ACTIVE_EACH, FEWEST_ACTIVE), MOST_ACTIVE)
    return HostLimits(active, sessions, memory)


def turn_bounds(limits: "RuntimeLimits") -> Bounds:
    """Return the bounds that the turns of a runtime have unless their sessions or asks say otherwise."""
    return Bounds(
        limits.max_rounds,
        limits.max_corrections,
        max_tool_corrections=limits.max_tool_corrections,
        on_repeat=limits.on_repeat,
        repair=limits.repair,
    )
