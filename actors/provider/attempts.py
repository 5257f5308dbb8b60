"""Define the rules of one try of a request: headers, timeouts, silence, retries, and the redaction of failures.

A round (`actors.provider.rounds`) applies them. Randomness and time are arguments.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.failure import Failure
from actors.adapters.retry_after import MAX_WAIT
from actors.core.settings.asking import Asked
from actors.core.values.stream import (
    ArgumentsDelta,
    CallDone,
    CallStarted,
    Finish,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from actors.kernel.event_loop import Scope
from actors.provider.credentials import Headers
from actors.transport import Timeouts


def timeouts_of(usual: Timeouts, asked: Asked | None) -> Timeouts:
    """Return the timeouts of a request: those of its ask, else those of the endpoint."""
    if asked is None or (asked.first_byte_timeout is None and asked.idle_timeout is None):
        return usual
    first_byte, idle = asked.first_byte_timeout or usual.first_byte, asked.idle_timeout or usual.idle
    return replace(usual, first_byte=first_byte, idle=idle)


def merged_headers(usual: Headers, given: Headers) -> Headers:
    """Return the usual headers, replaced and extended by the given ones."""
    if not given:
        return usual
    names = {name for name, _ in given}
    return (*(header for header in usual if header[0].lower() not in names), *given)


SECRET = 6
"""Fewest characters of a value that is redacted."""


def without_secrets(failure: Failure, headers: Headers) -> Failure:
    """Return a failure whose message contains no values of the sent headers."""
    message = failure.message
    for _, value in headers:
        for secret in (value, value.removeprefix("Bearer ")):
            if len(secret) >= SECRET:
                message = message.replace(secret, "[removed]")
    return failure if message == failure.message else replace(failure, message=message)


class Silence:
    """Cancels the scope in which a stream is read when the stream has been silent for too long.

    Args:
        scope: The scope; its own deadline remains in force.
        now: The loop's clock.
        timeout: Seconds; None allows any silence.
    """

    def __init__(self, scope: Scope, now: Callable[[], float], timeout: float | None) -> None:
        self._scope, self._now, self._timeout = scope, now, timeout
        self._until = scope.deadline
        self._restart()

    @property
    def why(self) -> str | None:
        """The error message if silence has ended the scope."""
        if self._timeout is None or self._scope.deadline >= self._until:
            return None
        return f"The stream went on without saying anything for {self._timeout:g} s."

    def hear(self, events: Iterable[StreamEvent]) -> None:
        """Restart the timeout if an event has content."""
        if self._timeout is not None and any(map(_says_something, events)):
            self._restart()

    def allow(self) -> None:
        """Disable the timeout, because the response is not a stream."""
        self._timeout, self._scope.deadline = None, self._until

    def _restart(self) -> None:
        if self._timeout is not None:
            self._scope.deadline = min(self._until, self._now() + self._timeout)


def _says_something(event: StreamEvent) -> bool:
    match event:
        case TextDelta(text=text) | ThinkingDelta(text=text) | ArgumentsDelta(text=text):
            return bool(text)
        case CallStarted() | CallDone() | Finish():
            return True
        case Usage():
            return False
        case _:
            assert_never(event)


MOST = 10.0
"""Longest period in seconds in which a failing backend is tried before the breaker opens."""
SLACK = 1.5
"""Ratio of that period to the waits of one request: other requests start later, and each try takes time."""


class Retries(Struct, frozen=True):
    """The retry policy of a request, in force while no part of its answer was visible.

    Args:
        attempts: Tries in total. Up to `extra_attempts` rate limit errors do not count if the backend answered other
            requests.

    base, ceiling: Seconds of the first and of the longest wait; doubling in between, with jitter.

    budget: Longest wait in seconds that a provider may request. Beyond it, the request fails, since another backend
    may serve it sooner.
    """

    attempts: int = 3
    base: float = 0.5
    ceiling: float = 8.0
    budget: float = 20.0

    def wait(self, attempt: int, asked: float | None, random: Random) -> float | None:
        """Return the seconds to wait after failed attempt number `attempt`, or None to give up."""
        if attempt >= self.attempts or (asked is not None and asked > self.budget):
            return None
        if asked is not None:
            return asked + random.uniform(0, self.base)
        return self._longest(attempt) * random.uniform(0.5 if attempt == 1 else 0.75, 1.0)

    def mention_wait(self, failure: Failure) -> Failure:
        """Return a failure whose message mentions the requested wait, if that exceeds the budget."""
        wait = failure.retry_after
        if wait is None or wait <= self.budget:
            return failure
        return replace(failure, message=f"{failure.message} (it asks to wait {_in_words(wait)})")

    @property
    def extra_attempts(self) -> int:
        """Tries in addition to `attempts` at a backend that answers other requests in the meantime."""
        return 4 * (self.attempts - 1)

    @property
    def span(self) -> float:
        """Seconds after which the requests that met the first failure have used up their tries."""
        return min(MOST, SLACK * sum(map(self._longest, range(1, self.attempts))))

    def _longest(self, attempt: int) -> float:
        return min(self.ceiling, self.base * 2.0 ** (attempt - 1))


def _in_words(seconds: float) -> str:
    """Return a wait in words: `45 s`, `12 min`, `5 h 2 min`, `a day or more`."""
    if seconds >= MAX_WAIT:
        return "a day or more"
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)) if part)
