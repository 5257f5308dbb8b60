"""Dumps: a request that was refused for its structure is handed on as a minimal reproduction, or written down.

Making it small takes time and a file system may be slow, so both are done in a thread, by a task of the runtime's own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import anyio.to_thread
import msgspec

from actors import telemetry
from actors.core.diagnostics import Refusal
from actors.core.dialect import Dialect
from actors.core.reproduction import Reproduction, reproduction

MOST = 256
"""Files that one runtime writes; more would say the same."""

OnRefusal: TypeAlias = Callable[[Reproduction], object] | str | Path
"""A hook, called in the event loop; or a directory, which is made if it is not there."""


async def dump(refusal: Refusal, dialect: Dialect, to: OnRefusal, number: int) -> None:
    """Hand on the reproduction of a runtime's refusal of this number. What goes wrong is logged."""
    try:
        if callable(to):
            to(await anyio.to_thread.run_sync(reproduction, refusal, dialect))
        elif number <= MOST:
            await anyio.to_thread.run_sync(_written, refusal, dialect, Path(to), number)
    except Exception as error:  # the hook is the host's, and a disk may be full
        telemetry.crashed("dump of a refusal", error)


def _written(refusal: Refusal, dialect: Dialect, folder: Path, number: int) -> None:
    found = reproduction(refusal, dialect)
    told = {name: getattr(found, name) for name in found.__struct_fields__}
    told["request"] = msgspec.Raw(found.request)
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(told), indent=1)
    (folder / f"{refusal.session}-{number}.json").write_bytes(text + b"\n")
