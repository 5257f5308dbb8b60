"""What a storage makes of a state: the logs that were told, or with what was under way; never anything else."""

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
from tests.commands.powerloss.workload import FILE, Logs, Recording, recorded


def played(durability: Durability, seed: int, states: int) -> Counter[str]:
    """Let a storage keep logs once, and lose the power so many times."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        kept, found = Path(folder, "kept"), Path(folder, "found")
        kept.mkdir()
        found.mkdir()
        return counted(recorded(kept, durability, seed, 300), durability, found, states, seed)


def counted(
    recording: Recording, durability: Durability, folder: Path, states: int, seed: int
) -> Counter[str]:
    """Lose the power so many times, start again each time, and count how that came out: whole, lost or corrupt."""
    random = Random(seed)
    syncs = [at for at, step in enumerate(recording.steps) if step.kind == "sync"]
    anywhere = range(len(recording.steps) + 1)
    places = sorted(random.choice(random.choice((anywhere, syncs))) for _ in range(states))
    told, before = [each.logs for each in recording.told], 0
    found = Counter[str]()
    for place, files in _states(recording, places, random):
        while before + 1 < len(told) and recording.told[before + 1].steps <= place:
            before += 1
        found[_judged(_logs(files, folder, durability), told, before)] += 1
    return found


def _states(
    recording: Recording, places: list[int], random: Random
) -> Iterator[tuple[int, Mapping[str, bytes]]]:
    """Yield what may be on the disk at each of these places, with the place."""
    disk, steps, taken = Disk(), recording.steps, 0
    for place in places:
        for step in steps[taken:place]:
            disk.take(step)
        taken = place
        yield place, disk.lost(random)


def _judged(found: Logs | None, told: list[Logs], before: int) -> str:
    if found is not None and found in told[before : before + 2]:
        return "whole"
    return "lost" if found in told[:before] else "corrupt"


def _logs(files: Mapping[str, bytes], folder: Path, durability: Durability) -> Logs | None:
    """Return the logs that a storage finds in these files; None if it refuses them."""
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
