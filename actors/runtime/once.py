"""Run a single ask in a separate runtime.

`actors.sync.run` does the same for programs without an event loop.
"""

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from actors.core.settings.asking import AskSettings
from actors.core.stream_events.ask_events import AskResult
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
    output: Any = None,  # Any: any type, or a JSON Schema
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
    output: Any = None,  # Any: any type, or a JSON Schema
    tools: Iterable[ToolItem] = (),
    system: str | None = None,
    approve: Approve | None = None,
    deps: object = None,
    check: bool = True,
    config: "str | PathLike[str] | Config | None" = None,
    environ: Mapping[str, str] | None = None,
    **settings: Unpack[AskSettings],
) -> AskResult:
    """Send one message in a new session, and return the result. The session ends with the call.

    Each call enters and exits its own `Runtime`, so connections, learned facts and budgets are not shared between
    calls. For several asks, a single `Runtime` is faster and cheaper.

    Args:
        target, tools, system, approve, deps: As for `Runtime.open`.
        message, output, check, settings: As for `Session.ask`.
        config, environ: As for `Runtime`, but `[journal]` is ignored: the log is in memory.

    Raises the same errors as `Runtime`, `Runtime.open` and `Session.ask`. Cancelling the caller cancels the ask and
    closes its calls. Results of external calls and approval decisions cannot be passed later, so an ask that needs
    them ends with the status `awaiting`.
    """
    async with Runtime(config, environ=environ, journal=MemoryStorage()) as runtime:
        session = await runtime.open(target, tools=tools, system=system, approve=approve, deps=deps)
        return await session.ask(message, output=output, check=check, **settings)
