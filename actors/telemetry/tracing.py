"""Forward the events of asks to a tracer, and isolate the asks from errors that the tracer raises.

The runtime uses this module. A tracer calls the program's span processors and exporters. The first exception that they
raise is logged, and switches tracing off for this runtime.
"""

from contextvars import Context as Variables
from functools import partial
from typing import TYPE_CHECKING

from actors.errors import ConfigError
from actors.kernel.host_code import Listener
from actors.telemetry.callbacks import create_listener

if TYPE_CHECKING:
    from actors.core.stream_events.events import SessionEvent
    from actors.core.stream_events.sink import Sink
    from actors.telemetry.otel import AskSpans, Tracing


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
