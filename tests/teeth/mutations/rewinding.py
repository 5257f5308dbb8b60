"""Histories that go back to an earlier turn: what leaves them, what is kept, who is shown what, when it is refused."""

from tests.teeth.mutations.mutation import Mutation

STATE, ENDS = "actors/core/session/state.py", "actors/core/history/turn_ends.py"
SESSION, REWINDING = "actors/session/session_actor.py", "actors/session/rewinding.py"
CORE, SESSIONS = "tests/core/test_rewind.py", "tests/session/test_rewind.py"

MUTATIONS = (
    Mutation(
        "rewinding: one that waits is refused by a turn that begins to wait, and not after a crash",
        f"{SESSION}:SessionActor._wait_on",
        "self._let_wait()",
        "self._queue_limits.begin(self._live_context, pending.waiting)",
        (f"{SESSIONS}::test_a_rewind_that_waits_is_refused_when_a_crash_comes_as_the_turn_begins_to_wait",),
    ),
    Mutation(
        "rewinding: nothing leaves the history",
        f"{STATE}:SessionState._rewind",
        "rewind(self.history, end.length, ...)",
        "self.history",
        (f"{CORE}::test_later_messages_leave_the_history_and_all_else_stays",),
    ),
    Mutation(
        "rewinding: numbers of calls are given again",
        f"{STATE}:SessionState._rewind",
        "return self._with_history(*...)",
        "return replace(self._with_history(*...), calls=end.calls)",
        (f"{CORE}::test_later_messages_leave_the_history_and_all_else_stays",),
    ),
    Mutation(
        "rewinding: lanes go on as they were",
        "actors/core/session/lanes.py:Lanes.rewind",
        "self._defer(binding, partial(_after_rewind, length))",
        "pass",
        (f"{CORE}::test_every_lane_begins_an_epoch_and_its_request_is_accepted",),
    ),
    Mutation(
        "rewinding: live lanes do not hear of it",
        f"{REWINDING}:rewind",
        "await ask.refs.renderer.send(Rewind(end.length))",
        "",
        (f"{SESSIONS}::test_later_messages_leave_the_history_and_every_lane_begins_an_epoch",),
    ),
    Mutation(
        "rewinding: late results of calls that left are told",
        "actors/core/render/choose.py:Choice.collect_late_results",
        "self._is_removed(call_id)",
        "False",
        (
            f"{CORE}::test_a_late_result_of_a_call_that_left_is_kept_and_not_shown",
            f"{SESSIONS}::test_what_a_tool_brings_late_of_a_turn_that_was_taken_back_is_kept_and_not_shown",
        ),
    ),
    Mutation(
        "rewinding: a summary names what left",
        "actors/core/history/compaction.py:summary_scope",
        "not is_removed(history, known.call_id)",
        "True",
        (f"{CORE}::test_a_summary_does_not_stand_for_what_left",),
    ),
    Mutation(
        "rewinding: a session opened on the history knows what left",
        f"{STATE}:opening",
        "not is_removed(history, item.call_id)",
        "True",
        (f"{CORE}::test_a_session_that_is_opened_on_a_history_knows_nothing_of_what_left",),
    ),
    Mutation(
        "rewinding: a turn in a summary is a place",
        f"{ENDS}:_remaining",
        "end.length > stop",
        "end.length >= stop",
        (f"{CORE}::test_there_is_no_place_where_a_summary_stands_or_a_rewind_was",),
    ),
    Mutation(
        "rewinding: turns that left are places still",
        f"{STATE}:SessionState._rewind",
        "turn_ends.ends_until(self.ends, turn)",
        "self.ends",
        (f"{CORE}::test_there_is_no_place_where_a_summary_stands_or_a_rewind_was",),
    ),
    Mutation(
        "rewinding: a log from elsewhere is rewound to anything",
        "actors/core/session/order.py:_unreachable",
        "end_of(state.ends, turn) is None",
        "False",
        (f"{CORE}::test_a_log_from_elsewhere_is_rewound_to_places_only",),
    ),
    Mutation(
        "rewinding: one waits for a turn that waits for its caller",
        f"{SESSION}:SessionActor._let_wait",
        "self._pending.drop_rewinds(open_turn(self._log.state))",
        "",
        (f"{SESSIONS}::test_a_turn_that_waits_for_its_caller_is_cancelled_first",),
    ),
    Mutation(
        "rewinding: what waits no more is counted still",
        "actors/session/pending.py:PendingAsks.remove",
        "self.record.queue(-1)",
        "",
        (
            f"{SESSIONS}::test_a_turn_that_waits_for_its_caller_is_cancelled_first",
            "tests/session/test_queue_limits.py::"
            "test_an_ask_behind_a_turn_that_waits_for_an_approval_is_bounded_by_its_total",
        ),
    ),
    Mutation(
        "rewinding: one that writes nothing leaves unwritten what is held",
        f"{SESSION}:SessionActor._begin",
        "not isinstance(submit.call, HostRewind)",
        "True",
        (f"{SESSIONS}::test_a_rewind_that_has_nothing_to_do_writes_nothing_though_the_tools_are_others",),
    ),
    Mutation(
        "rewinding: a budget that is used up keeps one from it",
        f"{SESSION}:SessionActor._submit",
        "self._phase == 'idle' and not is_rewind and ...",
        "self._phase == 'idle' and ...",
        (f"{SESSIONS}::test_a_budget_that_is_used_up_keeps_nobody_from_going_back",),
    ),
    Mutation(
        "rewinding: going to a turn twice is an event twice",
        f"{REWINDING}:rewind",
        "end.length == state.history.length",
        "False",
        (f"{SESSIONS}::test_later_messages_leave_the_history_and_every_lane_begins_an_epoch",),
    ),
    Mutation(
        "rewinding: no error says that one can go back",
        "actors/provider/advice.py:advice",
        "found or _of_conversation(result, attempt.cause)",
        "found",
        (f"{SESSIONS}::test_an_ask_that_fails_for_what_was_said_says_that_one_can_go_back",),
    ),
)
