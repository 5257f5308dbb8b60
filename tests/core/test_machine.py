"""Check how the memory limit of the process is read from Linux files."""

from pathlib import Path

import pytest

from actors.runtime.machine import usable_memory
from actors.runtime.residency import HostLimits, host_limits
from tests.naming import case

GIB = 1024 * 1024 * 1024
MACHINE = "MemFree:  100 kB\nMemTotal:       8388608 kB\nMemAvailable: 100 kB\n"
NO_LIMIT_OF_V1 = "9223372036854771712\n"

MACHINES: dict[str, tuple[dict[str, str], int]] = {
    "no container": ({"proc/self/cgroup": "0::/\n"}, 8 * GIB),
    "version 2, which the container sees as the outermost": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{2 * GIB}\n"},
        2 * GIB,
    ),
    "version 2, by its whole path": (
        {
            "proc/self/cgroup": "0::/kubepods/pod1/box\n",
            "sys/fs/cgroup/kubepods/pod1/box/memory.max": "max\n",
            "sys/fs/cgroup/kubepods/pod1/memory.max": f"{GIB}\n",
            "sys/fs/cgroup/kubepods/memory.max": f"{4 * GIB}\n",
        },
        GIB,
    ),
    "version 2, slowed down before its limit": (
        {
            "proc/self/cgroup": "0::/box\n",
            "sys/fs/cgroup/box/memory.max": f"{2 * GIB}\n",
            "sys/fs/cgroup/box/memory.high": f"{GIB}\n",
        },
        GIB,
    ),
    "version 1": (
        {
            "proc/self/cgroup": "9:name=systemd:/x\n4:cpu,memory:/docker/box\n0::/\n",
            "sys/fs/cgroup/memory/docker/box/memory.limit_in_bytes": f"{3 * GIB}\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_OF_V1,
        },
        3 * GIB,
    ),
    "version 1, whose path is that outside of the container": (
        {
            "proc/self/cgroup": "4:memory:/docker/box\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
        },
        GIB,
    ),
    "a limit beyond the machine": (
        {"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_OF_V1},
        8 * GIB,
    ),
    "files that say nothing": (
        {"proc/self/cgroup": "\n0\n::\nmemory\n", "sys/fs/cgroup/memory.max": "\xe9\n"},
        8 * GIB,
    ),
}


def test_available_memory_is_the_smallest_limit_of_machine_and_containers(
    tmp_path: Path,
) -> None:
    for number, (name, (files, usable)) in enumerate(MACHINES.items()):
        root = tmp_path / str(number)
        for file, text in {"proc/meminfo": MACHINE, **files}.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(text.encode("latin-1"))
        with case(name):
            assert usable_memory(root) == usable


def test_without_memory_files_the_size_reported_by_the_system_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": GIB // 4096}.__getitem__, raising=False
    )
    assert usable_memory(tmp_path) == GIB
    monkeypatch.delattr("os.sysconf")
    assert usable_memory(tmp_path) is None


def test_default_limits_fit_the_memory() -> None:
    assert host_limits(None, 10, None, 8 * GIB) == HostLimits(1024, 10, 4 * GIB)
    assert host_limits(None, 10, None, GIB // 8) == HostLimits(64, 10, GIB // 16)
    assert host_limits(None, 10, None, 1024 * GIB) == HostLimits(4096, 10, 512 * GIB)
    assert host_limits(None, 10, None, None) == HostLimits(1024, 10, 4 * GIB)
    assert host_limits(7, 10, GIB, 8 * GIB) == HostLimits(7, 10, GIB)
    assert host_limits(None, 10, GIB, 8 * GIB) == HostLimits(256, 10, GIB)
