"""A kill and its aftermath, each in a process of its own; and many of them."""

import gc
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import cycle, product
from pathlib import Path
from random import Random
from typing import get_args

import anyio
from msgspec import Struct

from actors.journal.storage import Durability
from tests.commands.killing.aftermath import judged
from tests.commands.killing.host import Work, Workers, forked, host, hosted
from tests.commands.killing.scenarios import SCENARIOS

BACKENDS = ("asyncio", "trio")
DURABILITIES: tuple[Durability, ...] = tuple(
    durability for durability in get_args(Durability) if durability != "memory"
)


def warm(folder: Path) -> None:
    """Do it once in this process, on each backend: what is forked later has imported all, and makes nothing twice."""
    workers = Workers()
    for backend in BACKENDS:
        work = single(folder / backend, backend, "process", "tools", 0)
        work.folder.mkdir()
        (work.folder / "seen").touch()
        with open(os.devnull, "wb") as nobody:
            anyio.run(host, work, workers, nobody.fileno(), backend=backend)
        anyio.run(judged, work.folder, backend=backend)
        shutil.rmtree(work.folder)
    workers.close()
    gc.collect()
    gc.freeze()


class Killed(Struct, frozen=True):
    """What came of one kill.

    Args:
        status: How the process ended.
        found: How the calls of its sessions stand at last.
        broken: The promise that does not hold, if one does not.
    """

    work: Work
    status: int = 0
    found: Counter[str] = Counter()
    broken: str = ""


def killed(work: Work) -> Killed:
    """Let a process work until it dies, and another go on with what it left."""
    status, said, workers = 0, list[bytes](), Workers()

    def judge(pipe: int) -> None:
        found = anyio.run(judged, work.folder, backend=work.backend)
        os.write(pipe, json.dumps(found).encode() + b"\n")

    def heard(told: bytes) -> bool:
        said.append(told)
        return False

    try:
        status = hosted(work, workers)
        assert forked(judge, heard) == 0
        return Killed(work, status, Counter(json.loads(said[-1])))
    except AssertionError as error:
        return Killed(work, status, broken=f"{work}\n{error}\n")
    finally:
        workers.close()
        shutil.rmtree(work.folder)


def single(folder: Path, backend: str, durability: Durability, scenario: str, crossing: int) -> Work:
    """Return the work of one session, which has forked a worker at every other crossing."""
    return Work(folder, backend, durability, {"killed": scenario}, crossing, forks=bool(crossing % 2))


def at_crossings(
    folder: Path, backend: str, durability: Durability, scenario: str, crossings: Iterable[int]
) -> Iterator[Killed]:
    """Kill a process at each of these crossings, until one is behind its last; then it has done all of it."""
    for crossing in crossings:
        came_of = killed(single(folder, backend, durability, scenario, crossing))
        yield came_of
        if not came_of.status:
            return


def under_load(folder: Path, sessions: int, most: int, seed: int) -> Killed:
    """Kill a process of many sessions, of all scenarios, at a random moment."""
    random = Random(seed)
    backend, durability = random.choice([*product(BACKENDS, DURABILITIES)])
    scenarios = dict(zip((f"s{number}" for number in range(sessions)), cycle(SCENARIOS), strict=False))
    events, forks = random.randrange(1, most), random.random() < 0.5
    return killed(Work(folder, backend, durability, scenarios, events=events, forks=forks))
