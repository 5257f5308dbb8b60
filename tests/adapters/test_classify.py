"""Check the classification of errors by status and message, and every form of retry delay."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.adapters.classify import MAX_SEARCHED, classify, classify_in_answer
from actors.adapters.failure import ACTIONS, Failure, failure_from_finish_reason
from actors.adapters.retry_after import MAX_WAIT
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


def openai(status: int, message: str = "", code: object = None, kind: str = "") -> Failure:
    error = {"message": message, "type": kind or "invalid_request_error", "param": None, "code": code}
    return classify(status, {}, json.dumps({"error": error}).encode(), OPENAI_CHAT)


def anthropic(status: int, kind: str, message: str, **details: object) -> Failure:
    error = {"type": kind, "message": message, "details": details}
    return classify(status, {}, json.dumps({"type": "error", "error": error}).encode(), ANTHROPIC)


def responses(message: str, code: str | None = None) -> Failure:
    error = {"message": message, "type": "invalid_request_error", "param": "input", "code": code}
    return classify(400, {}, json.dumps({"error": error}).encode(), OPENAI_RESPONSES)


def classify_error(message: str) -> Failure:
    return anthropic(400, "invalid_request_error", message)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, "transient") for status in (408, 409, 424, 500, 502, 503, 504, 520, 529)),
        *((status, "config") for status in (301, 401, 403, 404, 405, 410)),
        (400, "transcript"),
        (422, "transcript"),
        (402, "quota"),
        (413, "overflow"),
        (429, "rate_limit"),
    ],
)
@pytest.mark.parametrize("dialect", [OPENAI_CHAT, ANTHROPIC], ids=lambda dialect: dialect.name)
def test_the_http_status_classifies_a_failure_with_an_unknown_error_message(
    dialect: Dialect, status: int, kind: str
) -> None:
    failure = classify(status, {}, b'{"error":{"message":"something unheard of"}}', dialect)
    assert (failure.kind, failure.status, failure.rule) == (kind, status, None)
    assert failure.message == "something unheard of"
    assert failure.action == ACTIONS[failure.kind]


def test_the_kind_of_a_failure_decides_how_the_runtime_reacts() -> None:
    assert ACTIONS == {
        "transient": "retry",
        "rate_limit": "retry",
        "quota": "next_backend",
        "too_big_for_bucket": "compact",
        "overflow": "compact",
        "transcript": "our_bug",
        "media": "leave_out",
        "parameter": "leave_out",
        "model_fault": "retry",
        "too_long": "next_backend",
        "config": "next_backend",
        "refusal": "give_up",
        "overloaded": "next_backend",
        "circuit_open": "next_backend",
    }


RATE = (
    "Rate limit reached for gpt-5.5 on tokens per min (TPM): Limit 50000, Used 47949, Requested 3006. "
    "Please try again in 1.146s."
)
TOO_BIG = (
    "Request too large for gpt-4o in organization x on tokens per min (TPM): Limit 30000, Requested 34307."
)
PAIRING = "An assistant message with 'tool_calls' must be followed by tool messages responding to each id."


@pytest.mark.parametrize(
    ("failure", "kind", "rule"),
    [
        (openai(429, RATE, "rate_limit_exceeded", "tokens"), "rate_limit", None),
        (openai(429, TOO_BIG, "rate_limit_exceeded", "tokens"), "too_big_for_bucket", None),
        (openai(413, "Request too large for model on tokens per min"), "too_big_for_bucket", None),
        (openai(429, "You exceeded your current quota", "insufficient_quota"), "quota", None),
        (openai(429, "busy", None, "engine_overloaded_error"), "transient", None),
        (openai(429, "x", None, "exceeded_current_quota_error"), "quota", None),
        (openai(400, PAIRING), "transcript", "OAC-01"),
        (openai(400, "x", "context_length_exceeded"), "overflow", "OAC-15"),
        (
            openai(400, "Invalid 'messages[3].tool_calls[0].function.arguments': string too long."),
            "transcript",
            "OAC-14",
        ),
        (openai(403, "Your input was flagged"), "refusal", None),
        (openai(404, "The model `x` does not exist", "model_not_found"), "config", "OAC-16"),
        (openai(400, "'temperature' does not support 0", "unsupported_value"), "parameter", "OAC-18"),
        (openai(400, "Failed to call a function.", "tool_use_failed"), "model_fault", None),
        (openai(400, "The response was filtered", "content_filter"), "refusal", None),
        (openai(400, "request (9 tokens) exceeds the available context size"), "overflow", "OAC-15"),
        (openai(401, "Incorrect API key provided", "invalid_api_key"), "config", None),
        (
            responses(
                "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'r'."
            ),
            "transcript",
            "OAR-04",
        ),
        (responses("Duplicate item found with id rs_1."), "transcript", "OAR-07"),
        (
            responses(
                "The encrypted content for item rs_2 could not be verified.", "invalid_encrypted_content"
            ),
            "transcript",
            "OAR-09",
        ),
        (responses("The requested model 'x' does not exist.", "model_not_found"), "config", "OAR-12"),
        (anthropic(529, "overloaded_error", "Overloaded"), "transient", None),
        (anthropic(500, "api_error", "Internal server error"), "transient", None),
        (
            anthropic(429, "rate_limit_error", "your rate limit of 30,000 input tokens per minute"),
            "rate_limit",
            None,
        ),
        (anthropic(429, "rate_limit_error", "x", error_code="enforced_spend_limit_reached"), "quota", None),
        (anthropic(402, "billing_error", "x"), "quota", None),
        (classify_error("Your credit balance is too low to access"), "quota", None),
        (anthropic(413, "request_too_large", "Request exceeds the maximum size"), "overflow", None),
        (
            classify_error("messages.2.content.1.tool_use.id: String should match pattern '^x$'"),
            "transcript",
            "ANT-07",
        ),
        (
            classify_error("Invalid `signature` in `thinking` block. Bound to a different conversation."),
            "transcript",
            "ANT-44",
        ),
        (anthropic(404, "not_found_error", "model: claude-none"), "config", "ANT-38"),
        (anthropic(403, "permission_error", "x"), "config", None),
    ],
)
def test_a_known_error_message_decides_the_kind_of_a_failure(
    failure: Failure, kind: str, rule: str | None
) -> None:
    assert (failure.kind, failure.rule) == (kind, rule)


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (400, b"", "overflow", "HTTP 400 without a message"),
        (413, b"", "overflow", "HTTP 413 without a message"),
        (
            502,
            b"<html>\n<h1>502 Bad   Gateway</h1></html>",
            "transient",
            "HTTP 502: Bad Gateway",
        ),
        (
            400,
            b'{"code":"x","error":"maximum prompt length is 131072 but"}',
            "overflow",
            "maximum prompt length is 131072 but",
        ),
        (
            400,
            b'{"object":"error","message":"Conversation roles must alternate","code":400}',
            "transcript",
            "Conversation roles must alternate",
        ),
        (
            422,
            b'{"detail":[{"loc":["body"],"msg":"extra"}]}',
            "transcript",
            '[{"loc":["body"],"msg":"extra"}]',
        ),
        (
            400,
            b'[{"error":{"code":400,"message":"input token count 9 exceeds the maximum"}}]',
            "overflow",
            "input token count 9 exceeds the maximum",
        ),
        (400, b'{"error":{"code":"1214","message":"\xe8\xbe\x93\xe5\x85\xa5"}}', "transcript", "输入"),
        (500, b"[]", "transient", "HTTP 500 without a message"),
        (500, b"null", "transient", "HTTP 500 without a message"),
        (500, b'{"error":{"message":{"a":1}}}', "transient", "HTTP 500 without a message"),
        (500, b"[" * 100_000, "transient", "[" * 499 + "…"),
    ],
)
def test_error_messages_are_extracted_from_error_bodies_of_every_form(
    status: int, body: bytes, kind: str, message: str
) -> None:
    failure = classify(status, {}, body, OPENAI_CHAT)
    assert (failure.kind, failure.message) == (kind, message)


def test_the_error_wrapped_by_a_gateway_is_classified() -> None:
    upstream = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "`tool_use` ids must be unique"},
    }
    wrapped = {"code": 400, "message": "Provider returned error", "metadata": {"raw": json.dumps(upstream)}}
    failure = classify(400, {}, json.dumps({"error": wrapped}).encode(), OPENAI_CHAT)
    assert (failure.kind, failure.rule, failure.message) == (
        "transcript",
        "ANT-05",
        "`tool_use` ids must be unique",
    )
    twice = {"code": 400, "message": "outer", "metadata": {"raw": {"error": wrapped}}}
    assert classify(400, {}, json.dumps({"error": twice}).encode(), OPENAI_CHAT).rule == "ANT-05"
    plain = {"message": "Provider returned error", "metadata": {"raw": "prompt is too long"}}
    assert classify(400, {}, json.dumps({"error": plain}).encode(), OPENAI_CHAT).kind == "overflow"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, "", None),
        ({"retry-after": "7"}, "", 7.0),
        ({"Retry-After": " 0.25 "}, "", 0.25),
        ({"retry-after-ms": "1500", "retry-after": "7"}, "", 1.5),
        ({"retry-after-ms": "soon", "retry-after": "7"}, "", 7.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:01:30 GMT"}, "", 90.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, "", 0.0),
        ({"retry-after": "-5"}, "", 0.0),
        ({"retry-after": "0"}, "", 0.0),
        ({"retry-after": "999999999999"}, "", MAX_WAIT),
        ({"retry-after": "1e999"}, "", MAX_WAIT),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "a while"}, "", None),
        ({"retry-after": "Fri, 99 Jan 2027 08:01:30 GMT"}, "", None),
        ({"retry-after": ""}, "", None),
        ({"retry-after": "soon"}, "Please try again in 3s.", 3.0),
        ({}, "Please try again in 1.146s. Visit", 1.146),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please try again in 1m2s.", 62.0),
        ({}, "please try again in 1h2m3.5s", 3723.5),
        ({}, "Please retry after 30 seconds", 30.0),
        ({}, "try again in 2 minutes", 120.0),
        ({}, "try again in 5 moons", None),
        ({}, "try again in a moment", None),
    ],
)
def test_every_form_of_retry_delay_is_parsed(
    headers: dict[str, str], body: str, seconds: float | None
) -> None:
    content = json.dumps({"error": {"message": body}}).encode()
    failure = classify(429, headers, content, OPENAI_CHAT, now=NOW)
    assert failure.retry_after == (None if seconds is None else pytest.approx(seconds))


def test_a_retry_date_is_ignored_without_a_clock() -> None:
    headers = {"retry-after": "Fri, 15 Jan 2027 08:01:30 GMT"}
    assert classify(503, headers, b"", OPENAI_CHAT).retry_after is None


def test_a_retry_delay_in_the_error_details_is_parsed() -> None:
    body = {"error": {"message": "x", "details": [{"@type": "RetryInfo", "retryDelay": "31s"}]}}
    assert classify(429, {}, json.dumps(body).encode(), OPENAI_CHAT).retry_after == 31.0


@pytest.mark.parametrize(
    ("status", "message", "header", "action"),
    [
        (500, "x", "false", "next_backend"),
        (429, "x", "false", "next_backend"),
        (500, "x", "true", "retry"),
        (404, "x", "true", "retry"),
        (400, PAIRING, "true", "our_bug"),
        (400, "prompt is too long", "true", "compact"),
        (429, "You exceeded your current quota", "true", "next_backend"),
        (404, "x", "maybe", "next_backend"),
    ],
)
def test_the_header_x_should_retry_is_obeyed_except_for_structure_errors(
    status: int, message: str, header: str, action: str
) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    assert classify(status, {"X-Should-Retry": header}, body, OPENAI_CHAT).action == action


SECRET = "Zm9vYmFyYmF6cXV4"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: sk-proj-{SECRET}. You can find",
        f"Incorrect API key provided: sk-ab***{SECRET}.",
        f"Authorization: Bearer {SECRET} is not valid",
        f"bad api_key={SECRET}, sorry",
        f'{{"token": "{SECRET}"}}',
        f"cannot reach https://user:{SECRET}@host/v1",
        f"key sk-ant-api03-{SECRET}-x",
        f"AIza{SECRET} expired",
    ],
)
def test_credentials_are_removed_from_error_messages(text: str) -> None:
    assert SECRET not in openai(401, text).message
    assert SECRET not in classify(401, {}, text.encode(), OPENAI_CHAT).message
    assert SECRET not in classify_in_answer({"error": {"message": text}}, ANTHROPIC).message


def test_call_ids_are_not_redacted_in_error_messages() -> None:
    message = "ids were found without `tool_result` blocks immediately after: toolu_01AbCdEfGhIjKlMnOpQrStUv."
    assert classify_error(message).message == message


def test_an_error_inside_an_answer_is_classified_like_a_response_with_its_status() -> None:
    for type_, status in (
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("invalid_request_error", 400),
    ):
        inside = classify_in_answer(
            {"type": "error", "error": {"type": type_, "message": "Words"}}, ANTHROPIC
        )
        assert inside == anthropic(status, type_, "Words")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", "transient"),
        ("rate_limit_exceeded", "rate_limit"),
        ("invalid_prompt", "refusal"),
        ("bio_policy", "refusal"),
        ("misalignment_policy_violation", "refusal"),
        ("image_content_policy_violation", "refusal"),
        ("data_residency_mismatch", "config"),
        *(
            (code, "media")
            for code in (
                "failed_to_download_image",
                "invalid_image",
                "invalid_base64_image",
                "invalid_image_mode",
                "invalid_image_format",
                "image_too_large",
                "image_file_too_large",
                "image_too_small",
                "image_parse_error",
                "empty_image_file",
                "unsupported_image_media_type",
                "image_file_not_found",
            )
        ),
    ],
)
def test_the_error_code_of_a_failed_response_decides_how_the_runtime_reacts(code: str, kind: str) -> None:
    assert classify_in_answer({"error": {"code": code, "message": "Words"}}, OPENAI_RESPONSES).kind == kind


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("model_context_window_exceeded", "overflow"),
        ("model_length", "overflow"),
        ("content_filter", "refusal"),
        ("refusal", "refusal"),
        ("malformed_tool_use", "model_fault"),
        ("stop", None),
        ("tool_use", None),
        ("max_tokens", None),
        ("anything", None),
    ],
)
def test_some_stop_reasons_are_classified_as_failures(reason: str, kind: str | None) -> None:
    failure = failure_from_finish_reason(reason)
    assert (failure and failure.kind) == kind


@given(
    status=st.integers(100, 999),
    headers=st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry"]), st.text()),
    body=st.binary(max_size=200),
)
def test_classification_never_raises(status: int, headers: dict[str, str], body: bytes) -> None:
    failure = classify(status, headers, body, OPENAI_CHAT, now=NOW)
    assert "\n" not in failure.message
    assert len(failure.message) <= 500
    assert failure.retry_after is None or 0 <= failure.retry_after <= MAX_WAIT


@pytest.mark.parametrize("field", ["message", "type", "code"])
def test_only_the_start_and_the_end_of_a_long_error_are_searched(field: str) -> None:
    """Searching a message of 64 KiB for all known wordings would block the event loop for half a minute."""

    def kinds(text: str) -> set[str]:
        error = {"message": "no", field: text}
        return {
            classify(400, {}, json.dumps({"error": error}).encode(), OPENAI_CHAT).kind,
            classify_in_answer({"error": {**error, "status": 400}}, OPENAI_CHAT).kind,
        }

    filler, words = "cannot " * 2_000, "credit balance is too low"
    assert kinds(f"{words} {filler}") == {"quota"}
    assert kinds(f"{filler} {words}") == {"quota"}
    assert "quota" not in kinds(f"{filler} {words} {filler}")
    assert len(filler) > MAX_SEARCHED


def test_only_the_start_of_a_long_error_is_searched_for_a_requested_wait() -> None:
    def wait(text: str) -> float | None:
        return classify_in_answer({"error": {"message": text, "code": 429}}, OPENAI_CHAT).retry_after

    assert wait("Please try again in 7s.") == 7
    assert wait(f"{'busy ' * 20_000}Please try again in 7s.") is None
