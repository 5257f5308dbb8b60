"""Scenarios of streams and retries, which no transcript can show."""

from tests.scenarios.case import Scenario

STREAMS = (
    Scenario(
        45,
        "an answer begins with 200 and breaks off with half a call",
        proofs=(
            "tests/provider/test_provider.py"
            "::test_a_stream_that_breaks_inside_a_call_is_retried_and_the_call_runs_once",
            "tests/provider/test_failover.py::test_a_failover_after_a_broken_stream_runs_none_of_its_tool_calls",
            "tests/adapters/test_decode_cuts.py::test_a_truncated_stream_is_reported_as_a_fault_and_keeps_no_partial_call",
            "tests/adapters/test_openai_chat_decode.py::test_an_error_inside_a_200_stream_is_classified",
            "tests/adapters/test_anthropic_decode.py::test_an_error_inside_a_200_stream_is_classified",
        ),
    ),
    Scenario(
        46,
        "a backend goes down in the middle of a batch",
        proofs=(
            "tests/session/test_switching.py::test_a_switch_at_any_moment_never_splits_a_turn",
            "tests/scenarios/test_streams.py"
            "::test_calls_are_completed_if_their_backend_then_fails_and_the_next_backend_answers",
            "tests/runtime/test_acceptance.py::test_pools_and_failover_serve_a_session_with_cancelled_calls",
        ),
    ),
    Scenario(
        47,
        "a 429 says that the request is too large, and waiting never helps",
        proofs=(
            "tests/adapters/test_classify.py::test_a_known_error_message_decides_the_kind_of_a_failure",
            "tests/scenarios/test_streams.py::test_a_request_too_large_for_the_rate_limit_bucket_fails_over_without_waiting",
        ),
    ),
    Scenario(
        48,
        "a refused transcript is hidden by a failover",
        proofs=(
            "tests/provider/test_failover.py::test_a_structurally_refused_request_is_rewritten_once_without_failover",
            "tests/provider/test_failover.py::test_a_second_structural_refusal_fails_over_and_is_reported",
        ),
    ),
    Scenario(
        49,
        "the model writes a call that its own provider cannot read",
        proofs=(
            "tests/adapters/test_gemini_decode.py"
            "::test_a_malformed_call_is_classified_as_a_model_error_and_is_not_stored",
            "tests/scenarios/test_streams.py::test_an_unreadable_call_is_retried_and_not_kept",
            "tests/scenarios/test_streams.py::test_a_turn_fails_after_a_few_unreadable_calls",
        ),
    ),
    Scenario(
        50,
        "the upstream behind a gateway changes in the middle of a session",
        proofs=(
            "tests/adapters/test_vendors.py::test_reasoning_of_another_upstream_is_not_sent_back",
            "tests/scenarios/test_streams.py"
            "::test_reasoning_from_another_upstream_is_dropped_and_the_session_continues",
        ),
    ),
)
