"""Check the classification of Bedrock errors by their header and message."""

import json

import pytest

from actors.adapters.classify import classify
from actors.adapters.failure import Failure
from actors.core.dialects.profiles import BEDROCK

WRAPPED = "The model returned the following errors: "


def failure(status: int, kind: str, message: str = "Words.") -> Failure:
    header = (
        {"x-amzn-ErrorType": f"{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"} if kind else {}
    )
    return classify(status, header, json.dumps({"message": message}).encode(), BEDROCK)


@pytest.mark.parametrize(
    ("status", "kind", "meant", "action"),
    [
        (429, "ThrottlingException", "rate_limit", "retry"),
        (429, "ModelNotReadyException", "transient", "retry"),
        (408, "ModelTimeoutException", "transient", "retry"),
        (424, "ModelErrorException", "transient", "retry"),
        (500, "InternalServerException", "transient", "retry"),
        (503, "ServiceUnavailableException", "transient", "retry"),
        (400, "ServiceQuotaExceededException", "quota", "next_backend"),
        (403, "AccessDeniedException", "config", "next_backend"),
        (404, "ResourceNotFoundException", "config", "next_backend"),
        (400, "ValidationException", "transcript", "our_bug"),
    ],
)
def test_the_error_type_header_determines_the_kind_of_failure(
    status: int, kind: str, meant: str, action: str
) -> None:
    found = failure(status, kind)
    assert (found.kind, found.action, found.code, found.message) == (meant, action, kind, "Words.")


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("The content field in the Message object at messages.1 is empty. Add a block.", "BED-05"),
        (
            "1 validation error detected: Value 'a b' at 'x' failed to satisfy constraint: Member must satisfy "
            "regular expression pattern: [a-zA-Z0-9_.:-]+",
            "BED-08",
        ),
        (WRAPPED + "something unheard of", "BED-10"),
        (
            "Malformed input request: #: extraneous key [toolResult] is not permitted, please reformat",
            "BED-11",
        ),
    ],
)
def test_a_structure_error_is_classified_as_a_bug_of_this_library_and_names_its_rule(
    message: str, rule: str
) -> None:
    for kind in ("ValidationException", ""):
        found = failure(400, kind, message)
        assert (found.kind, found.action, found.rule) == ("transcript", "our_bug", rule)


@pytest.mark.parametrize(
    "message",
    [
        "Input is too long for requested model.",
        WRAPPED + "prompt is too long: 213462 tokens > 200000 maximum",
    ],
)
def test_a_context_overflow_triggers_compaction(message: str) -> None:
    found = failure(400, "ValidationException", message)
    assert (found.kind, found.action, found.rule) == ("overflow", "compact", "BED-12")


def test_an_unknown_model_or_an_exhausted_daily_quota_leads_to_failover() -> None:
    gone = failure(400, "ValidationException", "The provided model identifier is invalid.")
    assert (gone.kind, gone.rule) == ("config", "BED-14")
    spent = failure(429, "ThrottlingException", "Too many tokens per day, please wait before trying again.")
    assert (spent.kind, spent.action) == ("quota", "next_backend")


def test_an_error_type_header_may_lack_its_url_or_have_a_namespace() -> None:
    for header in ("ThrottlingException", "com.amazon.coral#ThrottlingException"):
        found = classify(429, {"x-amzn-errortype": header}, b"{}", BEDROCK)
        assert (found.kind, found.code) == ("rate_limit", "ThrottlingException")
