"""Run a single ask from a program without an event loop."""

from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from actors.core.settings.asking import AskSettings
from actors.core.stream_events.results import AskResult
from actors.core.turn.batch import Approve
from actors.kernel.loop_thread import LoopThread
from actors.runtime import once
from actors.session.user_input import UserInput
from actors.tools.toolsets import ToolItem

if TYPE_CHECKING:
    from actors.config import Config

T = TypeVar("T")


@overload
def run(
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
def run(
    target: str,
    message: UserInput,
    *,
    output: Any = None,  # Any: a type or a JSON Schema
    tools: Iterable[ToolItem] = (),
    system: str | None = None,
    approve: Approve | None = None,
    deps: object = None,
    check: bool = True,
    config: "str | PathLike[str] | Config | None" = None,
    environ: Mapping[str, str] | None = None,
    **settings: Unpack[AskSettings],
) -> AskResult: ...


def run(
    target: str,
    message: UserInput,
    *,
    output: Any = None,  # Any: a type or a JSON Schema
    tools: Iterable[ToolItem] = (),
    system: str | None = None,
    approve: Approve | None = None,
    deps: object = None,
    check: bool = True,
    config: "str | PathLike[str] | Config | None" = None,
    environ: Mapping[str, str] | None = None,
    **settings: Unpack[AskSettings],
) -> AskResult:
    """Send one message in a new session, wait, and return the result. See `actors.run`."""

    async def ask() -> AskResult:
        return await once.run(
            target,
            message,
            output=output,
            tools=tools,
            system=system,
            approve=approve,
            deps=deps,
            check=check,
            config=config,
            environ=environ,
            **settings,
        )

    with closing(LoopThread(nullcontext(), name="loop")) as loop:
        return loop.call(ask)
