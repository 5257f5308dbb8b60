"""Describe a failed request as one value, the same for a status, a body and an error inside a stream.

The provider actor and the session act on it. The kind names the cause, and the action follows from the kind by the
table below. Nothing here waits, retries or counts.
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
    "too_big_for_bucket": "compact",  # waiting never helps, a smaller request does
    "overflow": "compact",
    "transcript": "our_bug",  # never sent again unchanged, and never hidden by a failover
    "media": "leave_out",
    "parameter": "leave_out",
    "model_fault": "retry",  # the model wrote something its server could not read; it may do better
    "too_long": "next_backend",  # the same server would most likely answer at the same length again
    "config": "next_backend",
    "refusal": "give_up",
    "overloaded": "next_backend",  # these two are ours: nothing was sent
    "circuit_open": "next_backend",
}

TOO_LONG: frozenset[str] = frozenset(kind for kind, action in ACTIONS.items() if action == "compact")
"""Kinds that a shorter request would avoid."""

BACKEND_KINDS: frozenset[Kind] = frozenset(("transient", "rate_limit", "quota", "config"))
"""Kinds that concern the backend, not a single request."""


class RefusedParameter(Struct, frozen=True):
    """An optional parameter that a provider rejected.

    Args:
        settings: The settings behind it, by their names in `Settings.omitted`.
        is_value: Whether the value is rejected; otherwise the provider does not support the parameter at all.
        otherwise: The kind of the failure if the request does not have the parameter.
    """

    settings: tuple[str, ...]
    is_value: bool
    otherwise: Kind = "transcript"


class Failure(Struct, frozen=True):
    """A provider's failure, classified.

    Args:
        action: What to do: `retry` here, try the `next_backend`, `compact` and try once more, treat it as
            `our_bug`, `leave_out` the part that was refused and try once more, or `give_up`.
        message: The provider's words on one line, shortened, credentials removed.
        status: HTTP status, or the one an error inside a 200 stands for; None where neither is known.
        code: The provider's own code, or its type where it has no code.
        retry_after: Seconds the provider asked to wait, 0 to a day; None if it did not say.
        rule: Rulebook id of the provider's rule, if the words are known.
        place: The part of the request that the provider names in a field of its own (`param`, `loc`), if it does.
        error: The class of the error.
        parameter: The optional parameter that was refused; only of kind `parameter`.
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
        """The HTTP status, or the class of the error where there is none: `error.type` in OpenTelemetry."""
        return self.error if self.status is None else str(self.status)


class AnswerFault(StreamFault):
    """The only error that a decoder raises: the answer reported an error, broke off, or is unreadable."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, status=failure.status, retry_after=failure.retry_after)
        self.failure = failure


def answer_fault(message: str, kind: Kind = "transient", code: str | None = None) -> AnswerFault:
    """Return the fault for an unusable answer. It may be retried, unless `kind` says otherwise."""
    return AnswerFault(Failure(kind, ACTIONS[kind], message, code=code))
