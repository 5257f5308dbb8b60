"""The API of `actors` for programs without an event loop: scripts, notebooks and plain threads.

    from actors import sync

    with sync.BlockingRuntime("actors.toml") as runtime:
        session = runtime.open("main", tools=[weather])
        for text in session.stream_text("Weather in Oslo?"):
            print(text, end="")

A `BlockingRuntime` starts a thread with an event loop that hosts an `actors.Runtime`. Each call runs on that loop, with
the caller's context variables, while the caller waits. Any thread may call, even one with a running event loop of its
own, as in a notebook. An interrupt (Ctrl-C) that reaches the caller of an ask cancels that ask.

A runtime that is still open when the main thread ends is closed then, even if other threads use it. So let the main
thread wait for these threads.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext, suppress
from functools import partial
from inspect import signature
from os import PathLike
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)
from weakref import finalize

from actors.core.settings.asking import AskSettings
from actors.core.settings.labels import Scalar
from actors.core.stats.stats import RuntimeStats
from actors.core.stream_events.ask_events import CompleteEvent, ErrorEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.results import Approvals, AskResult, CallResults, PendingCall
from actors.core.turn.batch import Approve
from actors.errors import ActorsError
from actors.kernel.loop_thread import Backend, LoopThread
from actors.runtime import once
from actors.runtime.handle import Session
from actors.runtime.handles import SessionOpening
from actors.runtime.runtime import Runtime
from actors.session.streams import AskStream
from actors.session.user_input import UserInput
from actors.tools.toolsets import ToolItem

if TYPE_CHECKING:
    from actors.config import Config

__all__ = ["BlockingRuntime", "BlockingSession", "Steps", "run"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

INTERRUPT_TIMEOUT = 5.0
"""Seconds that an interrupted caller waits until the calls of its ask are closed."""


Prepare: TypeAlias = Callable[[], tuple[AskStream, Callable[[], Awaitable[None]]]]
"""A function that returns the stream of an ask, and the async function that submits the ask."""


class InterruptibleAsk:
    """An ask on the event loop's thread, which is cancelled if its blocking caller is interrupted.

    Args:
        session: The session of the ask.
        is_shared: Whether the ask has a key, so that other callers may wait for it. Then it is not cancelled.
    """

    def __init__(self, session: Session, *, is_shared: bool = False) -> None:
        self._session, self._is_shared = session, is_shared
        self._stream: AskStream | None = None
        self._is_interrupted = False

    @property
    def has_begun(self) -> bool:
        """True if the ask is in flight or has ended."""
        return self._stream is not None and self._stream.has_begun

    def set_stream(self, stream: AskStream) -> None:
        """Set the ask's stream. The stream reports whether the ask has begun and ended."""
        self._stream = stream

    async def submit(self, prepare: Prepare) -> AskStream:
        """Submit the ask, and return its stream."""
        self._session._check_caller()
        stream, submit = prepare()
        self.set_stream(stream)
        try:
            await submit()
        except BaseException:
            stream.close()
            raise
        return stream

    async def interrupt(self) -> None:
        """Cancel this ask. If the ask is still queued, cancel it as soon as it begins; other asks continue."""
        stream = self._stream
        if stream is not None and not self._is_interrupted and not self._is_shared:
            self._is_interrupted = True
            await stream.wait_begun()
            if not stream.has_ended:
                with suppress(ActorsError):  # the session has ended
                    await self._session.cancel()

    async def outcome(self, prepare: Prepare) -> AskResult:
        """Submit the ask, and return its result when it has ended."""
        return await _final_result(await self.submit(prepare))


async def _final_result(events: AsyncIterator[SessionEvent]) -> AskResult:
    """Read all events of an ask, and return the result in the last event."""
    result: AskResult | None = None
    async for event in events:
        if isinstance(event, CompleteEvent | ErrorEvent):
            result = event.result
    assert result is not None  # if there is no final event, the loop above has raised the error of the stream
    return result


class Steps(Iterator[R], Generic[R]):
    """A blocking iterator over the items of a stream. Each iteration waits for the next item.

    Leaving the loop early does not stop the turn.
    """

    def __init__(
        self,
        runtime: "BlockingRuntime",
        step: Callable[[], Awaitable[R | None]],
        ask: InterruptibleAsk | None = None,
    ) -> None:
        self._runtime, self._step, self._ask = runtime, step, ask
        self._is_closed = False

    def __next__(self) -> R:
        if self._is_closed:
            raise StopIteration
        try:
            step = self._runtime._wait(self._step, self._ask)
        except BaseException:
            self._is_closed = True
            raise
        if step is None:
            self._is_closed = True
            raise StopIteration
        return step

    def close(self) -> None:
        """End the iteration. The turn continues; to stop the turn, call `BlockingSession.cancel`."""
        self._is_closed = True


class _AskEvents:
    """An ask whose events are read one at a time. The first read submits the ask."""

    def __init__(self, submit: Callable[[], Awaitable[AskStream]]) -> None:
        self._submit = submit
        self._stream: AskStream | None = None

    async def next(self) -> SessionEvent | None:
        """Return the next event, or None after the last one."""
        if self._stream is None:
            self._stream = await self._submit()
        return await anext(self._stream, None)


async def _call_in_coroutine(function: Callable[[], R]) -> R:
    """Call a plain function in a coroutine, because `BlockingRuntime._wait` accepts only async functions."""
    return function()


def _copy_documentation(
    call: Callable[..., object], method: Callable[..., object], result: str | None = None
) -> None:
    """Give the blocking variant of an async method the signature and name of that method, and a docstring that refers
    to it.

    Args:
        call: The blocking variant.
        method: The async method.
        result: The return annotation of the blocking variant; by default, the annotation of the method.
    """
    about = signature(method)
    call.__dict__["__signature__"] = about if result is None else about.replace(return_annotation=result)
    call.__name__, call.__qualname__ = method.__name__, method.__qualname__
    call.__doc__ = f"Call `actors.{method.__qualname__}`, wait, and return the result. See that method."


def _blocking_method(
    method: Callable[Concatenate[Session, P], Coroutine[Any, Any, R]],
) -> Callable[[Callable[..., None]], Callable[Concatenate["BlockingSession", P], R]]:
    """Return a decorator that replaces a method of `BlockingSession` with a blocking call of an async method.

    The replaced method only declares the name, because type checkers infer no type for an attribute that is the result
    of a call.
    """

    def call(self: "BlockingSession", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._runtime._wait(partial(method, self._session, *args, **kwargs))

    _copy_documentation(call, method)
    return lambda _: call


def _blocking_opener(
    method: Callable[Concatenate[Runtime, P], SessionOpening],
) -> Callable[[Callable[..., None]], Callable[Concatenate["BlockingRuntime", P], "BlockingSession"]]:
    """Return a decorator that replaces a method of `BlockingRuntime` with a blocking call that opens a session."""

    def call(self: "BlockingRuntime", /, *args: P.args, **kwargs: P.kwargs) -> "BlockingSession":
        return BlockingSession(self, self._wait(partial(method, self._runtime, *args, **kwargs)))

    _copy_documentation(call, method, "BlockingSession")
    return lambda _: call


class BlockingSession:
    """A conversation that any thread may use. `BlockingRuntime.open` and `BlockingRuntime.resume` return it.

    A `with` block gives the session back on exit, as `async with runtime.open(...)` does.

    The methods are those of `actors.Session`, where they are documented; each method waits for the result. If the
    caller of `ask`, `stream` or `stream_text` is interrupted while it waits, the ask is cancelled and its calls are
    closed; a second interrupt does not wait for them. Leaving a stream early does not stop the turn.
    """

    def __init__(self, runtime: "BlockingRuntime", session: Session) -> None:
        self._runtime, self._session = runtime, session
        self.id: str = session.id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runtime._wait(self._session._lifecycle.give_back)

    @property
    def target(self) -> str:
        """The target of the next ask. A queued switch changes the target when the switch is applied."""
        return self._session.target

    @property
    def title(self) -> str:
        """The title that was passed to `BlockingRuntime.open`, or ""."""
        return self._session.title

    @property
    def metadata(self) -> Mapping[str, Scalar]:
        """The labels that were passed to `BlockingRuntime.open`. Read-only."""
        return self._session.metadata

    @property
    def busy(self) -> bool:
        """True if an ask is in flight or queued."""
        return self._session.busy

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls for which the turn waits: external calls without a result, and calls that need a decision."""
        return self._session.pending

    @overload
    def ask(
        self,
        message: UserInput,
        *,
        key: str | None = None,
        output: type[T],
        check: bool = True,
        **settings: Unpack[AskSettings],
    ) -> AskResult[T]: ...

    @overload
    def ask(
        self,
        message: UserInput,
        *,
        key: str | None = None,
        output: Any = None,
        check: bool = True,
        **settings: Unpack[AskSettings],
    ) -> AskResult: ...

    @overload
    def ask(
        self,
        message: None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        check: bool = True,
    ) -> AskResult: ...

    def ask(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        key: str | None = None,
        output: Any = None,
        check: bool = True,
        **settings: Unpack[AskSettings],
    ) -> AskResult:
        """Send a message to the model, and wait for the result of the ask. See `actors.Session.ask`."""
        ask = InterruptibleAsk(self._session, is_shared=key is not None)
        prepare = partial(self._session._prepare_stream, message, results, approvals, settings, output, key)
        result = self._runtime._wait(partial(ask.outcome, prepare), ask)
        return self._check(result) if check else result

    def stream(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        key: str | None = None,
        output: Any = None,
        **settings: Unpack[AskSettings],
    ) -> Steps[SessionEvent]:
        """Return an iterator over the events of an ask.

        The first iteration sends the ask. See `actors.Session.stream`.
        """
        ask = InterruptibleAsk(self._session, is_shared=key is not None)
        prepare = partial(self._session._prepare_stream, message, results, approvals, settings, output, key)
        return Steps(self._runtime, _AskEvents(partial(ask.submit, prepare)).next, ask)

    def stream_text(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        key: str | None = None,
        **settings: Unpack[AskSettings],
    ) -> Steps[str]:
        """Return an iterator over the text of an answer.

        The first iteration sends the ask. See `actors.Session.stream_text`.
        """
        ask = InterruptibleAsk(self._session, is_shared=key is not None)
        given = partial(
            self._session.stream_text, message, results=results, approvals=approvals, key=key, **settings
        )
        text = self._call_on_loop(given)
        ask.set_stream(text._events)
        return Steps(self._runtime, partial(anext, text, None), ask)

    def events(self, after: int = 0, *, follow: bool = True) -> Steps[SessionEvent]:
        """Return an iterator over the session's events after number `after`. See `actors.Session.events`."""
        events = self._call_on_loop(partial(self._session.events, after, follow=follow))
        return Steps(self._runtime, partial(anext, events, None))

    def _call_on_loop(self, function: Callable[[], R]) -> R:
        """Call a plain function on the loop, and return its result."""
        return self._runtime._wait(partial(_call_in_coroutine, function))

    def _check(self, result: AskResult) -> AskResult:
        """Return a result, or raise `AskFailed` if the ask failed."""
        return self._session._check_result(result, check=True)

    @_blocking_method(Session.call_tool)
    def call_tool(self) -> None: ...

    @_blocking_method(Session.switch)
    def switch(self) -> None: ...

    @_blocking_method(Session.configure)
    def configure(self) -> None: ...

    @_blocking_method(Session.cancel)
    def cancel(self) -> None: ...

    @_blocking_method(Session.history)
    def history(self) -> None: ...

    @_blocking_method(Session.ledger)
    def ledger(self) -> None: ...

    @_blocking_method(Session.preview)
    def preview(self) -> None: ...

    @_blocking_method(Session.compact)
    def compact(self) -> None: ...

    @_blocking_method(Session.rewind)
    def rewind(self) -> None: ...

    @_blocking_method(Session.release)
    def release(self) -> None: ...

    @_blocking_method(Session.close)
    def close(self) -> None: ...


class BlockingRuntime:
    """An `actors.Runtime` with its own thread and event loop, which run from the call of this class until `close`.

    A `with` block closes the runtime on exit. The runtime is also closed when the main thread ends, and when the
    program has no reference to the runtime or its sessions any more. Half a second after closing, calls that are still
    running are cancelled and raise `KernelError`.

    Args:
        runtime: An `actors.Runtime` that has not been entered, or the `config` argument of a new one.
        backend: The library of the event loop.

    Raises the errors of creating and entering an `actors.Runtime`, and `KernelError` if the main thread has ended.

    Every call raises `KernelError` once the runtime is closed. A call raises `WrongEventLoop` on the runtime's own
    event loop (in an async tool), where the call would wait for itself, and in a forked process, where the thread does
    not exist.
    """

    def __init__(self, runtime: Any = None, *, backend: Backend = "asyncio") -> None:
        self._runtime = runtime if isinstance(runtime, Runtime) else Runtime(runtime)
        self._loop = LoopThread(self._runtime, backend)
        # `LoopThread` stops the loop when the main thread ends; exit handlers would run too late
        finalize(self, self._loop.stop).atexit = False

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
        """Return an open session by its id. See `actors.Runtime.session`."""
        return BlockingSession(
            self, self._wait(partial(_call_in_coroutine, partial(self._runtime.session, id)))
        )

    def stats(self) -> RuntimeStats:
        """Return the runtime's counters and gauges. See `actors.Runtime.stats`."""
        return self._wait(partial(_call_in_coroutine, self._runtime.stats))

    def call(self, function: Callable[[Runtime], Coroutine[Any, Any, R]]) -> R:
        """Run an async function with the runtime as its argument, on the runtime's event loop, and return the result.

        Use it for operations without a method here: `runtime.call(lambda hosted: hosted.journal.delete("one"))`. If the
        caller is interrupted, the function is cancelled.
        """
        return self._wait(partial(function, self._runtime))

    def close(self) -> None:
        """Cancel the asks in flight, leave the runtime as the end of `async with` does, and end the thread."""
        self._loop.close()

    def _wait(self, function: Callable[[], Awaitable[R]], ask: InterruptibleAsk | None = None) -> R:
        """Run an async function on the loop, and wait for it.

        If the caller is interrupted, `ask` is cancelled, or the function itself if there is no `ask`.
        """
        if ask is None:
            return self._loop.call(function)
        try:
            # keep=True, because an interrupted ask is cancelled through its session, which also closes the ask's calls
            return self._loop.result(self._loop.start(function), keep_running=True)
        except Exception:
            raise
        except BaseException:  # an interrupt, or an exception that another signal handler raised
            with suppress(ActorsError, TimeoutError):
                cancelling = self._loop.start(ask.interrupt)
                if ask.has_begun:
                    cancelling.result(INTERRUPT_TIMEOUT)
            raise


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
