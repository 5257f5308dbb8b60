"""Describe a failed request as a `Failure`, whether a status, a body, a finish reason or a stream reported it.

The provider actor and the session react to a `Failure`. `Failure.kind` is the cause, and `ACTIONS` lists the reaction
to each kind. This module does not wait, retry or count.

For the decoders, this module also interprets finish reasons: they show whether an answer is complete, and whether it
failed. `actors.adapters.classify` interprets the wording of errors. It is a separate module that is imported when it is
first needed, because errors are rare.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.values.stream import Cut
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
_REASONS: dict[Kind, str] = {
    "overflow": "model_length model_context_window_exceeded",
    "refusal": "content_filter refusal content_filtered guardrail_intervened SAFETY RECITATION LANGUAGE BLOCKLIST"
    " PROHIBITED_CONTENT SPII MODEL_ARMOR ESCALATION PUP_LIMITED_DISABLED"
    " IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION JAILBREAK"
    " sensitive",  # GLM sends `sensitive`
    "model_fault": "malformed_tool_use malformed_model_output MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL"
    " TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE",
    "transcript": "MISSING_THOUGHT_SIGNATURE",
    "transient": "error OTHER",
}


class RefusedParameter(Struct, frozen=True):
    """An optional parameter that a provider rejected.

    Args:
        settings: The settings that the parameter encodes, by their names in `Settings.omitted`.
        is_value: True if the provider rejects only this value, False if it does not support the parameter.
        otherwise: The kind of failure that is assumed instead if the request does not contain the parameter.
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


def _normal_finish_reason(reason: str) -> str:
    """Return a finish reason in a common form, because relays spell `TOOL_CALLS` as `tool-calls` or `toolCalls` as
    well.
    """
    return reason.casefold().replace("_", "").replace("-", "").replace(" ", "")


_KIND_OF_FINISH: Mapping[str, Kind] = {
    _normal_finish_reason(reason): kind for kind, reasons in _REASONS.items() for reason in reasons.split()
}
"""The kind of failure that a finish reason reports. Reasons are in the form that `_normal_finish_reason` returns."""

_CUTS: dict[Cut, str] = {
    "length": "length max_tokens max_output_tokens max_length token_limit incomplete",
    "paused": "pause_turn CONTINUATION compaction",
    "fault": "abort aborted cancelled IMAGE_OTHER NO_IMAGE",
}
_CUT_OF_FINISH: Mapping[str, Cut] = {
    _normal_finish_reason(reason): kind for kind, reasons in _CUTS.items() for reason in reasons.split()
}
"""Why an answer with this finish reason is incomplete. Reasons that report a failure are in `_KIND_OF_FINISH`."""

_PLAIN = (
    "stop end_turn stop_sequence tool_calls tool_call tool_use tool function_call function_calls completed complete"
    " eos eos_token eos_found end_of_text end_of_turn im_end stop_token stop_word end finish finished done normal"
)
_COMPLETE = frozenset(map(_normal_finish_reason, _PLAIN.split()))
"""Finish reasons of complete answers. A reason that is in none of the three tables is unknown."""

_CUT_OF_KIND: Mapping[Kind, Cut] = {"overflow": "length", "refusal": "filter"}


def failure_from_finish_reason(reason: str) -> Failure | None:
    """Return the failure that a finish reason reports, or None if the reason reports no failure."""
    kind = _KIND_OF_FINISH.get(_normal_finish_reason(reason))
    if kind is None:
        return None
    return Failure(kind, ACTIONS[kind], f"the provider stopped with {reason!r}", code=reason)


@lru_cache(maxsize=256)
def cut_from_finish_reason(reason: str) -> Cut | None:
    """Return why an answer with this finish reason is incomplete, or None if the answer is complete.

    An answer without a reason ("") counts as complete. For an unrecognised reason, the result is `unknown`.
    """
    word = _normal_finish_reason(reason)
    if not word or word in _COMPLETE:
        return None
    if (kind := _KIND_OF_FINISH.get(word)) is not None:
        return _CUT_OF_KIND.get(kind, "fault")
    return _CUT_OF_FINISH.get(word, "unknown")
