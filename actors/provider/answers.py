"""Define the possible results of a request with its retries: a complete, a broken or an aborted answer.

`actors.provider.rounds` returns these values.
"""

from typing import TypeAlias

from msgspec import Struct

from actors.adapters.failure import Failure
from actors.core.values.content import Message
from actors.core.values.stream import Cut, LeftOut, Usage


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
        tried: The earlier tries, all of which failed.
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
