"""The tracing of a runtime, beside its asks: whatever it raises, their events go where they would without it.

A tracing is the program's own code, and so are the span processors and exporters behind it. The first time any of that
raises, it is logged, and the runtime traces no more.
"""

from contextvars import Context as Variables
from functools import partial
from typing import TYPE_CHECKING

from actors import telemetry
from actors.core.stream_events.events import SessionEvent
from actors.core.stream_events.sink import Sink
from actors.errors import ConfigError
from actors.kernel.host_code import Listener

if TYPE_CHECKING:
    from actors.telemetry.otel import AskSpans, Tracing


class RuntimeTracing:
    """Traces the asks of one runtime.

    Raises:
        ConfigError: The tracer is none.
    """

    def __init__(self, tracer: "Tracing") -> None:
        if not hasattr(tracer, "traced"):
            raise ConfigError(
                f"tracing= takes a Tracing (actors.telemetry.otel), or None, not {type(tracer).__name__}"
            )
        self._tracer = tracer
        self._listener = telemetry.listener("tracing")

    def joined(self, session: str, sink: Sink, variables: Variables) -> Sink:
        """Return where the events of an ask go, whose trace begins now."""
        trace = self._listener.call(partial(self._tracer.traced, session, variables))
        return sink if trace is None else _TracedSink(sink, trace, self._listener)


class _TracedSink:
    """An ask's sink, and its trace beside it."""

    __slots__ = ("_listener", "_own", "_trace")

    def __init__(self, own: Sink, trace: "AskSpans", listener: Listener) -> None:
        self._own, self._trace, self._listener = own, trace, listener

    @property
    def is_watched(self) -> bool:
        return self._own.is_watched or not self._listener.is_off

    def put(self, event: SessionEvent) -> None:
        self._listener.call(partial(self._trace.put, event))
        self._own.put(event)

    def close(self, error: Exception | None = None) -> None:
        self._listener.call(partial(self._trace.close, error))
        self._own.close(error)
