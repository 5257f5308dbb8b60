"""Host a runtime on an event loop in a thread of its own, for several sessions or for a single ask."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import closing, nullcontext
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, get_args, overload

from actors.core.settings.asking import AskSettings
from actors.core.stats.stats import RuntimeStats
from actors.core.stream_events.ask_events import AskResult
from actors.core.turn.batch import Approve
from actors.errors import ConfigError
from actors.kernel.loop_thread import Backend, LoopThread
from actors.runtime import once
from actors.runtime.handles import SessionOpening
from actors.runtime.runtime import Runtime
from actors.session.user_input import UserInput
from actors.sync.calls import BlockingCalls, copy_documentation
from actors.sync.session import BlockingSession
from actors.tools.toolsets import ToolItem

if TYPE_CHECKING:
    from actors.config import Config

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _blocking_opener(
    method: Callable[Concatenate[Runtime, P], SessionOpening],
) -> Callable[[Callable[..., None]], Callable[Concatenate["BlockingRuntime", P], BlockingSession]]:
    """Return a decorator that replaces a method of `BlockingRuntime` with a blocking call that opens a session."""

    def call(self: "BlockingRuntime", /, *args: P.args, **kwargs: P.kwargs) -> BlockingSession:
        session = self._calls.wait(partial(method, self._runtime, *args, **kwargs))
        return BlockingSession(self._calls, session, is_held=True)

    copy_documentation(call, "Runtime", method, "BlockingSession")
    return lambda _: call


class BlockingRuntime:
    """An `actors.Runtime` with its own thread and event loop, which run from the call of this class until `close`.

    A `with` block closes the runtime on exit. The runtime is also closed when the main thread ends, and when the
    program has no reference to the runtime or its sessions any more. Calls that still run half a second after the
    close are cancelled, and raise `KernelError`.

    Args:
        runtime: An `actors.Runtime` that has not been entered, or the `config` argument of a new one.
        backend: The library of the event loop.

    Raises the errors of creating and entering an `actors.Runtime`, and `KernelError` if the main thread has ended.

    Every call raises `KernelError` once the runtime is closed. A call on the runtime's own event loop (in an async
    tool) would wait for itself, so it raises `WrongEventLoop`. A call in a forked process also raises
    `WrongEventLoop`, because the thread does not exist there.
    """

    def __init__(self, runtime: Any = None, *, backend: Backend = "asyncio") -> None:
        if backend not in get_args(Backend):
            raise ConfigError(f"backend= takes 'asyncio' or 'trio', not {backend!r:.40}")
        self._runtime = runtime if isinstance(runtime, Runtime) else Runtime(runtime)
        self._loop = LoopThread(self._runtime, backend)
        self._calls = BlockingCalls(self._loop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @_blocking_opener(Runtime.open)
    def open(self) -> None: ...

    @_blocking_opener(Runtime.resume)
    def resume(self) -> None: ...

    @_blocking_opener(Runtime.claim)
    def claim(self) -> None: ...

    def session(self, id: str) -> BlockingSession:  # noqa: A002  callers expect the name `id`
        """Return an open session by its id. See `actors.Runtime.session`.

        A `with` block with this session does not release the session, because another caller has opened the session.
        """
        session = self._calls.wait_plain(partial(self._runtime.session, id))
        return BlockingSession(self._calls, session, is_held=False)

    def stats(self) -> RuntimeStats:
        """Return the runtime's counters and gauges. See `actors.Runtime.stats`."""
        return self._calls.wait_plain(self._runtime.stats)

    def call(self, function: Callable[[Runtime], Coroutine[Any, Any, R]]) -> R:
        """Run an async function with the runtime as its argument, on the runtime's event loop, and return the result.

        Use it for operations without a method here: `runtime.call(lambda hosted: hosted.journal.delete("one"))`. If the
        caller is interrupted, the function is cancelled.
        """
        return self._calls.wait(partial(function, self._runtime))

    def close(self) -> None:
        """Cancel the asks in flight, close the runtime as at the end of its `async with` block, and stop the thread."""
        self._loop.close()


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
