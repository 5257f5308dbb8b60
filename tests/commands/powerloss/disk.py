"""A disk that may lose power: synced data stays, and any part of the rest may be lost, in any order."""

from collections.abc import Mapping
from random import Random

from tests.commands.powerloss.layer import Step

SECTOR = 512
"""The bytes that are written atomically."""


class Disk:
    """The durable content of each file, and the writes since then."""

    def __init__(self) -> None:
        self._synced = dict[str, bytearray]()
        self._pending = dict[str, list[Step]]()

    def take(self, step: Step) -> None:
        """Perform the next request to the file layer."""
        if step.kind == "sync_folder":
            self._sync_folder()
            return
        pending = self._pending.setdefault(step.file, [])
        if step.kind != "sync":
            pending.append(step)
            return
        for each in pending:
            _do(each, self._synced, None, 1.0)
        self._synced.setdefault(step.file, bytearray())
        pending.clear()

    def _sync_folder(self) -> None:
        """Make the deletions of files durable."""
        for name, pending in self._pending.items():
            deleted = max((at for at, step in enumerate(pending) if step.kind == "delete"), default=-1)
            if deleted >= 0:
                self._synced.pop(name, None)
                del pending[: deleted + 1]

    def after_power_loss(self, random: Random) -> Mapping[str, bytes]:
        """Return a possible state of the files after a power loss now."""
        kept = random.choice((0.0, 0.3, 0.7, 0.95, 0.99, 1.0))
        files = {name: bytearray(data) for name, data in self._synced.items()}
        for pending in self._pending.values():
            for step in pending:
                if not _do(step, files, random, kept):
                    break
        return {name: bytes(data) for name, data in files.items()}


def _do(step: Step, files: dict[str, bytearray], random: Random | None, kept: float) -> bool:
    """Perform a step, or the kept part of it; return False for a lost deletion, which ends the file's steps."""
    if step.kind == "write":
        _write(files, step, random, kept)
    elif random is not None and random.random() >= kept:
        return step.kind != "delete"
    elif step.kind == "delete":
        files.pop(step.file, None)
    else:
        data = files.setdefault(step.file, bytearray())
        del data[step.at :]
        data.extend(bytes(step.at - len(data)))
    return True


def _write(files: dict[str, bytearray], step: Step, random: Random | None, kept: float) -> None:
    """Write the kept part of a step, by sectors."""
    start, stop = step.at, step.at + len(step.data)
    while start < stop:
        end = stop if random is None else min((start // SECTOR + 1) * SECTOR, stop)
        if random is None or random.random() < kept:
            data = files.setdefault(step.file, bytearray())
            data.extend(bytes(max(0, end - len(data))))
            data[start:end] = step.data[start - step.at : end - step.at]
        start = end
