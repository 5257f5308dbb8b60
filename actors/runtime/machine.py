"""How much memory this process may use: the machine's, or less where its container is given less.

Linux limits groups of processes (cgroups, versions 1 and 2). A group inside others has the least that any of them has,
so each limit on the way from the process's own group to the outermost counts. A container may see itself as the
outermost group, whatever path it is told that it has: then only the outermost of these files exist.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

V2 = "sys/fs/cgroup", ("memory.max", "memory.high")
V1 = "sys/fs/cgroup/memory", ("memory.limit_in_bytes",)

_MEM_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")


def usable_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that this process may use; None where the system does not say.

    Args:
        root: Where the system's files are found.
    """
    return min((*_installed_memory(root), *_limits(root)), default=None)


def _installed_memory(root: Path) -> Iterator[int]:
    """Yield the size of the machine's memory in bytes, if it is known."""
    for line in _lines(root / "proc/meminfo"):
        if found := _MEM_TOTAL.fullmatch(line):
            yield int(found[1]) * 1024
            return
    with suppress(AttributeError, ValueError, OSError):  # a system that has no such file may have this
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limits(root: Path) -> Iterator[int]:
    """Give the limits of the groups that this process is in."""
    for line in _lines(root / "proc/self/cgroup"):
        controllers, _, path = line.partition(":")[2].partition(":")
        if not controllers:
            yield from _limits_above(root, *V2, path)
        elif "memory" in controllers.split(","):
            yield from _limits_above(root, *V1, path)


def _limits_above(root: Path, mount: str, names: tuple[str, ...], path: str) -> Iterator[int]:
    """Give the limits of a group and of those around it. A group without one says `max`, or a number beyond reach."""
    group = PurePosixPath(path.strip("/"))
    for each in (group, *group.parents):
        for name in names:
            for line in _lines(root / mount / each / name):
                if line.isdecimal():
                    yield int(line)


def _lines(file: Path) -> list[str]:
    """Return the lines of a file; none if it cannot be read."""
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return []
