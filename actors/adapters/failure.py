"""Describe a failed request as a `Failure`, whether a status, a body or an error inside a stream reported it.

The provider actor and the session react to a `Failure`. `Failure.kind` is the cause, and `ACTIONS` lists the reaction
to each kind. This module does not wait, retry or count.
"""

from typing import Literal, TypeAlias

from msgspec import Struct

from actors.errors import StreamFault

Action: TypeAlias = Literal["retry", "next_backend", "compact", "our_bug", "leave_out", "give_up"]
Kind: TypeAlias = Literal[
    "transient",
    "rate_limit",
    "quota",
    "too_big_for_bucket",
    "overflow",
    "transcript",
    "media",
    "parameter",
    "model_fault",
    "too_long",
    "config",
    "refusal",
    "overloaded",
    "circuit_open",
]

ACTIONS: dict[Kind, Action] = {
    "transient": "retry",
    "rate_limit": "retry",
    "quota": "next_backend",
    "too_big_for_bucket": "compact",  # waiting does not help, but a smaller request does
    "overflow": "compact",
    "transcript": "our_bug",  # the request is not sent again unchanged, and a failover does not hide the bug
    "media": "leave_out",
    "parameter": "leave_out",
    "model_fault": "retry",  # the server could not parse the model's output; a new attempt may succeed
    "too_long": "next_backend",  # the same backend would probably send an equally long answer again
    "config": "next_backend",
    "refusal": "give_up",
    "overloaded": "next_backend",  # `overloaded` and `circuit_open` are our own failures: nothing was sent
    "circuit_open": "next_backend",
}

TOO_LONG: frozenset[str] = frozenset(kind for kind, action in ACTIONS.items() if action == "compact")
"""Kinds of failures that a shorter request can avoid."""

BACKEND_KINDS: frozenset[Kind] = frozenset(("transient", "rate_limit", "quota", "config"))
"""Kinds of failures that concern all requests to the backend, not a single request."""


class RefusedParameter(Struct, frozen=True):
    """An optional parameter that a provider rejected.

    Args:
        settings: The settings that the parameter encodes, by their names in `Settings.omitted`.
        is_value: True if the provider rejects only this value, False if it does not support the parameter.
        otherwise: The kind of failure if the request does not contain the parameter.
    """

    settings: tuple[str, ...]
    is_value: bool
    otherwise: Kind = "transcript"


class Failure(Struct, frozen=True):
    """A classified failure of a provider.

    Args:
        kind: The cause.
        action: The reaction. `retry` tries the same backend again, and `next_backend` tries another backend. `compact`
            shortens the history and then tries once more, and `leave_out` omits the rejected part and then tries once
            more. `our_bug` reports a bug of this library. `give_up` ends the ask.
        message: The provider's message on one line, shortened, without credentials.
        status: The HTTP status, or the equivalent status of an error inside a response with status 200. It is None if
            it is unknown.
        code: The provider's error code, or its error type if it sends no code.
        retry_after: Seconds that the provider asks its clients to wait, from 0 to a day; None if it does not say.
        rule: Rulebook id of the violated rule, if the wording is known.
        place: The part of the request that the provider names in a separate field (`param`, `loc`), if any.
        error: Name of the exception class, if an exception caused the failure.
        parameter: The rejected optional parameter, if the kind is `parameter`.
    """

    kind: Kind
    action: Action
    message: str
    status: int | None = None
    code: str | None = None
    retry_after: float | None = None
    rule: str | None = None
    place: str | None = None
    parameter: RefusedParameter | None = None
    error: str = "StreamFault"

    @property
    def error_type(self) -> str:
        """The HTTP status, or the name of the exception class if there is no status: `error.type` in OpenTelemetry."""
        return self.error if self.status is None else str(self.status)


class AnswerFault(StreamFault):
    """The only error that a decoder raises: the answer reported an error, broke off, or cannot be decoded."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, status=failure.status, retry_after=failure.retry_after)
        self.failure = failure


def answer_fault(message: str, kind: Kind = "transient", code: str | None = None) -> AnswerFault:
    """Return the exception for an unusable answer. The default `kind` allows a retry of the request."""
    return AnswerFault(Failure(kind, ACTIONS[kind], message, code=code))
