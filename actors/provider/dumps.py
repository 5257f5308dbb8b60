"""Dump requests that providers rejected because of their structure, as minimal reproductions, to a hook or a directory.

The runtime uses this module. Minimising a request takes time, and file systems may be slow, so both happen in a thread.
Only one dump is written at a time, so that many simultaneous rejections do not starve the sessions.
"""

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TypeAlias, TypeVar

import anyio
import anyio.to_thread
import msgspec

from actors.core.dialects.dialect import Dialect
from actors.core.lanes.reproduction import RedactedRequest, reproduce
from actors.core.transcript.diagnostics import Refusal
from actors.telemetry import logger
from actors.telemetry.callbacks import create_listener

MAX_FILES = 256
"""Maximum number of files that one runtime writes; more files would not help to find a bug."""
MAX_QUEUED = 64
"""Maximum number of queued rejections."""

T = TypeVar("T")

OnRefusal: TypeAlias = Callable[[RedactedRequest], object] | str | PathLike[str]
"""Where requests that a provider rejected are dumped: a hook, which is called in the event loop until it raises an
error; or a directory for JSON files, which is created if it is missing.
"""


class Dumps:
    """The queue of dumps of a runtime, and their destination.

    Args:
        destination: A hook that is called with each rejected request, or a directory for files.
    """

    def __init__(self, destination: OnRefusal) -> None:
        self._to = destination
        self._listener = create_listener("on_refusal")
        self._thread = anyio.CapacityLimiter(1)
        self._waiting = 0

    def try_reserve(self) -> bool:
        """Reserve a slot in the queue of dumps. Return False if the queue is full, or if the hook has raised an error.

        The runtime counts and logs every rejection, even if it is not dumped.
        """
        if self._waiting >= MAX_QUEUED or self._listener.is_disabled:
            return False
        self._waiting += 1
        return True

    async def dump(self, refusal: Refusal, dialect: Dialect, file_number: int) -> None:
        """Dump a rejection for which a slot was reserved. `file_number` is part of the file name. Errors are logged."""
        try:
            if callable(self._to):
                made = await self._run_in_thread(partial(reproduce, refusal, dialect))
                self._listener.call(partial(self._to, made))
            elif file_number <= MAX_FILES:
                await self._run_in_thread(
                    partial(_write_reproduction, refusal, dialect, self._to, file_number)
                )
        except Exception as error:  # for example, a full disk
            logger.actor_crashed("dump of a refusal", error)
        finally:
            self._waiting -= 1

    async def _run_in_thread(self, function: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(function, limiter=self._thread)


def _write_reproduction(
    refusal: Refusal, dialect: Dialect, directory: str | PathLike[str], file_number: int
) -> None:
    """Write a minimal reproduction of a rejected request to a JSON file in `directory`."""
    from pathlib import Path  # imported lazily, because only a directory needs it

    folder = Path(directory)
    found = reproduce(refusal, dialect)
    told = {name: getattr(found, name) for name in found.__struct_fields__}
    told["request"] = msgspec.Raw(found.request)
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(told), indent=1)
    (folder / f"{refusal.session}-{file_number}.json").write_bytes(text + b"\n")
