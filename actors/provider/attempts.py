"""Define the rules for each try of a request, and the possible results of a request after its last try.

A round (`actors.provider.rounds`) applies these rules to headers, timeouts and retries, and to messages of failures,
from which secrets are removed. Randomness and time are arguments. A round returns a complete, a broken or an aborted
answer.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from actors.adapters.failure import Failure
from actors.adapters.retry_after import MAX_WAIT
from actors.core.settings.asking import StoredAskSettings
from actors.core.values.content import Message
from actors.core.values.stream import (
    ArgumentsDelta,
    CallDone,
    CallStarted,
    Cut,
    Finish,
    LeftOut,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from actors.kernel.event_loop import Scope
from actors.provider.credentials import Headers
from actors.transport import Timeouts


def timeouts_of(defaults: Timeouts, ask_settings: StoredAskSettings | None) -> Timeouts:
    """Return a request's timeouts: `defaults`, overridden by the settings of its ask."""
    if ask_settings is None or (
        ask_settings.first_byte_timeout is None and ask_settings.idle_timeout is None
    ):
        return defaults
    first_byte, idle = (
        ask_settings.first_byte_timeout or defaults.first_byte,
        ask_settings.idle_timeout or defaults.idle,
    )
    return replace(defaults, first_byte=first_byte, idle=idle)


def merged_headers(defaults: Headers, overrides: Headers) -> Headers:
    """Return the default headers combined with the overrides, which take precedence.

    Names are compared in lower case.
    """
    if not overrides:
        return defaults
    names = {name for name, _ in overrides}
    return (*(header for header in defaults if header[0].lower() not in names), *overrides)


MIN_SECRET = 6
"""Minimum length of a value that is redacted."""


def without_secrets(failure: Failure, headers: Headers) -> Failure:
    """Return a copy of `failure` whose message does not contain the values of `headers`."""
    message = failure.message
    for _, value in headers:
        for secret in (value, value.removeprefix("Bearer ")):
            if len(secret) >= MIN_SECRET:
                message = message.replace(secret, "[removed]")
    return failure if message == failure.message else replace(failure, message=message)


class SilenceTimeout:
    """A timeout that cancels the reading of a stream if no content arrives for `timeout` seconds.

    Args:
        scope: The cancel scope in which the stream is read. An earlier deadline of the scope remains in force.
        now: Returns the time of the loop's clock, in seconds.
        timeout: Longest time without content, in seconds. `None` means no limit.
    """

    def __init__(self, scope: Scope, now: Callable[[], float], timeout: float | None) -> None:
        self._scope, self._now, self._timeout = scope, now, timeout
        self._until = scope.deadline
        self._restart()

    @property
    def error_message(self) -> str | None:
        """The error message if this timeout has cancelled the scope; otherwise None."""
        if self._timeout is None or self._scope.deadline >= self._until:
            return None
        return f"The stream sent no content for {self._timeout:g} s."

    def record_events(self, events: Iterable[StreamEvent]) -> None:
        """Restart the timeout if one of the events has content."""
        if self._timeout is not None and any(map(_has_content, events)):
            self._restart()

    def disable(self) -> None:
        """Disable the timeout, because the response is not a stream."""
        self._timeout, self._scope.deadline = None, self._until

    def _restart(self) -> None:
        if self._timeout is not None:
            self._scope.deadline = min(self._until, self._now() + self._timeout)


def _has_content(event: StreamEvent) -> bool:
    """Return True if the event shows that the model is producing output."""
    match event:
        case TextDelta(text=text) | ThinkingDelta(text=text) | ArgumentsDelta(text=text):
            return bool(text)
        case CallStarted() | CallDone() | Finish():
            return True
        case Usage():
            return False
        case _:
            assert_never(event)


MAX_SPAN = 10.0
"""Maximum of `Retries.span`, in seconds, so that the breaker of a failing backend does not open too late."""
SPAN_RATIO = 1.5
"""Ratio of `Retries.span` to the sum of a request's waits. It is greater than 1, because each try takes time as well,
and other requests start later.
"""


class Retries(Struct, frozen=True):
    """The retry policy for requests. A request is not retried once part of its answer was visible.

    Args:
        attempts: Maximum number of tries. Up to `extra_attempts` rate limit errors do not count, if the backend
            answered other requests in the meantime.
        first_wait, longest_wait: The first and the longest wait before a retry, in seconds. The wait doubles with each
            try up to the longest, with jitter.
        longest_requested_wait: Longest wait in seconds that a provider may request. If it requests more, the request
            fails, because another backend may answer sooner.
    """

    attempts: int = 3
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_requested_wait: float = 20.0

    def wait_seconds(self, attempt: int, requested_wait: float | None, random: Random) -> float | None:
        """Return the seconds to wait after the failed try number `attempt`, or None to give up.

        `requested_wait` is the wait in seconds that the provider requested, or None.
        """
        if attempt >= self.attempts or (
            requested_wait is not None and requested_wait > self.longest_requested_wait
        ):
            return None
        if requested_wait is not None:
            return requested_wait + random.uniform(0, self.first_wait)
        return self._wait_before_jitter(attempt) * random.uniform(0.5 if attempt == 1 else 0.75, 1.0)

    def mention_wait(self, failure: Failure) -> Failure:
        """Return the failure. If the provider requests a wait that is too long for a retry, the message mentions it."""
        wait = failure.retry_after
        if wait is None or wait <= self.longest_requested_wait:
            return failure
        return replace(failure, message=f"{failure.message} (it asks to wait {_wait_text(wait)})")

    @property
    def extra_attempts(self) -> int:
        """Maximum number of rate limit errors that do not count because the backend answered other requests."""
        return 4 * (self.attempts - 1)

    @property
    def span(self) -> float:
        """Estimate of the seconds in which a request uses up all its tries during an outage."""
        return min(MAX_SPAN, SPAN_RATIO * sum(map(self._wait_before_jitter, range(1, self.attempts))))

    def _wait_before_jitter(self, attempt: int) -> float:
        return min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))


def _wait_text(seconds: float) -> str:
    """Return a wait as text: `45 s`, `12 min`, `5 h 2 min`, `a day or more`."""
    if seconds >= MAX_WAIT:
        return "a day or more"
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)) if part)


class FailedTry(Struct, frozen=True):
    """A failed try that was followed by a retry.

    Args:
        failure: The failure.
        wait: Seconds waited before this try.
    """

    failure: Failure
    wait: float


class Answer(Struct, frozen=True):
    """The model's complete message.

    Args:
        finish: The provider's finish reason.
        calls: Number of tool call ids that were assigned.
        cut: Why the answer is incomplete, or None if it is complete.
        left_out: Content of the answer that is missing from the message.
        tried: The tries before the last one, all of which failed.
        wait: Seconds waited before the last try.
    """

    message: Message
    usage: Usage
    finish: str | None
    calls: int
    cut: Cut | None = None
    left_out: LeftOut = ()
    tried: tuple[FailedTry, ...] = ()
    wait: float = 0.0


class UnfinishedAnswer(Struct, frozen=True):
    """The result of a request that did not yield a complete message.

    Args:
        message: The partial message, or None.
        calls: Number of tool call ids that were assigned, including the ids of dropped calls.
        left_out: Content of the partial answer that is missing from the message.
        tried, wait: As in `Answer`.
    """

    message: Message | None
    usage: Usage
    calls: int
    left_out: LeftOut = ()
    tried: tuple[FailedTry, ...] = ()
    wait: float = 0.0


class AbortedAnswer(UnfinishedAnswer, frozen=True):
    """The result of a request that the caller stopped."""


class BrokenAnswer(UnfinishedAnswer, frozen=True, kw_only=True):
    """The result of a request that failed and is not retried.

    Args:
        failure: The classified failure.
        visible: Whether any part of the answer was already visible to the user.
    """

    failure: Failure
    visible: bool


Generated: TypeAlias = Answer | BrokenAnswer | AbortedAnswer
"""The result of a round, which is the reply to `Generate`."""
