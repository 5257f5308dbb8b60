"""A conversation for threads without an event loop: each method is a blocking call of `actors.Session`."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

from actors.core.settings.asking import AskSettings
from actors.core.settings.labels import Scalar
from actors.core.stream_events.ask_events import Approvals, AskResult, CallResults, PendingCall
from actors.core.stream_events.events import SessionEvent
from actors.runtime.handle import Session
from actors.session.streams import AskStream
from actors.session.user_input import UserInput
from actors.sync.calls import BlockingCalls, InterruptibleAsk, Steps, copy_documentation

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


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


def _blocking_method(
    method: Callable[Concatenate[Session, P], Coroutine[Any, Any, R]],
) -> Callable[[Callable[..., None]], Callable[Concatenate["BlockingSession", P], R]]:
    """Return a decorator that replaces a method of `BlockingSession` with a blocking call of an async method.

    The replaced method only declares the name, because type checkers infer no type for an attribute that is the result
    of a call.
    """

    def call(self: "BlockingSession", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._calls.wait(partial(method, self._session, *args, **kwargs))

    copy_documentation(call, "Session", method)
    return lambda _: call


class BlockingSession:
    """A conversation that any thread may use. `BlockingRuntime.open` and `BlockingRuntime.resume` return it.

    A `with` block releases the session on exit, as `async with runtime.open(...)` does. It has no effect on a session
    that was already released, or that `BlockingRuntime.session` returned.

    The methods are those of `actors.Session`, where they are documented; each method waits for the result. If the
    caller of `ask`, `stream` or `stream_text` is interrupted while it waits, the ask is cancelled and its calls are
    closed. A second interrupt ends the wait for these calls. Leaving a stream early does not stop the turn.
    """

    def __init__(self, calls: BlockingCalls, session: Session, *, is_held: bool) -> None:
        self._calls, self._session, self._is_held = calls, session, is_held
        self.id: str = session.id

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_held, self._is_held = self._is_held, False
        if is_held:
            self._calls.wait(self._session._lifecycle.give_back)

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
        result = self._calls.wait(partial(ask.outcome, prepare), ask)
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
        return Steps(self._calls, _AskEvents(partial(ask.submit, prepare)).next, ask)

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
        text = self._calls.wait_plain(given)
        ask.set_stream(text._events)
        return Steps(self._calls, partial(anext, text, None), ask)

    def events(self, after: int = 0, *, follow: bool = True) -> Steps[SessionEvent]:
        """Return an iterator over the session's events after number `after`. See `actors.Session.events`."""
        events = self._calls.wait_plain(partial(self._session.events, after, follow=follow))
        return Steps(self._calls, partial(anext, events, None))

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
