"""One kill and its aftermath, each in a separate process; and series of them."""

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
from tests.commands.killing.aftermath import continue_and_judge
from tests.commands.killing.host import Work, Workers, host, run_forked, run_host
from tests.commands.killing.scenarios import SCENARIOS

BACKENDS = ("asyncio", "trio")
DURABILITIES: tuple[Durability, ...] = tuple(
    durability for durability in get_args(Durability) if durability != "memory"
)


def warm_up(folder: Path) -> None:
    """Run a scenario in this process on each backend, so that forked processes need no further imports."""
    workers = Workers()
    for backend in BACKENDS:
        work = one_session(folder / backend, backend, "process", "tools", 0)
        work.folder.mkdir()
        (work.folder / "seen").touch()
        with open(os.devnull, "wb") as nobody:
            anyio.run(host, work, workers, nobody.fileno(), backend=backend)
        anyio.run(continue_and_judge, work.folder, backend=backend)
        shutil.rmtree(work.folder)
    workers.close()
    gc.collect()
    gc.freeze()


class Killed(Struct, frozen=True):
    """The result of one kill.

    Args:
        status: The exit status of the process.
        found: The final states of the calls of its sessions.
        broken: The broken promise, if any.
    """

    work: Work
    status: int = 0
    found: Counter[str] = Counter()
    broken: str = ""


def kill_and_continue(work: Work) -> Killed:
    """Run a process until it dies, and continue its work in another."""
    status, said, workers = 0, list[bytes](), Workers()

    def judge(pipe: int) -> None:
        found = anyio.run(continue_and_judge, work.folder, backend=work.backend)
        os.write(pipe, json.dumps(found).encode() + b"\n")

    def hear(told: bytes) -> bool:
        said.append(told)
        return False

    try:
        status = run_host(work, workers)
        assert run_forked(judge, hear) == 0
        return Killed(work, status, Counter(json.loads(said[-1])))
    except AssertionError as error:
        return Killed(work, status, broken=f"{work}\n{error}\n")
    finally:
        workers.close()
        shutil.rmtree(work.folder)


def one_session(folder: Path, backend: str, durability: Durability, scenario: str, crossing: int) -> Work:
    """Return the work of one session, which has forked a worker at every other crossing."""
    return Work(folder, backend, durability, {"killed": scenario}, crossing, forks=bool(crossing % 2))


def at_crossings(
    folder: Path, backend: str, durability: Durability, scenario: str, crossings: Iterable[int]
) -> Iterator[Killed]:
    """Kill a process at each of these crossings, until one lies after its last, so that the process completes."""
    for crossing in crossings:
        came_of = kill_and_continue(one_session(folder, backend, durability, scenario, crossing))
        yield came_of
        if not came_of.status:
            return


def under_load(folder: Path, sessions: int, most: int, seed: int) -> Killed:
    """Kill a process with many sessions of all scenarios at a random moment."""
    random = Random(seed)
    backend, durability = random.choice([*product(BACKENDS, DURABILITIES)])
    scenarios = dict(zip((f"s{number}" for number in range(sessions)), cycle(SCENARIOS), strict=False))
    events, forks = random.randrange(1, most), random.random() < 0.5
    return kill_and_continue(Work(folder, backend, durability, scenarios, events=events, forks=forks))
