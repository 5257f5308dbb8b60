"""Determine the limits of a runtime and its turns. By default, they depend on how much memory the process may use.

A process may use the memory of the machine, or less if its container has a limit. Linux limits groups of processes
(cgroups, versions 1 and 2). Groups are nested, and the lowest limit of a group and its ancestors applies, so all limits
from the process's own group to the outermost group are read. In a container, the process's group may have the path of a
nested group, but only the files of the outermost group are visible. Then only the limits of the outermost group are
found.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct

from actors.core.turn.bounds import Bounds

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
# for each cgroup version: where it is mounted, and which files contain a group's memory limits
V2 = "sys/fs/cgroup", ("memory.max", "memory.high")
V1 = "sys/fs/cgroup/memory", ("memory.limit_in_bytes",)
_MEM_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")


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


def usable_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that this process may use; None if the system does not report them.

    Args:
        root: The directory that contains `proc` and `sys`; tests pass a different one.
    """
    return min((*_installed_memory(root), *_group_limits(root)), default=None)


def _installed_memory(root: Path) -> Iterator[int]:
    """Yield the size of the machine's memory in bytes, if it is known."""
    for line in _read_lines(root / "proc/meminfo"):
        if found := _MEM_TOTAL.fullmatch(line):
            yield int(found[1]) * 1024
            return
    with suppress(AttributeError, ValueError, OSError):  # systems without /proc may have sysconf
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the memory limits, in bytes, of the groups to which this process belongs."""
    for line in _read_lines(root / "proc/self/cgroup"):
        controllers, _, path = line.partition(":")[2].partition(":")
        if not controllers:
            yield from _group_and_ancestor_limits(root, *V2, path)
        elif "memory" in controllers.split(","):
            yield from _group_and_ancestor_limits(root, *V1, path)


def _group_and_ancestor_limits(root: Path, mount: str, names: tuple[str, ...], path: str) -> Iterator[int]:
    """Yield the memory limits of a group and its ancestors, in bytes.

    A group without a limit reports `max` or a huge number.
    """
    group = PurePosixPath(path.strip("/"))
    for each in (group, *group.parents):
        for name in names:
            for line in _read_lines(root / mount / each / name):
                if line.isdecimal():
                    yield int(line)


def _read_lines(file: Path) -> list[str]:
    """Return the lines of a file, or an empty list if it cannot be read."""
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []
