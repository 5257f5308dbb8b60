"""Describe the machine of a run and its load. A report contains both, because figures depend on them."""

import hashlib
import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct


class Machine(Struct, frozen=True):
    """The properties of a machine on which figures depend.

    Args:
        name: Digest of the machine id, which distinguishes machines without naming them.
        processor: Model name of the processor.
        cores: Number of cores that this process may use.
        memory_gib: Memory of the machine in GiB; 0 if unknown.
        system: Operating system and release.
        python: Implementation and version.
    """

    name: str
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str

    def __str__(self) -> str:
        memory = f"{self.memory_gib:g} GiB" if self.memory_gib else "memory unknown"
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return f"{self.processor}, {cores}, {memory}, {self.system}, {self.python}"

    def is_same_as(self, other: "Machine") -> bool:
        """Return True if the hardware is the same. The system and Python may differ."""
        return (self.name, self.processor, self.cores) == (other.name, other.processor, other.cores)


class MachineLoad(Struct, frozen=True):
    """The load of a machine before and during a run.

    Args:
        average: Load average of the minute before the run; None if unknown.
        others: Mean number of cores that other processes used during the run; None if unknown.
    """

    average: float | None
    others: float | None = None


def this_machine() -> Machine:
    """Return a description of the machine that runs this process."""
    return Machine(
        name=hashlib.blake2b(_machine_id().encode(), digest_size=6).hexdigest(),
        processor=_processor_name(),
        cores=_available_cores(),
        memory_gib=_memory_gib(),
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
    )


def load_average() -> float | None:
    """Return the load average of the last minute; None if the system does not provide it."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


class LoadMeter:
    """A meter of the CPU time that other processes use between its construction and the call of `load`."""

    def __init__(self) -> None:
        self._average = load_average()
        self._began, self._busy, self._own = time.monotonic(), _busy_seconds(), _own_seconds()

    def load(self) -> MachineLoad:
        """Return the load average before the run, and the mean number of cores that other processes used since."""
        busy, passed = _busy_seconds(), time.monotonic() - self._began
        if busy is None or self._busy is None or not passed:
            return MachineLoad(self._average)
        others = busy - self._busy - (_own_seconds() - self._own)
        return MachineLoad(self._average, max(others / passed, 0.0))


def _busy_seconds() -> float | None:
    """Return the CPU seconds that all processes used since boot; None if the system does not provide them."""
    with suppress(OSError, ValueError, IndexError):
        _, *ticks = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
        user, nice, system = map(int, ticks[:3])
        return (user + nice + system) / os.sysconf("SC_CLK_TCK")
    return None


def _own_seconds() -> float:
    """Return the CPU seconds of this process and its ended children."""
    return sum(os.times()[:4])


def _machine_id() -> str:
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(OSError):
            return Path(path).read_text(encoding="ascii").strip()
    return platform.node()


def _processor_name() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _available_cores() -> int:
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1


def _memory_gib() -> float:
    with suppress(AttributeError, OSError, ValueError):
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    return 0.0
