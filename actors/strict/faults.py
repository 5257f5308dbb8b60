"""Define the faults of a strict server as data, and select the fault for each request.

    faults={0: Status(429, retry_after="3"), 2: Disconnect(after_bytes=120)}
    faults=lambda number, request: OVERLOADED if request["model"] == "busy" else None
    faults=window_faults("anthropic", 4000)

Requests are numbered from 0 in the order in which the server receives them, including refused requests. Byte counts
refer to the response body without the transfer encoding. `window_faults` limits the context window: longer requests are
refused with the provider's error. Four bytes of a body count as one token, which is close to the providers' counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from actors.strict.rules.base import Json, dump

BYTES_PER_TOKEN = 4
"""Bytes of a request body that count as one token."""
_WINDOW_MESSAGES: dict[str, str] = {
    "openai_chat": "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} "
    "tokens. Please reduce the length of the messages.",
    "openai_responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "anthropic": "prompt is too long: {tokens} tokens > {limit} maximum",
    "gemini": "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).",
    "mistral": "Prompt contains {tokens} tokens and 0 draft tokens, too large for model with {limit} maximum context "
    "length",
    "kimi": "Invalid request: Your request exceeded model token limit: {limit}",
    "deepseek": "This model's maximum context length is {limit} tokens. However, you requested {tokens} tokens.",
    "bedrock": "Input is too long for requested model.",
    "openrouter": "This endpoint's maximum context length is {limit} tokens. However, you requested about {tokens} "
    "tokens.",
}
"""The error message for a prompt that is too long, by dialect (OAC-15, OAR-13, ANT-36, GEM-12, MIS-33, KIM-12, DSK-09,
BED-12).
"""
DIALECTS = tuple(_WINDOW_MESSAGES)


@dataclass(frozen=True, slots=True)
class Status:
    """A fault that answers with an HTTP error. The rules are not checked, and no turn of the script is used.

    Args:
        status: The HTTP status.
        retry_after: Value of the `retry-after` header, sent unchanged: seconds, an HTTP date, or an invalid value.
        retry_after_ms: Value of the `retry-after-ms` header.
        should_retry: Value of the `x-should-retry` header.
        type: Error type; None selects the dialect's type for this status.
        code: Error code, if the dialect has error codes.
        message: Error message; None selects the dialect's message for this status.
        body: Arbitrary bytes that replace the error body.
        param: The part of the request that is refused, if the dialect has a field for it.
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
        """The retry headers that are set, as (name, value) pairs."""
        values = {
            "retry-after": self.retry_after,
            "retry-after-ms": self.retry_after_ms,
            "x-should-retry": self.should_retry,
        }
        return [(name, value) for name, value in values.items() if value is not None]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A fault that closes the connection after `after_bytes` bytes of the body.

    With None, the server closes the connection before the response begins. With `reset`, the server closes it by a TCP
    reset instead of an orderly shutdown.
    """

    after_bytes: int | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """A fault that stops sending after `after_bytes` bytes of the body but keeps the connection open.

    With None, the server sends nothing at all.
    """

    after_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorInStream:
    """A fault that ends a stream with the dialect's error event.

    Args:
        after_events: Number of the answer's events that are sent before the error.
        status: The HTTP status that corresponds to the error event. A request without streaming gets an error response
            with this status.
        message: The error message; None selects the dialect's message for this status.
    """

    after_events: int
    status: int = 529
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Garbage:
    """A fault that answers with status 200 and arbitrary bytes.

    Args:
        body: The complete body.
    """

    body: bytes = b"\x00\xff<html>not what you asked for</html>"


@dataclass(frozen=True, slots=True)
class MalformedEvent:
    """A fault that inserts bytes into a stream.

    Args:
        after_events: Number of the answer's events that are sent before the bytes. In an answer without streaming, the
            bytes precede the body.
        data: The bytes, which need not be a complete event.
    """

    after_events: int
    data: bytes = b'data: {"id": "cut", "choi\n\n'


@dataclass(frozen=True, slots=True)
class Flood:
    """A fault that sends the same bytes repeatedly until the connection ends. The answer never declares its length.

    Args:
        after_events: Number of the answer's events that are sent before the bytes. The body of an answer without
            streaming counts as one event.
        data: The bytes to repeat.
    """

    after_events: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Reframed:
    """A harmless fault that sends the same server-sent events in another format that the standard allows.

    Args:
        line_end: The characters that end each line.
        byte_order_mark: Whether the stream begins with a byte order mark.
        unfinished: Whether the blank line after the last event is omitted.

    Answers without streaming and Bedrock's frames do not change.
    """

    line_end: Literal["\n", "\r", "\r\n"] = "\n"
    byte_order_mark: bool = False
    unfinished: bool = False

    def write(self, events: list[bytes]) -> list[bytes]:
        """Return encoded events in this format."""
        end = self.line_end.encode()
        written = [event.replace(b"\n", end) for event in events]
        if self.unfinished:
            written[-1] = written[-1].removesuffix(end).removesuffix(end)
        return [b"\xef\xbb\xbf" + written[0], *written[1:]] if self.byte_order_mark else written


InjectedFault: TypeAlias = (
    Status | Disconnect | Stall | ErrorInStream | Garbage | MalformedEvent | Flood | Reframed
)
"""A fault that a strict server injects into one answer."""
InjectedFaults: TypeAlias = Mapping[int, InjectedFault] | Callable[[int, Json], InjectedFault | None]
"""Faults by the number of the request, counted from 0, or a function from this number and the parsed body to a fault or
None.
"""

RATE_LIMITED = Status(429, retry_after="1")
"""A refusal because of a rate limit, which asks the client to wait one second."""
QUOTA = Status(
    429,
    type="insufficient_quota",
    code="insufficient_quota",
    message="You exceeded your current quota, please check your plan and billing details.",
)
"""A refusal because the account has no credit left."""
SERVER_ERROR = Status(500)
"""An internal error of the provider."""
OVERLOADED = Status(529)
"""A refusal because the provider is overloaded."""


def fault_for(faults: InjectedFaults, number: int, request: Json) -> InjectedFault | None:
    """Return the fault for request `number`, or None. `request` is the parsed body; None if the body is not JSON."""
    if callable(faults):
        return faults(number, request)
    return faults.get(number)


_FAULTS_BY_NAME: Mapping[str, Callable[[int | None], InjectedFault]] = {
    "cut": lambda count: Disconnect(after_bytes=count),
    "reset": lambda count: Disconnect(after_bytes=count, reset=True),
    "stall": lambda count: Stall(after_bytes=count),
    "error": lambda count: ErrorInStream(after_events=count or 0),
    "malformed": lambda count: MalformedEvent(after_events=count or 0),
    "garbage": lambda count: Garbage(),
}


def parse_fault(text: str) -> tuple[int, InjectedFault]:
    """Parse a command-line option such as `2:429` or `3:cut=100` into a request number and a fault.

    The fault is either a status or one of `cut`, `reset`, `stall`, `error`, `malformed` and `garbage`. An equals sign
    and a value may follow: the value of `retry-after` for a status, the number of bytes or events before any other
    fault.

    Raises:
        ValueError: The option is not a valid fault; the message gives the reason.
    """
    number, colon, fault = text.partition(":")
    name, given, value = fault.partition("=")
    if not colon or not number.isdecimal():
        raise ValueError(f"{text!r} must begin with a request number and a colon, as in 0:429")
    if name.isdecimal() and 400 <= int(name) <= 599:
        return int(number), Status(int(name), retry_after=value if given else None)
    if name not in _FAULTS_BY_NAME or (given and not value.isdecimal()):
        known = ", ".join(_FAULTS_BY_NAME)
        raise ValueError(
            f"{fault!r} is not a fault; use a status from 400 to 599, or one of {known}, optionally with =COUNT"
        )
    return int(number), _FAULTS_BY_NAME[name](int(value) if given else None)


def count_tokens(request: Json) -> int:
    """Return the number of tokens of a parsed request body, at four bytes per token."""
    return len(dump(request)) // BYTES_PER_TOKEN


def window_faults(dialect: str, max_tokens: int) -> Callable[[int, Json], InjectedFault | None]:
    """Return a function for `faults` that refuses requests of more than `max_tokens` tokens."""
    code = "context_length_exceeded" if dialect in ("openai_chat", "openai_responses") else None

    def fault(number: int, request: Json) -> InjectedFault | None:
        del number
        if (tokens := count_tokens(request)) <= max_tokens:
            return None
        return Status(
            400, message=_WINDOW_MESSAGES[dialect].format(limit=max_tokens, tokens=tokens), code=code
        )

    return fault
