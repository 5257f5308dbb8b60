"""Mutations of rewinds: removed turns, kept state, notifications and refusals."""

from tests.teeth.mutations.mutation import Mutation

STATE, ENDS = "actors/core/session/state.py", "actors/core/history/history.py"
SESSION, REWINDING = "actors/session/session_actor.py", "actors/session/held_changes.py"
CORE, SESSIONS = "tests/core/test_rewind.py", "tests/session/test_rewind.py"

MUTATIONS = (
    Mutation(
        "rewinding: a waiting rewind is refused when a turn pauses, but not after a crash",
        f"{SESSION}:SessionActor._continue_waiting_turn",
        "self._limit_queue()",
        "self._queue_limits.start_timers(self._live_context, pending.waiting)",
        (f"{SESSIONS}::test_a_queued_rewind_is_rejected_if_a_turn_waits_after_a_crash",),
    ),
    Mutation(
        "rewinding: nothing is removed from the history",
        f"{STATE}:SessionState._rewind",
        "rewind(self.history, end.length, ...)",
        "self.history",
        (f"{CORE}::test_rewinding_removes_only_later_messages",),
    ),
    Mutation(
        "rewinding: numbers of calls are reused",
        f"{STATE}:SessionState._rewind",
        "return self._with_history(*...)",
        "return replace(self._with_history(*...), calls=end.calls)",
        (f"{CORE}::test_rewinding_removes_only_later_messages",),
    ),
    Mutation(
        "rewinding: lanes continue unchanged",
        "actors/core/session/lanes.py:Lanes.rewind",
        "self._defer(binding, partial(_lane_after_rewind, length))",
        "pass",
        (f"{CORE}::test_after_a_rewind_every_lane_starts_an_epoch_that_its_provider_accepts",),
    ),
    Mutation(
        "rewinding: live lanes are not notified",
        f"{REWINDING}:rewind",
        "await ask.refs.renderer.send(Rewind(end.length))",
        "",
        (f"{SESSIONS}::test_a_rewind_removes_later_messages_and_every_lane_begins_an_epoch",),
    ),
    Mutation(
        "rewinding: late results of removed calls are shown",
        "actors/core/render/choose.py:CompletionChooser.collect_late_results",
        "self._is_removed(call_id)",
        "False",
        (
            f"{CORE}::test_a_late_result_of_a_removed_call_is_recorded_but_not_sent",
            f"{SESSIONS}::test_a_late_result_of_a_rewound_turn_is_kept_and_not_sent",
        ),
    ),
    Mutation(
        "rewinding: a summary names removed results",
        "actors/core/history/compaction.py:summary_scope",
        "not is_removed(history, known.call_id)",
        "True",
        (f"{CORE}::test_a_summary_omits_removed_messages",),
    ),
    Mutation(
        "rewinding: a session opened on the history knows removed calls",
        f"{STATE}:opening_event",
        "not is_removed(history, item.call_id)",
        "True",
        (f"{CORE}::test_a_session_opened_on_a_rewound_history_knows_only_the_remaining_calls",),
    ),
    Mutation(
        "rewinding: a rewind may end inside a summary",
        f"{ENDS}:_remaining_ends",
        "end.length > stop",
        "end.length >= stop",
        (f"{CORE}::test_a_session_cannot_be_rewound_to_a_summarised_or_removed_position",),
    ),
    Mutation(
        "rewinding: removed turns are still valid targets",
        f"{STATE}:SessionState._rewind",
        "ends_until(self.ends, turn)",
        "self.ends",
        (f"{CORE}::test_a_session_cannot_be_rewound_to_a_summarised_or_removed_position",),
    ),
    Mutation(
        "rewinding: a foreign log is rewound to any turn",
        "actors/core/session/export_file.py:_rewind_violation",
        "end_of(state.ends, turn) is None",
        "False",
        (f"{CORE}::test_a_rewind_event_is_accepted_only_with_a_valid_position",),
    ),
    Mutation(
        "rewinding: a rewind waits for a paused turn",
        f"{SESSION}:SessionActor._limit_queue",
        "self._pending.drop_rewinds(open_turn_error(self._log.state))",
        "",
        (f"{SESSIONS}::test_a_rewind_cancels_a_waiting_turn_first",),
    ),
    Mutation(
        "rewinding: resolved waits are still counted",
        "actors/session/pending.py:PendingAsks.remove",
        "self.record.change_queued(-1)",
        "",
        (
            f"{SESSIONS}::test_a_rewind_cancels_a_waiting_turn_first",
            "tests/session/test_queue_limits.py::"
            "test_the_timeout_of_an_ask_applies_while_it_waits_for_a_turn_with_a_pending_approval",
        ),
    ),
    Mutation(
        "rewinding: a rewind without an event leaves held events unwritten",
        f"{SESSION}:SessionActor._start_ask",
        "not isinstance(submit.call, HostRewind)",
        "True",
        (f"{SESSIONS}::test_a_rewind_without_effect_writes_nothing_even_if_tools_changed",),
    ),
    Mutation(
        "rewinding: an exhausted budget blocks a rewind",
        "actors/session/limits.py:rejection",
        "phase == 'idle' and not is_rewind and ...",
        "phase == 'idle' and ...",
        (f"{SESSIONS}::test_a_rewind_works_when_the_budget_is_used_up",),
    ),
    Mutation(
        "rewinding: two rewinds to one turn write two events",
        f"{REWINDING}:rewind",
        "end.length == state.history.length",
        "False",
        (f"{SESSIONS}::test_a_rewind_removes_later_messages_and_every_lane_begins_an_epoch",),
    ),
    Mutation(
        "rewinding: no error suggests a rewind",
        "actors/provider/advice.py:advice",
        "found or _conversation_advice(result, attempt.cause)",
        "found",
        (f"{SESSIONS}::test_an_error_caused_by_the_history_suggests_a_rewind",),
    ),
)
