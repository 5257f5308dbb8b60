"""Check the classification of Google errors, from the strict server and the real host."""

import json
from typing import Any

import pytest

from actors.adapters.classify import classify, classify_in_answer
from actors.adapters.failure import Failure, failure_from_finish_reason
from actors.core.dialects.profiles import GEMINI
from actors.core.rulebook import RULES
from actors.strict.rules import GeminiSettings
from actors.strict.rules.base import ServerRefusal
from actors.strict.wires.gemini import GeminiWire


def answer_failure(status: int, kind: str, message: str, *details: Any) -> Failure:  # Any: JSON
    error = {"code": status, "message": message, "status": kind, "details": list(details)}
    return classify(status, {}, json.dumps({"error": error}).encode(), GEMINI)


def quota(name: str) -> dict[str, Any]:  # Any: JSON
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31.5s"}
EXCEEDED = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("failure", "kind", "rule", "wait"),
    [
        (answer_failure(429, "RESOURCE_EXHAUSTED", EXCEEDED, RETRY), "rate_limit", "GEM-15", 31.5),
        (
            answer_failure(
                429, "RESOURCE_EXHAUSTED", EXCEEDED, quota("GenerateRequestsPerMinutePerProject"), RETRY
            ),
            "rate_limit",
            "GEM-15",
            31.5,
        ),
        (
            answer_failure(
                429, "RESOURCE_EXHAUSTED", EXCEEDED, quota("GenerateRequestsPerDayPerProjectPerModel"), RETRY
            ),
            "quota",
            "GEM-15",
            31.5,
        ),
        (
            answer_failure(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later."),
            "rate_limit",
            None,
            None,
        ),
        (
            answer_failure(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            "transient",
            "GEM-14",
            None,
        ),
        (answer_failure(500, "INTERNAL", "An internal error has occurred."), "transient", None, None),
        (
            answer_failure(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            "config",
            None,
            None,
        ),
        (answer_failure(400, "FAILED_PRECONDITION", "User location is not supported."), "config", None, None),
        (
            answer_failure(403, "PERMISSION_DENIED", "The caller does not have permission"),
            "config",
            None,
            None,
        ),
        (answer_failure(400, "INVALID_ARGUMENT", "something unheard of"), "transcript", None, None),
    ],
)
def test_each_failure_is_classified_with_its_kind_its_rule_and_its_retry_delay(
    failure: Failure, kind: str, rule: str | None, wait: float | None
) -> None:
    assert (failure.kind, failure.rule, failure.retry_after) == (kind, rule, wait)


def test_the_code_of_a_failure_is_the_status_of_the_provider() -> None:
    assert (
        answer_failure(404, "NOT_FOUND", "models/x is not found for API version v1beta").code == "NOT_FOUND"
    )


def test_an_error_in_a_stream_is_classified_by_its_code() -> None:
    failure = classify_in_answer(
        {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}, GEMINI
    )
    assert (failure.kind, failure.status) == ("transient", 503)
    named = classify_in_answer({"error": {"message": "slow down", "status": "RESOURCE_EXHAUSTED"}}, GEMINI)
    assert (named.kind, named.status) == ("rate_limit", 429)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("MALFORMED_FUNCTION_CALL", "model_fault"),
        ("UNEXPECTED_TOOL_CALL", "model_fault"),
        ("MISSING_THOUGHT_SIGNATURE", "transcript"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("SAFETY", "refusal"),
        ("STOP", None),
        ("MAX_TOKENS", None),
    ],
)
def test_some_stop_reasons_are_classified_as_failures(reason: str, kind: str | None) -> None:
    failure = failure_from_finish_reason(reason)
    assert (failure.kind if failure else None) == kind


def test_every_rule_is_recognised_by_its_error_message() -> None:
    for rule in RULES.values():
        if rule.id.startswith("GEM-") and rule.refusal:
            status = {"GEM-13": 404, "GEM-14": 503, "GEM-15": 429}.get(rule.id, 400)
            kind = {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 404: "NOT_FOUND"}.get(
                status, "INVALID_ARGUMENT"
            )
            refusal = ServerRefusal(rule.id, status, kind, None, None, rule.refusal)
            assert (
                classify(status, {}, GeminiWire(GeminiSettings()).encode_error(refusal, 0), GEMINI).rule
                == rule.id
            )
