"""What goes wrong between a strict server and its client: faults as data, and which request meets which.

    faults={0: Status(429, retry_after="3"), 2: Disconnect(after_bytes=120)}
    faults=lambda number, request: OVERLOADED if request["model"] == "busy" else None

Requests are numbered from 0 as the server receives them, refused ones included. Counts of bytes are of the
response body, whatever the transfer encoding adds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.strict.rules.base import Json


@dataclass(frozen=True, slots=True)
class Status:
    """Answer with this status instead of the model's turn, before the request is judged.

    Args:
        retry_after: Value of the `retry-after` header as it is: seconds, an HTTP date, or nonsense.
        retry_after_ms: Value of the `retry-after-ms` header.
        should_retry: Value of the `x-should-retry` header.
        type: Error type; None is the dialect's own for this status.
        code: Error code, where the dialect has one.
        message: None is the dialect's own for this status.
        body: Sent instead of an error body; may be anything.
        param: The part of the request that is refused, where the dialect has a field for it.
    """

    status: int
    retry_after: str | None = None
    retry_after_ms: str | None = None
    should_retry: str | None = None
    type: str | None = None
    code: str | None = None
    message: str | None = None
    body: bytes | None = None
    param: str | None = None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The retry headers that are set."""
        values = {
            "retry-after": self.retry_after,
            "retry-after-ms": self.retry_after_ms,
            "x-should-retry": self.should_retry,
        }
        return [(name, value) for name, value in values.items() if value is not None]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection after this many bytes of the body; None closes before any of the response.

    `reset` closes with a TCP reset instead of an orderly end.
    """

    after_bytes: int | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """Fall silent after this many bytes of the body, None before any, until the client or server goes."""

    after_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorInStream:
    """Send the dialect's error event after this many events of a stream, and nothing more.

    A request that is not streamed gets the status the error stands for.
    """

    after_events: int
    status: int = 529
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Garbage:
    """Answer 200 with these bytes as the whole body."""

    body: bytes = b"\x00\xff<html>not what you asked for</html>"


@dataclass(frozen=True, slots=True)
class MalformedEvent:
    """Put these bytes into a stream after this many events; the stream goes on behind them.

    A request that is not streamed gets them in front of its body.
    """

    after_events: int
    data: bytes = b'data: {"id": "cut", "choi\n\n'


@dataclass(frozen=True, slots=True)
class Flood:
    """Send these bytes over and over after this many events, until the client or the server goes.

    The body of a request that is not streamed is one event. The answer never says how long it is.
    """

    after_events: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Reframed:
    """Write server-sent events as the standard also allows it, and as some servers do. What they say is the same.

    Args:
        line_end: Of every line.
        mark: Begin with a byte order mark.
        unfinished: Leave out the blank line behind the last event.

    Other answers (a request that is not streamed, Bedrock's frames) stay as they are.
    """

    line_end: Literal["\n", "\r", "\r\n"] = "\n"
    mark: bool = False
    unfinished: bool = False

    def written(self, events: list[bytes]) -> list[bytes]:
        """Return the events in this form."""
        end = self.line_end.encode()
        written = [event.replace(b"\n", end) for event in events]
        if self.unfinished:
            written[-1] = written[-1].removesuffix(end).removesuffix(end)
        return [b"\xef\xbb\xbf" + written[0], *written[1:]] if self.mark else written


Fault: TypeAlias = Status | Disconnect | Stall | ErrorInStream | Garbage | MalformedEvent | Flood | Reframed
Faults: TypeAlias = Mapping[int, Fault] | Callable[[int, Json], Fault | None]

RATE_LIMITED = Status(429, retry_after="1")
QUOTA = Status(
    429,
    type="insufficient_quota",
    code="insufficient_quota",
    message="You exceeded your current quota, please check your plan and billing details.",
)
SERVER_ERROR = Status(500)
OVERLOADED = Status(529)


def fault_for(faults: Faults, number: int, request: Json) -> Fault | None:
    """Return the fault request `number` meets, or None. `request` is None if the body was not JSON."""
    if callable(faults):
        return faults(number, request)
    return faults.get(number)


_READ: Mapping[str, Callable[[int | None], Fault]] = {
    "cut": lambda count: Disconnect(after_bytes=count),
    "reset": lambda count: Disconnect(after_bytes=count, reset=True),
    "stall": lambda count: Stall(after_bytes=count),
    "error": lambda count: ErrorInStream(after_events=count or 0),
    "malformed": lambda count: MalformedEvent(after_events=count or 0),
    "garbage": lambda count: Garbage(),
}


def read_fault(text: str) -> tuple[int, Fault]:
    """Return the number of a request and its fault, as they are written on a command line: `2:429`, `3:cut=100`.

    The fault is a status, with the value of `retry-after` behind an equals sign, or one of `cut`, `reset`, `stall`,
    `error`, `malformed` and `garbage`, with the bytes or events before it.

    Raises:
        ValueError: It is none; the message says why.
    """
    number, colon, fault = text.partition(":")
    name, given, value = fault.partition("=")
    if not colon or not number.isdecimal():
        raise ValueError(f"{text!r} does not begin with the number of a request, such as 0:429")
    if name.isdecimal() and 400 <= int(name) <= 599:
        return int(number), Status(int(name), retry_after=value if given else None)
    if name not in _READ or (given and not value.isdecimal()):
        known = ", ".join(_READ)
        raise ValueError(
            f"{fault!r} is not a fault: give a status from 400 to 599, or one of {known}, with =COUNT"
        )
    return int(number), _READ[name](int(value) if given else None)
