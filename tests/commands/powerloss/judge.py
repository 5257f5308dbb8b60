"""Judge a storage after a power loss: its logs must be the acknowledged ones, with or without the pending change."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from actors.core.log.events import LogEvent
from actors.errors import JournalError
from actors.journal.storage import Durability
from actors.journal.storage.sqlite import SqliteStorage
from tests.commands.powerloss.disk import Disk
from tests.commands.powerloss.workload import FILE, Logs, Recording, record


def run_workload_and_judge(durability: Durability, seed: int, states: int) -> Counter[str]:
    """Run a workload once, and simulate this many power losses."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        kept, found = Path(folder, "kept"), Path(folder, "found")
        kept.mkdir()
        found.mkdir()
        return count_outcomes(record(kept, durability, seed, 300), durability, found, states, seed)


def count_outcomes(
    recording: Recording, durability: Durability, folder: Path, states: int, seed: int
) -> Counter[str]:
    """Simulate this many power losses, reopen after each, and count the outcomes: whole, lost or corrupt."""
    random = Random(seed)
    syncs = [at for at, step in enumerate(recording.steps) if step.kind == "sync"]
    anywhere = range(len(recording.steps) + 1)
    places = sorted(random.choice(random.choice((anywhere, syncs))) for _ in range(states))
    told, before = [each.logs for each in recording.told], 0
    found = Counter[str]()
    for place, files in _states(recording, places, random):
        while before + 1 < len(told) and recording.told[before + 1].steps <= place:
            before += 1
        found[_outcome(_logs(files, folder, durability), told, before)] += 1
    return found


def _states(
    recording: Recording, places: list[int], random: Random
) -> Iterator[tuple[int, Mapping[str, bytes]]]:
    """Yield possible contents of the disk at each of these steps, with the step."""
    disk, steps, taken = Disk(), recording.steps, 0
    for place in places:
        for step in steps[taken:place]:
            disk.take(step)
        taken = place
        yield place, disk.after_power_loss(random)


def _outcome(found: Logs | None, told: list[Logs], before: int) -> str:
    if found is not None and found in told[before : before + 2]:
        return "whole"
    return "lost" if found in told[:before] else "corrupt"


def _logs(files: Mapping[str, bytes], folder: Path, durability: Durability) -> Logs | None:
    """Return the logs that a storage reads from these files; None if it rejects them."""
    for file in folder.iterdir():
        file.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        with closing(SqliteStorage(folder / FILE, durability=durability)) as storage:
            names = [stored.id for stored in storage.sessions()]
            logs: dict[str, tuple[LogEvent, ...]] = {name: tuple(storage.read(name)) for name in names}
            storage.claim("another")
            return logs
    except JournalError:
        return None
