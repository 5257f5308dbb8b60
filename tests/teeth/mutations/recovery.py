"""Mutations of the recovery of interrupted logs: closed calls, repeated calls, and new owners."""

from tests.teeth.mutations.mutation import Mutation

RECOVERY_RULES, RECOVERY = "actors/core/session/open_asks.py", "actors/session/child_tasks.py"
AGAIN, CORE = "tests/runtime/test_run_again.py", "tests/core/test_closing.py"
RESUME, CARRIED = "tests/runtime/test_resume.py", "tests/runtime/test_carried_sessions.py"

MUTATIONS = (
    Mutation(
        "recovery: every interrupted call runs again",
        f"{RECOVERY_RULES}:_may_run_again",
        'known is not None and known.status == "pending" and (known.effects != "once")',
        'known is not None and known.status == "pending"',
        (f"{CORE}::test_the_effects_logged_at_the_start_of_a_call_decide_whether_the_call_may_run_again",),
    ),
    Mutation(
        "recovery: a tool that is no longer idempotent runs again",
        f"{RECOVERY}:Recovery._can_run_again",
        'tool is not None and (not tool.is_external) and (tool.effects != "once")',
        "tool is not None and (not tool.is_external)",
        (f"{RESUME}::test_a_call_is_not_run_again_by_a_changed_or_missing_tool",),
    ),
    Mutation(
        "recovery: an interrupted log counts as an idle session",
        "actors/runtime/session_actors.py:SessionActors.__init__",
        "replay is not None and (not needs_recovery(replay.state))",
        "replay is not None and replay.state.session",
        (f"{RESUME}::test_an_interrupted_turn_is_closed_before_a_session_is_resumed",),
    ),
    Mutation(
        "recovery: a switch held when a process ended is forgotten",
        f"{RECOVERY_RULES}:needs_recovery",
        "state.bound is not None or state.held is not None",
        "state.bound is not None",
        (f"{RESUME}::test_a_switch_still_queued_at_the_end_of_the_log_is_applied_on_resume",),
    ),
    Mutation(
        "recovery: a paused turn silently continues with other tools",
        "actors/session/session_actor.py:SessionActor._continue_turn",
        "self._held.log_config_change(self._live_context)",
        "",
        (f"{RESUME}::test_changed_tools_are_declared_from_the_next_request_on",),
    ),
    Mutation(
        "recovery: waiting for a session gives up at once",
        "actors/runtime/claims.py:claim_existing",
        "... <= 0",
        "... <= 60",
        (f"{RESUME}::test_resume_can_wait_until_another_host_releases_the_session",),
    ),
    Mutation(
        "recovery: a session that failed to resume stays claimed",
        "actors/runtime/claims.py:Claims._release",
        "self._host.release(name, fence)",
        "pass",
        (f"{RESUME}::test_a_session_that_cannot_be_resumed_raises_a_short_error",),
    ),
    Mutation(
        "fork: executed calls run again in a fork",
        f"{RECOVERY_RULES}:fork_log",
        '(*log, *_closing_events(state), TurnEnded(state.turns, "interrupted", FORKED))',
        'log or TurnEnded(state.turns, "interrupted", FORKED)',
        (f"{CARRIED}::test_a_session_can_be_forked_at_every_event_without_rerunning_calls",),
    ),
    Mutation(
        "fork: external services confuse the calls of a fork with the original's",
        f"{RECOVERY_RULES}:fork_log",
        'replace(first, session=session, key=key, parent_key="")',
        'replace(first, session=session, parent_key="")',
        (f"{CARRIED}::test_a_fork_is_an_independent_session_with_the_same_history",),
    ),
    Mutation(
        "import: records may be in any order",
        "actors/core/session/export_file.py:_decode_records",
        "... is not None",
        '... == ""',
        (f"{CARRIED}::test_a_damaged_export_file_is_rejected_with_the_line_and_the_reason",),
    ),
    Mutation(
        "import: the first line may name any session",
        "actors/core/session/export_file.py:_pop_log",
        '... and opening.get("session") != first.session',
        "... and (not first.session)",
        (f"{CARRIED}::test_a_damaged_export_file_is_rejected_with_the_line_and_the_reason",),
    ),
    Mutation(
        "import: a changed record is accepted",
        "actors/core/session/export_file.py:_pop_log",
        '_lines_digest(lines_read) != opening.get("sha256")',
        'not opening.get("sha256")',
        (f"{CARRIED}::test_a_damaged_export_file_is_rejected_with_the_line_and_the_reason",),
    ),
    Mutation(
        "recovery: no call runs again",
        f"{RECOVERY}:Recovery._run_again",
        "not self._is_stopped",
        "self._is_stopped",
        (f"{AGAIN}::test_a_repeatable_call_runs_again_after_a_crash_with_the_same_key",),
    ),
    Mutation(
        "recovery: a call that ends its process is started forever",
        f"{RECOVERY_RULES}:repeatable_calls",
        "0 < begun[call.id] < STARTS",
        "0 < begun[call.id]",
        (f"{AGAIN}::test_a_call_that_always_crashes_its_process_is_started_at_most_three_times",),
    ),
    Mutation(
        "recovery: a repeated call cannot be cancelled",
        "actors/core/session/phases.py:_ACTIONS",
        '("wait", "apply", "stop", "stop", "conclude", None, "record", None, None)',
        '("wait", "apply", "wait", "wait", "conclude", None, "record", None, None)',
        (f"{AGAIN}::test_a_cancel_or_close_stops_a_call_that_runs_again",),
    ),
    Mutation(
        "recovery: a configuration replaces the tools of a turn that a crash left open",
        "actors/session/session_actor.py:SessionActor._change_configuration",
        "... and self._log.state.bound is None",
        "...",
        (f"{AGAIN}::test_a_call_that_runs_again_keeps_its_toolset_when_the_session_is_configured",),
    ),
    Mutation(
        "recovery: tools that continue after a crash are not in quarantine",
        "actors/scheduler/scheduler_actor.py:_Batch._stop_abandoned",
        "self._executor.call_after(*...)",
        "None",
        ("tests/runtime/test_rebuild.py::test_a_tool_that_outlives_a_crash_is_quarantined_until_it_ends",),
    ),
)
