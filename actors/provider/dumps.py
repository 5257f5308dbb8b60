"""Dumps: a request that was refused for its structure is handed on as a minimal reproduction, or written down.

Making it small takes time and a file system may be slow, so both are done in a thread, by a task of the runtime's own:
one after the other, so that many refusals at once do not take the machine from the sessions.
"""

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TypeAlias, TypeVar

import anyio
import anyio.to_thread
import msgspec

from actors import telemetry
from actors.core.dialects.dialect import Dialect
from actors.core.lanes.reproduction import RedactedRequest, reproduce
from actors.core.transcript.diagnostics import Refusal

MOST = 256
"""Files that one runtime writes; more would say the same."""
WAITING = 64
"""Refusals that wait to be handed on."""

T = TypeVar("T")

OnRefusal: TypeAlias = Callable[[RedactedRequest], object] | str | PathLike[str]
"""A hook, called in the event loop until it raises; or a directory, which is made if it is not there."""


class Dumps:
    """Hands on what a runtime was refused.

    Args:
        to: The hook, or the directory.
    """

    def __init__(self, to: OnRefusal) -> None:
        self._to = to
        self._listener = telemetry.listener("on_refusal")
        self._thread = anyio.CapacityLimiter(1)
        self._waiting = 0

    def take(self) -> bool:
        """Say whether one more is handed on: not while `WAITING` wait, nor once the hook has raised.

        The runtime counts and logs it all the same.
        """
        if self._waiting >= WAITING or self._listener.is_off:
            return False
        self._waiting += 1
        return True

    async def dump(self, refusal: Refusal, dialect: Dialect, number: int) -> None:
        """Hand on the refusal of this number, which was taken. What goes wrong is logged."""
        try:
            if callable(self._to):
                made = await self._in_thread(partial(reproduce, refusal, dialect))
                self._listener.call(partial(self._to, made))
            elif number <= MOST:
                await self._in_thread(partial(_written, refusal, dialect, self._to, number))
        except Exception as error:  # a disk may be full
            telemetry.crashed("dump of a refusal", error)
        finally:
            self._waiting -= 1

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._thread)


def _written(refusal: Refusal, dialect: Dialect, to: str | PathLike[str], number: int) -> None:
    from pathlib import Path  # only where something is written down

    folder = Path(to)
    found = reproduce(refusal, dialect)
    told = {name: getattr(found, name) for name in found.__struct_fields__}
    told["request"] = msgspec.Raw(found.request)
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(told), indent=1)
    (folder / f"{refusal.session}-{number}.json").write_bytes(text + b"\n")
