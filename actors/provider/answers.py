"""Define the results of a round (`actors.provider.rounds`): a complete, a broken or an aborted answer."""

from typing import TypeAlias

from msgspec import Struct

from actors.adapters.failure import Failure
from actors.core.values.content import Message
from actors.core.values.stream import Cut, LeftOut, Usage


class FailedTry(Struct, frozen=True):
    """A failed try that was retried: the failure, and the seconds of waiting before the try."""

    failure: Failure
    wait: float


class Answer(Struct, frozen=True):
    """The model's complete message.

    Args:
        finish: The provider's finish reason.
        calls: Number of canonical call ids used.
        cut: Why the answer is incomplete.
        left_out: Content of the answer that the message lacks.
        tried: The earlier tries; `wait` is the seconds before the last one.
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
    """The round ended without the model's complete message.

    Args:
        message: The partial message, if any.
        calls: Number of canonical call ids used, including dropped calls.
        left_out: Content of the partial answer that the message lacks.

    tried, wait: As in `Answer`.
    """

    message: Message | None
    usage: Usage
    calls: int
    left_out: LeftOut = ()
    tried: tuple[FailedTry, ...] = ()
    wait: float = 0.0


class AbortedAnswer(UnfinishedAnswer, frozen=True):
    """The round was stopped on request."""


class BrokenAnswer(UnfinishedAnswer, frozen=True, kw_only=True):
    """The round failed for good.

    Args:
        failure: The classified failure.
        visible: Whether any part of an answer was visible.
    """

    failure: Failure
    visible: bool


Generated: TypeAlias = Answer | BrokenAnswer | AbortedAnswer
