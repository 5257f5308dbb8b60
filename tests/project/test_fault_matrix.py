"""The fault matrix: possible failures of providers, tools, processes, storage, clocks and the scheduler.

Each row names the tests that cover it, by file. This module checks that they exist.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

MATRIX: dict[str, dict[str, tuple[str, ...]]] = {
    "provider: refuse, reset, DNS, TLS": {
        "provider/test_retries.py": ("test_a_connection_that_cannot_be_made_is_retried",),
        "provider/test_failover.py": (
            "test_a_refused_connection_leads_to_the_next_backend",
            "test_a_round_that_fails_before_output_continues_on_the_next_backend",
        ),
        "provider/test_unreachable.py": (
            "test_an_unreachable_backend_is_retried_before_the_next_backend_answers",
            "test_an_ask_of_an_unreachable_backend_fails_with_a_short_error",
        ),
        "transport/test_faults.py": ("test_an_invalid_answer_raises_a_typed_error_and_frees_its_slot",),
        "transport/test_tls.py": (
            "test_a_bad_certificate_is_refused_and_nothing_is_sent",
            "test_a_connection_that_ends_in_the_handshake_raises_a_typed_error",
        ),
    },
    "provider: no first byte, stall between bytes": {
        "session/test_settings.py": (
            "test_the_timeouts_of_an_ask_override_the_timeouts_of_its_backend",
            "test_an_ask_that_exceeds_its_timeout_fails_and_closes_every_call",
        ),
        "provider/test_provider.py": ("test_a_silent_server_is_abandoned_after_its_timeout",),
        "transport/test_faults.py": ("test_bytes_without_content_do_not_extend_a_timeout",),
    },
    "provider: disconnect at every byte": {
        "commands/test_cut_sessions.py": (
            "test_an_ask_with_a_truncated_answer_ends_once_and_runs_no_partial_call",
        ),
        "adapters/test_decode_cuts.py": (
            "test_a_truncated_stream_is_reported_as_a_fault_and_keeps_no_partial_call",
        ),
        "adapters/test_every_dialect_cut.py": (
            "test_a_truncated_answer_is_complete_or_a_fault_without_partial_calls",
        ),
        "transport/test_faults.py": ("test_a_connection_that_ends_at_any_byte_frees_its_slot",),
    },
    "provider: statuses from 400 to 529": {
        "session/test_faulty_streams.py": (
            "test_the_http_status_of_an_error_decides_whether_its_request_is_retried",
        ),
        "adapters/test_classify.py": (
            "test_the_http_status_classifies_a_failure_with_an_unknown_error_message",
        ),
        "runtime/test_stats.py": ("test_the_counters_equal_recounts_of_the_logs_and_of_the_events",),
    },
    "provider: 200 with an error inside the stream": {
        "session/test_faulty_streams.py": (
            "test_an_error_event_in_a_stream_is_classified_like_its_http_status",
            "test_an_error_event_after_text_is_not_retried",
        ),
    },
    "provider: malformed server-sent events": {
        "session/test_faulty_streams.py": (
            "test_an_unusual_but_valid_stream_is_read_normally",
            "test_a_flood_of_comments_in_a_stream_is_skipped",
            "test_an_unreadable_stream_is_a_transient_failure_and_is_retried",
        ),
        "adapters/test_sse.py": ("test_events_do_not_depend_on_how_the_bytes_are_split",),
    },
    "provider: invalid arguments": {
        "session/test_faulty_calls.py": (
            "test_a_call_with_arguments_that_are_not_an_object_runs_no_tool_and_is_corrected_once",
            "test_a_model_that_keeps_writing_bad_arguments_loses_its_tools",
        ),
    },
    "provider: malformed calls": {
        "session/test_faulty_calls.py": (
            "test_each_call_runs_once_under_a_unique_id_in_every_form_of_streaming",
            "test_call_arguments_without_a_tool_name_run_no_tool_and_are_reported",
            "test_calls_beyond_the_limit_per_message_get_error_results",
            "test_calls_run_for_every_stop_reason",
            "test_a_stream_is_complete_at_its_end_marker",
        ),
    },
    "provider: gzip bomb, endless stream": {
        "session/test_faulty_streams.py": (
            "test_an_endless_answer_is_aborted_at_the_size_limit_and_not_retried",
            "test_an_endless_body_is_aborted_at_the_size_limit",
            "test_an_endless_text_is_kept_up_to_the_limit_without_failover",
        ),
        "transport/test_resending.py": ("test_compression_is_neither_requested_nor_decoded",),
    },
    "process: kill -9 at any crossing": {
        "commands/test_killing.py": (
            "test_after_a_kill_at_any_point_another_process_continues_without_loss_or_repetition",
        ),
        "runtime/test_durability.py": ("test_a_durable_event_survives_kill_9_at_any_step_of_a_write",),
    },
    "process: SIGSTOP, SIGCONT": {
        "runtime/test_takeover.py": (
            "test_a_suspended_host_writes_nothing_to_sessions_that_were_taken_over_meanwhile",
            "test_a_stopped_and_resumed_runtime_ends_only_the_sessions_that_were_taken_over",
            "test_racing_claims_get_increasing_fencing_numbers_and_logs_keep_the_order_of_claims",
        ),
        "commands/test_fencing.py": (
            "test_only_one_of_many_concurrent_open_calls_gets_the_session",
            "test_only_one_of_two_competing_processes_gets_the_session",
        ),
    },
    "process: SIGTERM or SIGINT, once and twice": {
        "commands/test_signals.py": (
            "test_a_command_ended_by_a_signal_has_the_right_exit_code_and_a_usable_journal",
        ),
        "cli/test_run.py": (
            "test_a_signal_cancels_the_turn_and_determines_the_exit_code",
            "test_a_blocking_tool_does_not_delay_an_interrupt",
        ),
        "commands/test_shutdowns.py": ("test_a_separate_program_ends_correctly_without_error_output",),
    },
    "process: the event loop is blocked by an async tool": {
        "scheduler/test_runaway_tools.py": (
            "test_a_tool_that_blocks_the_loop_is_named_with_its_code_location",
        ),
    },
    "tool: hangs, or swallows every cancellation": {
        "scheduler/test_isolation.py": ("test_a_hanging_tool_blocks_only_its_own_session",),
        "session/test_cancel.py": ("test_a_tool_that_blocks_its_thread_is_closed_after_the_grace_period",),
        "commands/test_cancels.py": (
            "test_a_batch_cancelled_while_its_start_is_written_starts_no_tool",
            "test_after_random_cancels_every_call_is_closed_and_new_requests_are_served",
        ),
        "scheduler/test_runaway_tools.py": (
            "test_a_tool_with_running_abandoned_calls_is_disabled_until_they_end",
        ),
        "scheduler/test_tools_at_the_edge.py": (
            "test_a_tool_that_swallows_cancellation_is_not_woken_after_its_call_is_closed",
        ),
    },
    "tool: raises anything": {
        "scheduler/test_isolation.py": ("test_a_misbehaving_tool_affects_only_the_result_of_its_call",),
        "commands/test_bad_tools.py": ("test_a_bad_tool_in_one_session_changes_nothing_in_other_sessions",),
    },
    "tool: returns anything": {
        "scheduler/test_isolation.py": ("test_a_misbehaving_tool_affects_only_the_result_of_its_call",),
        "scheduler/test_large_results.py": (
            "test_other_sessions_continue_while_a_large_result_is_converted",
            "test_a_result_is_cut_at_its_limit_with_a_visible_mark",
        ),
        "core/test_ingest.py": (
            "test_a_value_without_a_json_form_is_replaced_by_a_marker",
            "test_nesting_is_cut_at_the_depth_limit_and_marked",
        ),
        "scheduler/test_tools_at_the_edge.py": (
            "test_a_coroutine_returned_together_with_a_cancellation_is_closed",
        ),
    },
    "tool: changes its arguments, or later what it returned": {
        "scheduler/test_isolation.py": ("test_a_misbehaving_tool_affects_only_the_result_of_its_call",),
        "core/test_ingest.py": ("test_changing_a_value_later_does_not_change_its_ingested_json",),
    },
    "tool: starts tasks, threads or processes and returns": {
        "scheduler/test_tools_at_the_edge.py": (
            "test_a_tool_that_leaves_a_task_group_open_affects_no_other_session",
            "test_the_runtime_does_not_wait_for_threads_and_processes_that_a_tool_started",
        ),
    },
    "tool: calls back into its own session": {
        "scheduler/test_isolation.py": (
            "test_a_tool_that_uses_its_own_session_gets_an_error_without_details",
            "test_a_tool_cannot_close_a_parent_session_or_ask_a_sibling",
        ),
    },
    "storage: short write, failing disk, full, too large, locked, read-only, moved": {
        "journal/test_unavailable.py": (
            "test_writes_fail_with_a_typed_error_during_a_disk_fault_and_lose_nothing",
            "test_a_journal_that_is_not_open_is_not_read_from_a_replaced_file",
            "test_a_read_only_file_is_refused_until_it_is_writable",
            "test_a_deleted_lock_file_still_excludes_a_second_writer",
            "test_a_wal_with_a_replaced_index_is_no_longer_read",
            "test_a_lock_error_names_the_process_that_holds_the_lock",
            "test_an_sqlite_lock_error_names_the_process_that_holds_the_lock",
        ),
        "journal/test_outages.py": (
            "test_an_ask_fails_at_any_refused_write_and_the_session_resumes",
            "test_an_outage_refuses_requests_and_leaves_an_idle_session_unchanged",
            "test_passivation_after_an_outage_fails_callers_and_cancels_tools",
            "test_a_session_that_another_writer_has_claimed_ends_and_affects_no_other_session",
            "test_a_paused_turn_survives_any_refused_write_of_its_results",
            "test_a_subagent_ends_with_its_call_at_any_refused_write",
            "test_a_passivated_session_keeps_no_log_state_in_memory",
        ),
        "journal/test_outages_of_files.py": (
            "test_a_session_continues_after_any_file_fault_during_a_turn",
            "test_exiting_the_runtime_during_a_file_fault_keeps_durable_events",
        ),
        "journal/test_journal.py": ("test_an_event_after_a_refused_event_is_refused",),
        "journal/test_slow_journal.py": (
            "test_stats_and_prometheus_report_an_outage_with_its_start_and_reason",
        ),
    },
    "storage: a loss of power, a torn tail, a flipped bit": {
        "commands/test_power_loss.py": (
            "test_a_power_loss_loses_events_only_at_the_durability_level_process",
        ),
        "journal/test_damage.py": (
            "test_damage_is_reported_with_its_location",
            "test_a_flipped_bit_never_yields_wrong_data",
            "test_a_truncated_wal_is_read_up_to_its_last_complete_record",
            "test_a_flipped_bit_in_the_wal_loses_at_most_the_last_transaction",
        ),
    },
    "storage: a server that fails, and another that takes its place": {
        "commands/test_failover_matrix.py": (
            "test_callers_are_notified_of_each_event_that_a_lagging_standby_lost",
            "test_a_synchronous_standby_loses_no_event",
        ),
    },
    "storage: slow journal": {
        "journal/test_slow_journal.py": (
            "test_a_flood_of_writes_from_one_session_does_not_delay_other_sessions",
            "test_a_slow_journal_first_delays_callers_and_then_refuses_new_work",
            "test_the_expected_wait_covers_the_running_and_queued_batches",
            "test_a_host_busy_with_deletions_keeps_its_lease",
            "test_ledger_history_and_preview_show_only_durable_results",
        ),
    },
    "clock: jumps, stands still, goes backwards": {
        "project/test_clocks.py": (
            "test_the_wall_clock_is_only_read_through_an_argument",
            "test_the_wall_clock_does_not_affect_a_log",
            "test_the_wall_clock_does_not_affect_the_lease_of_a_session",
            "test_the_wall_clock_does_not_affect_the_lifetime_of_a_token",
        ),
    },
    "scheduler: every thread is held by a tool that hangs": {
        "scheduler/test_tools_at_the_edge.py": (
            "test_a_call_is_rejected_if_tools_of_closed_calls_block_every_thread",
            "test_a_closed_call_keeps_its_thread_slot_until_its_tool_returns",
            "test_the_sessions_of_a_process_share_its_threads",
        ),
    },
}
"""The files and tests of each row. Clients have a separate matrix."""


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


@pytest.mark.parametrize("row", MATRIX)
def test_every_row_of_the_matrix_names_existing_tests(row: str) -> None:
    assert MATRIX[row]
    for file, named in MATRIX[row].items():
        assert named
        assert set(named) <= names_in(file), file


def test_the_matrix_contains_every_test_about_faults() -> None:
    mine = (
        "provider/test_unreachable.py",
        "session/test_faulty_calls.py",
        "commands/test_bad_tools.py",
        "commands/test_cancels.py",
        "commands/test_cut_sessions.py",
        "journal/test_unavailable.py",
        "journal/test_outages.py",
        "journal/test_outages_of_files.py",
        "journal/test_slow_journal.py",
        "commands/test_failover_matrix.py",
    )
    named = {(file, test) for row in MATRIX.values() for file, tests in row.items() for test in tests}
    assert {(file, test) for file in mine for test in names_in(file)} <= named
