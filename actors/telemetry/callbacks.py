"""Call the program's callbacks and tracers, and log the exceptions that they raise.

A tracer receives the events of asks, and calls the program's span processors and exporters. The first exception that
they raise is logged, and switches tracing off for this runtime, so that no ask fails.
"""

from collections.abc import Callable
from contextvars import Context as Variables
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from actors.errors import ConfigError
from actors.kernel.host_code import Listener
from actors.telemetry import logger

if TYPE_CHECKING:
    from actors.core.stream_events.events import SessionEvent, Sink
    from actors.telemetry.otel import AskSpans, Tracing

T = TypeVar("T")


def create_listener(name: str) -> Listener:
    """Return a listener that calls the program's callbacks until one of them raises. The log names them `name`."""
    return Listener(partial(logger.host_code_failed, name, consequence="switched off"))


def guard_callback(name: str, callback: Callable[[T], object]) -> Callable[[T], object]:
    """Return a callback that calls `callback`, but never raises, and does nothing after the first exception."""
    safe = create_listener(name)
    return lambda event: safe.call(lambda: callback(event))


class RuntimeTracing:
    """The tracing of one runtime's asks.

    Raises:
        ConfigError: `tracer` is not a `Tracing`.
    """

    def __init__(self, tracer: "Tracing") -> None:
        if not hasattr(tracer, "_start_ask_spans"):
            raise ConfigError(
                f"tracing= must be an actors.telemetry.Tracing or None, not {type(tracer).__name__}"
            )
        self._tracer = tracer
        self._listener = create_listener("tracing")

    def attach(self, session: str, sink: "Sink", variables: Variables) -> "Sink":
        """Start the trace of an ask, and return a sink that passes the ask's events to `sink` and to the trace.

        The tools of the ask must run with the context variables `variables`.
        """
        trace = self._listener.call(partial(self._tracer._start_ask_spans, session, variables))
        return sink if trace is None else _TracedSink(sink, trace, self._listener)


class _TracedSink:
    """A sink that passes events to the sink of an ask and to the trace of the ask."""

    __slots__ = ("_listener", "_own", "_trace")

    def __init__(self, ask_sink: "Sink", trace: "AskSpans", listener: Listener) -> None:
        self._own, self._trace, self._listener = ask_sink, trace, listener

    @property
    def is_watched(self) -> bool:
        return self._own.is_watched or not self._listener.is_disabled

    def put(self, event: "SessionEvent") -> None:
        self._listener.call(partial(self._trace.put, event))
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._listener.call(partial(self._trace.close, error))
        self._own.close(error)
