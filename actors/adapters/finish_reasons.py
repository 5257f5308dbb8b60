"""Read finish reasons: whether an answer is complete, and whether the reason reports a failure.

Decoders use this module. It is separate from `actors.adapters.classify`, because every answer has a finish reason, but
few answers contain an error whose wording must be classified.
"""

from collections.abc import Mapping
from functools import lru_cache

from actors.adapters.failure import ACTIONS, Failure, Kind
from actors.core.values.stream import Cut

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


def _normal_finish_reason(reason: str) -> str:
    """Return a finish reason in a common form, because relays spell `TOOL_CALLS` as `tool-calls` or `toolCalls` as
    well.
    """
    return reason.casefold().replace("_", "").replace("-", "").replace(" ", "")


_KIND_OF_FINISH: Mapping[str, Kind] = {
    _normal_finish_reason(reason): kind for kind, reasons in _REASONS.items() for reason in reasons.split()
}
"""Finish reasons that report a failure. The keys are in the form that `_normal_finish_reason` returns."""

_CUTS: dict[Cut, str] = {
    "length": "length max_tokens max_output_tokens max_length token_limit incomplete",
    "paused": "pause_turn CONTINUATION compaction",
    "fault": "abort aborted cancelled IMAGE_OTHER NO_IMAGE",
}
_CUT_OF_FINISH: Mapping[str, Cut] = {
    _normal_finish_reason(reason): kind for kind, reasons in _CUTS.items() for reason in reasons.split()
}
"""Finish reasons of incomplete answers, in addition to those that report a failure."""

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
