"""Determine how much memory this process may use: the memory of the machine, or the lower limit of its container.

Linux limits groups of processes (cgroups, versions 1 and 2). Groups are nested, and the lowest limit of a group and its
ancestors applies, so all limits from the process's own group to the outermost group are read. In a container, the
process's group may have the path of a nested group, but only the files of the outermost group are visible. Then only
the limits of the outermost group are found.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

# for each cgroup version: where it is mounted, and which files contain a group's memory limits
V2 = "sys/fs/cgroup", ("memory.max", "memory.high")
V1 = "sys/fs/cgroup/memory", ("memory.limit_in_bytes",)

_MEM_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")


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
