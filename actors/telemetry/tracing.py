"""Forward the events of asks to a tracer without letting its failures reach the asks.

The runtime uses this module. A tracer runs the program's own span processors and exporters. The first exception that
they raise is logged, and tracing is switched off for the runtime.
"""

from contextvars import Context as Variables
from functools import partial
from typing import TYPE_CHECKING

from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.sink import Sink
from actors.errors import ConfigError
from actors.kernel.host_code import Listener
from actors.telemetry import logger

if TYPE_CHECKING:
    from actors.telemetry.otel import AskSpans, Tracing


class RuntimeTracing:
    """Traces the asks of one runtime.

    Raises:
        ConfigError: `tracer` is not a `Tracing`.
    """

    def __init__(self, tracer: "Tracing") -> None:
        if not hasattr(tracer, "_traced"):
            raise ConfigError(
                f"tracing= takes a Tracing (actors.telemetry), or None, not {type(tracer).__name__}"
            )
        self._tracer = tracer
        self._listener = logger.listener("tracing")

    def attach(self, session: str, sink: Sink, variables: Variables) -> Sink:
        """Start the trace of an ask, and return a sink that also forwards the ask's events to the trace."""
        trace = self._listener.call(partial(self._tracer._traced, session, variables))
        return sink if trace is None else _TracedSink(sink, trace, self._listener)


class _TracedSink:
    """The sink of an ask, which also forwards events to the ask's trace."""

    __slots__ = ("_listener", "_own", "_trace")

    def __init__(self, own: Sink, trace: "AskSpans", listener: Listener) -> None:
        self._own, self._trace, self._listener = own, trace, listener

    @property
    def is_watched(self) -> bool:
        return self._own.is_watched or not self._listener.is_disabled

    def put(self, event: SessionEvent) -> None:
        self._listener.call(partial(self._trace.put, event))
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._listener.call(partial(self._trace.close, error))
        self._own.close(error)
