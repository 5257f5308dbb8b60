"""The same API for programs without an event loop: scripts, notebooks, plain threads.

    from actors import sync

    with sync.BlockingRuntime("actors.toml") as runtime:
        session = runtime.open("main", tools=[weather])
        for text in session.stream_text("Weather in Oslo?"):
            print(text, end="")

A `BlockingRuntime` has a thread of its own, with an event loop that hosts an `actors.Runtime`. Each call runs there,
with the caller's context variables, while its caller waits. Any thread may call, also one whose own event loop is
running, as in a notebook. An interrupt (Ctrl-C) that reaches the caller of an ask cancels that ask. When the main
thread ends, a runtime that was not closed is left in order, also if other threads still use it: let the main thread
wait for them.
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
from actors.core.stream_events.events import CompleteEvent, ErrorEvent, SessionEvent
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

INTERRUPTING = 5.0
"""Seconds that an interrupted caller waits for the calls of its ask to be closed."""


Prepare: TypeAlias = Callable[[], tuple[AskStream, Callable[[], Awaitable[None]]]]
"""Returns the stream of an ask, and what submits it."""


class InterruptibleAsk:
    """One ask on the loop, and how it is cancelled if its caller is interrupted."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stream: AskStream | None = None
        self._is_interrupted = False

    @property
    def has_begun(self) -> bool:
        """True if it is in flight, or was."""
        return self._stream is not None and self._stream.has_begun

    def watch(self, stream: AskStream) -> None:
        """Note its stream, by which it is seen to begin and to end."""
        self._stream = stream

    async def begin(self, prepare: Prepare) -> AskStream:
        """Submit it, and return its stream."""
        self._session._check()
        stream, submit = prepare()
        self.watch(stream)
        try:
            await submit()
        except BaseException:
            stream.close()
            raise
        return stream

    async def interrupt(self) -> None:
        """Cancel the ask; one that waits for others as soon as it begins. The others go on."""
        stream = self._stream
        if stream is not None and not self._is_interrupted:
            self._is_interrupted = True
            await stream.wait_begun()
            if not stream.has_ended:
                with suppress(ActorsError):  # the session has ended
                    await self._session.cancel()

    async def outcome(self, prepare: Prepare) -> AskResult:
        """Ask, and return how it came out."""
        return await _last(await self.begin(prepare))


async def _last(events: AsyncIterator[SessionEvent]) -> AskResult:
    """Return the result in the last event of an ask."""
    result: AskResult | None = None
    async for event in events:
        if isinstance(event, CompleteEvent | ErrorEvent):
            result = event.result
    assert result is not None  # else the stream has raised
    return result


class Steps(Iterator[R], Generic[R]):
    """The pieces of a stream, each waited for as it is needed. Leaving it early does not stop the turn."""

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
        """Stop reading. It does not stop the turn: `BlockingSession.cancel` does."""
        self._is_closed = True


class _AskEvents:
    """The events of an ask, step by step."""

    def __init__(self, begin: Callable[[], Awaitable[AskStream]]) -> None:
        self._begin = begin
        self._stream: AskStream | None = None

    async def next(self) -> SessionEvent | None:
        """Return the next event; the first step submits the ask."""
        if self._stream is None:
            self._stream = await self._begin()
        return await anext(self._stream, None)


async def _plain(function: Callable[[], R]) -> R:
    """Call a function that does not wait, on the loop."""
    return function()


def _document(call: Callable[..., object], method: Callable[..., object], result: str | None = None) -> None:
    """Give a call the parameters of the async method that it runs, and refer to that."""
    about = signature(method)
    call.__dict__["__signature__"] = about if result is None else about.replace(return_annotation=result)
    call.__name__, call.__qualname__ = method.__name__, method.__qualname__
    call.__doc__ = f"Wait for `actors.{method.__qualname__}`, which documents it, and return its result."


def _blocking(
    method: Callable[Concatenate[Session, P], Coroutine[Any, Any, R]],
) -> Callable[[Callable[..., None]], Callable[Concatenate["BlockingSession", P], R]]:
    """Replace a method of `BlockingSession` by one that runs this async method on the loop, and waits for it.

    The replaced method only declares the name: type checkers infer no type of an attribute that a call returns.
    """

    def call(self: "BlockingSession", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._runtime._wait(partial(method, self._session, *args, **kwargs))

    _document(call, method)
    return lambda _: call


def _opening(
    method: Callable[Concatenate[Runtime, P], SessionOpening],
) -> Callable[[Callable[..., None]], Callable[Concatenate["BlockingRuntime", P], "BlockingSession"]]:
    """Replace a method of `BlockingRuntime`, as `_blocking` does, by one that opens a session."""

    def call(self: "BlockingRuntime", /, *args: P.args, **kwargs: P.kwargs) -> "BlockingSession":
        return BlockingSession(self, self._wait(partial(method, self._runtime, *args, **kwargs)))

    _document(call, method, "BlockingSession")
    return lambda _: call


class BlockingSession:
    """One conversation, for any thread. Made by `BlockingRuntime.open`.

    `with` gives the session back on exit, as `async with runtime.open(...)` does.

    The methods are those of `actors.Session`, which document them, and wait for what those return. If the caller of
    `ask`, `stream` or `stream_text` is interrupted while it waits, the ask is cancelled and its calls are closed; a
    second interrupt does not wait for that. Leaving a stream early does not stop the turn.
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
        """The target of the next ask."""
        return self._session.target

    @property
    def title(self) -> str:
        """Its title; empty for none."""
        return self._session.title

    @property
    def metadata(self) -> Mapping[str, Scalar]:
        """What its host noted of it."""
        return self._session.metadata

    @property
    def busy(self) -> bool:
        """True if an ask is in flight or waits."""
        return self._session.busy

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that the turn in flight waits for."""
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
        """Ask, and return how it came out, as `actors.Session.ask` does."""
        ask = InterruptibleAsk(self._session)
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
        """Ask with the first step, and give the events, as `actors.Session.stream` does."""
        ask = InterruptibleAsk(self._session)
        prepare = partial(self._session._prepare_stream, message, results, approvals, settings, output, key)
        return Steps(self._runtime, _AskEvents(partial(ask.begin, prepare)).next, ask)

    def stream_text(
        self,
        message: UserInput | None = None,
        *,
        results: CallResults | None = None,
        approvals: Approvals | None = None,
        key: str | None = None,
        **settings: Unpack[AskSettings],
    ) -> Steps[str]:
        """Ask with the first step, and give the text as it arrives, as `actors.Session.stream_text` does."""
        ask = InterruptibleAsk(self._session)
        given = partial(
            self._session.stream_text, message, results=results, approvals=approvals, key=key, **settings
        )
        text = self._on_loop(given)
        ask.watch(text._events)
        return Steps(self._runtime, partial(anext, text, None), ask)

    def events(self, after: int = 0, *, follow: bool = True) -> Steps[SessionEvent]:
        """Give the session's events past number `after`, as `actors.Session.events` does."""
        events = self._on_loop(partial(self._session.events, after, follow=follow))
        return Steps(self._runtime, partial(anext, events, None))

    def _on_loop(self, function: Callable[[], R]) -> R:
        return self._runtime._wait(partial(_plain, function))

    def _check(self, result: AskResult) -> AskResult:
        return self._session._check_result(result, check=True)

    @_blocking(Session.call_tool)
    def call_tool(self) -> None: ...

    @_blocking(Session.switch)
    def switch(self) -> None: ...

    @_blocking(Session.configure)
    def configure(self) -> None: ...

    @_blocking(Session.cancel)
    def cancel(self) -> None: ...

    @_blocking(Session.history)
    def history(self) -> None: ...

    @_blocking(Session.ledger)
    def ledger(self) -> None: ...

    @_blocking(Session.preview)
    def preview(self) -> None: ...

    @_blocking(Session.compact)
    def compact(self) -> None: ...

    @_blocking(Session.rewind)
    def rewind(self) -> None: ...

    @_blocking(Session.close)
    def close(self) -> None: ...


class BlockingRuntime:
    """An `actors.Runtime` with a thread and an event loop of its own, running from here on until it is closed.

    `with` closes it; so does the end of the main thread, and the garbage collector where nobody has it or a session of
    it. Calls that go on half a second later are then cancelled, and raise `KernelError`.

    Args:
        runtime: An `actors.Runtime` that has not been entered, or what its `config` may be.
        backend: The library of the event loop.

    Raises what making and entering an `actors.Runtime` raises. Every call raises `WrongEventLoop` on the runtime's own
    event loop (in an async tool), where it would wait for itself, and in a forked process, which does not have the
    thread; and `KernelError` once the runtime is closed. When the main thread has ended, none can be made
    (`KernelError`).
    """

    def __init__(self, runtime: Any = None, *, backend: Backend = "asyncio") -> None:
        self._runtime = runtime if isinstance(runtime, Runtime) else Runtime(runtime)
        self._loop = LoopThread(self._runtime, backend)
        finalize(self, self._loop.stop).atexit = False  # which is too late there

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @_opening(Runtime.open)
    def open(self) -> None: ...

    @_opening(Runtime.resume)
    def resume(self) -> None: ...

    def session(self, id: str) -> BlockingSession:  # noqa: A002  the field's standard name
        """Return an open session by its id, as `actors.Runtime.session` does."""
        return BlockingSession(self, self._wait(partial(_plain, partial(self._runtime.session, id))))

    def stats(self) -> RuntimeStats:
        """Return what was counted, as `actors.Runtime.stats` does."""
        return self._wait(partial(_plain, self._runtime.stats))

    def call(self, function: Callable[[Runtime], Coroutine[Any, Any, R]]) -> R:
        """Run an async function on the runtime's event loop, with the runtime as its argument; return its result.

        For what has no method here: `runtime.call(lambda hosted: hosted.journal.delete("one"))`. A caller that is
        interrupted cancels it.
        """
        return self._wait(partial(function, self._runtime))

    def close(self) -> None:
        """Leave the runtime, as the end of `async with` does: asks in flight end as cancelled. Then end the thread."""
        self._loop.close()

    def _wait(self, function: Callable[[], Awaitable[R]], ask: InterruptibleAsk | None = None) -> R:
        """Wait for a call on the loop. If the caller is interrupted, cancel it, or the ask that it makes."""
        if ask is None:
            return self._loop.call(function)
        try:
            return self._loop.result(self._loop.start(function), keep=True)
        except Exception:
            raise
        except BaseException:  # an interrupt, or what another signal handler raises
            with suppress(ActorsError, TimeoutError):
                cancelling = self._loop.start(ask.interrupt)
                if ask.has_begun:
                    cancelling.result(INTERRUPTING)
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


def run(
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
    """Wait for `actors.run`, which documents it, and return its result."""

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
