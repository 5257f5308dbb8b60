"""Ask one question: `run` enters a runtime for a single ask, and leaves it with the answer.

`actors.sync.run` does the same for programs without an event loop.
"""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from actors.core.settings.asking import AskSettings
from actors.core.stream_events.results import AskResult
from actors.core.turn.batch import Approve
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.runtime import Runtime
from actors.session.user_input import UserInput
from actors.tools.toolsets import ToolItem

if TYPE_CHECKING:
    from actors.config import Config

T = TypeVar("T")


@overload
async def run(
    target: str,
    message: UserInput,
    *,
    output: type[T],
    tools: Iterable[ToolItem] = (),
    system: str | None = None,
    approve: Approve | None = None,
    deps: object = None,
    check: bool = True,
    config: "str | PathLike[str] | Config | None" = None,
    environ: Mapping[str, str] | None = None,
    **settings: Unpack[AskSettings],
) -> AskResult[T]: ...


@overload
async def run(
    target: str,
    message: UserInput,
    *,
    output: Any = None,  # Any: a type or JSON
    tools: Iterable[ToolItem] = (),
    system: str | None = None,
    approve: Approve | None = None,
    deps: object = None,
    check: bool = True,
    config: "str | PathLike[str] | Config | None" = None,
    environ: Mapping[str, str] | None = None,
    **settings: Unpack[AskSettings],
) -> AskResult: ...


async def run(
    target: str,
    message: UserInput,
    *,
    output: Any = None,  # Any: as above
    tools: Iterable[ToolItem] = (),
    system: str | None = None,
    approve: Approve | None = None,
    deps: object = None,
    check: bool = True,
    config: "str | PathLike[str] | Config | None" = None,
    environ: Mapping[str, str] | None = None,
    **settings: Unpack[AskSettings],
) -> AskResult:
    """Ask one question and return the result. Nothing of it is kept.

    Each call enters and leaves a `Runtime` of its own, so connections, learned facts and budgets are not shared: a
    program that asks more than once is faster and cheaper with one `Runtime`.

    Args:
        target: As for `Runtime.open`, and so are `tools`, `system`, `approve` and `deps`.
        message: As for `Session.ask`, and so are `output`, `check` and `settings`.
        config: As for `Runtime`, and so is `environ`. Its `[journal]` does not count: the log is in memory.

    Raises what `Runtime`, `Runtime.open` and `Session.ask` raise. Cancelling the caller cancels the ask and closes its
    calls. Nobody can pass results or decisions later: an ask that waits for them ends with the status `awaiting`.
    """
    async with Runtime(config, environ=environ, journal=MemoryStorage()) as runtime:
        session = await runtime.open(target, tools=tools, system=system, approve=approve, deps=deps)
        return await session.ask(message, output=output, check=check, **settings)
