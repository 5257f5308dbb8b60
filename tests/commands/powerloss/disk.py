"""A disk that may lose its power: all that was synced stays, and of the rest any part, in any order."""

from collections.abc import Mapping
from random import Random

from tests.commands.powerloss.layer import Step

SECTOR = 512
"""Bytes that are written whole or not at all."""


class Disk:
    """What is on it for certain, and what was written since, file by file."""

    def __init__(self) -> None:
        self._synced = dict[str, bytearray]()
        self._pending = dict[str, list[Step]]()

    def take(self, step: Step) -> None:
        """Do what was asked of the file layer next."""
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
        """Let every file that was deleted be gone."""
        for name, pending in self._pending.items():
            deleted = max((at for at, step in enumerate(pending) if step.kind == "delete"), default=-1)
            if deleted >= 0:
                self._synced.pop(name, None)
                del pending[: deleted + 1]

    def lost(self, random: Random) -> Mapping[str, bytes]:
        """Return the files as they may be if the power is lost now."""
        kept = random.choice((0.0, 0.3, 0.7, 0.95, 0.99, 1.0))
        files = {name: bytearray(data) for name, data in self._synced.items()}
        for pending in self._pending.values():
            for step in pending:
                if not _do(step, files, random, kept):
                    break
        return {name: bytes(data) for name, data in files.items()}


def _do(step: Step, files: dict[str, bytearray], random: Random | None, kept: float) -> bool:
    """Do a step, or as much of it as is kept; say whether the file's name still stands for what comes next."""
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
    """Write as much of it as is kept, by sectors."""
    start, stop = step.at, step.at + len(step.data)
    while start < stop:
        end = stop if random is None else min((start // SECTOR + 1) * SECTOR, stop)
        if random is None or random.random() < kept:
            data = files.setdefault(step.file, bytearray())
            data.extend(bytes(max(0, end - len(data))))
            data[start:end] = step.data[start - step.at : end - step.at]
        start = end
