"""Mutations of turns that wait for their caller: external calls and approvals."""

from tests.teeth.mutations.mutation import Mutation

EXTERNAL = "tests/session/test_external_calls.py"
APPROVALS = "tests/session/test_approvals.py"
EDGES = "tests/session/test_awaiting_edges.py"
GUARDS = "tests/session/test_guards.py"
AFTER = "tests/session/test_resumed_asks.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "awaiting: a late result for an external call is refused",
        "actors/session/resolutions.py:_check_external_results",
        "{each for event in page.events if isinstance(event, TurnPaused) for each in event.external}",
        "{each for event in page.events if isinstance(event, TurnPaused) for each in event.external[:0]}",
        (
            f"{EXTERNAL}::test_a_result_for_a_removed_tool_is_recorded_as_late",
            f"{EXTERNAL}::test_only_one_of_two_results_passed_concurrently_resumes_the_turn",
        ),
    ),
    Mutation(
        "awaiting: an id is accepted because the ledger knows it",
        "actors/session/resolutions.py:_check_external_results",
        "{each for event in page.events if isinstance(event, TurnPaused) for each in event.external}",
        "{each for each in ledger._known if page}",
        (f"{EXTERNAL}::test_passing_a_result_for_a_tool_that_the_runtime_runs_is_rejected",),
    ),
    Mutation(
        "awaiting: results for a resumed turn continue it again",
        "actors/session/session_actor.py:SessionActor._accept_resolution",
        'self._phase != "awaiting"',
        "self._log.state.closed",
        (f"{EXTERNAL}::test_only_one_of_two_results_passed_concurrently_resumes_the_turn",),
    ),
    Mutation(
        "ledger: a second, different result replaces the first",
        "actors/core/ledger.py:_add_completion",
        "replace(record, duplicates=(*record.duplicates, new))",
        "replace(record, end=event)",
        (f"{EXTERNAL}::test_passing_a_second_result_for_a_call_does_not_change_the_first",),
    ),
    Mutation(
        "awaiting: a turn continues with half of the results",
        "actors/session/session_actor.py:SessionActor._accept_resolution",
        """
        if self.pending_calls:
            ...
        else:
            ...
        """,
        """
        if len(self.pending_calls) > 1:
            ...
        else:
            ...
        """,
        (f"{EXTERNAL}::test_results_from_the_caller_are_recorded_while_the_turn_waits_for_other_results",),
    ),
    Mutation(
        "awaiting: a crash interrupts a waiting turn",
        "actors/core/session/phases.py:initial_phase",
        """
        if is_awaiting:
            return "awaiting"
        """,
        "",
        (f"{EXTERNAL}::test_a_crash_while_a_turn_waits_loses_nothing",),
    ),
    Mutation(
        "awaiting: an ask behind a waiting turn is lost on passivation",
        "actors/session/session_actor.py:SessionActor.idle",
        '... or (self._phase == "awaiting" and self._pending.is_empty)',
        '... or self._phase == "awaiting"',
        (f"{EXTERNAL}::test_a_waiting_turn_queues_asks_and_switches",),
    ),
    Mutation(
        "awaiting: a resumed turn restarts its round count",
        "actors/core/turn/turn.py:_TurnRules.__init__",
        "so_far.rounds",
        "1",
        (f"{EXTERNAL}::test_a_resumed_turn_stops_at_the_round_limit",),
    ),
    Mutation(
        "cancel: waiting calls stay open",
        "actors/session/steps.py:TurnSteps.close",
        'await self._close_calls(step.awaited, "cancelled")',
        "",
        (f"{EXTERNAL}::test_a_result_after_cancel_is_recorded_as_late",),
    ),
    Mutation(
        "approvals: a decision about other arguments applies",
        "actors/session/resolutions.py:_check_decision",
        "(*...,)",
        "(*..., decision.digest)",
        (f"{APPROVALS}::test_a_decision_for_an_unknown_call_or_other_arguments_is_rejected",),
    ),
    Mutation(
        "approvals: decisions before a refused one are recorded",
        "actors/session/resolutions.py:_check_and_write",
        "await _check_decision(refs, decision, _awaited_call(decision, awaited), resolve.variables)",
        """
        await _check_decision(refs, decision, _awaited_call(decision, awaited), resolve.variables)
        await log.write(_decision_event(decision, awaited[decision.call_id]))
        """,
        (f"{APPROVALS}::test_if_one_of_several_decisions_is_rejected_none_is_recorded",),
    ),
    Mutation(
        "approvals: decisions are recorded one by one",
        "actors/session/resolutions.py:_write_resolutions",
        "log.hold(event)",
        "await log.write(event)",
        (f"{APPROVALS}::test_results_and_decisions_passed_together_are_recorded_together",),
    ),
    Mutation(
        "approvals: an external call may be approved to run",
        "actors/session/resolutions.py:_awaited_call",
        'pending_call.kind == "external" and decision.verdict == "allow"',
        "False",
        (f"{APPROVALS}::test_an_external_call_is_approved_by_passing_its_result",),
    ),
    Mutation(
        "approvals: edited arguments are not judged",
        "actors/session/resolutions.py:_check_decision",
        "await refs.scheduler.ask(CheckCall(edited, variables))",
        "(await refs.scheduler.ask(CheckCall(edited, variables)))[:0]",
        (f"{APPROVALS}::test_edited_arguments_are_validated_and_passed_to_the_call",),
    ),
    Mutation(
        "approvals: the call runs with the model's arguments",
        "actors/core/session/open_asks.py:with_edits",
        "call if decision.arguments is None else call.with_arguments(decision.arguments)",
        "call",
        (f"{APPROVALS}::test_edited_arguments_are_validated_and_passed_to_the_call",),
    ),
    Mutation(
        "approvals: the model does not learn the reason",
        "actors/core/turn/batch.py:denial",
        'f": {reason}" if reason else "."',
        '"""."""',
        (f"{APPROVALS}::test_a_denied_call_is_answered_with_the_reason_of_the_denial",),
    ),
    Mutation(
        "approvals: an unapproved call runs without an approver",
        "actors/core/turn/batch.py:_plan_call",
        "needs_approval and (not can_ask)",
        "needs_approval and (not can_ask) and (not call.name)",
        (f"{APPROVALS}::test_a_call_that_needs_approval_runs_once_after_it_was_allowed",),
    ),
    Mutation(
        "call_tool: the program is asked to approve its own call",
        "actors/session/separate_turns.py:run_host_call",
        "RunBatch(*..., **..., approved=True)",
        "RunBatch(*..., **...)",
        (
            "tests/session/test_call_tool.py::test_a_call_by_the_program_is_recorded_and_accepted_by_every_provider",
        ),
    ),
    Mutation(
        "call_tool: its call uses no id, so the next one has the same",
        "actors/session/separate_turns.py:run_host_call",
        "RoundEnded(turn, 1, pack(said), calls=1)",
        "RoundEnded(turn, 1, pack(said), calls=0)",
        (
            "tests/session/test_call_tool.py::test_a_call_by_the_model_after_a_call_by_the_program_has_a_new_id",
        ),
    ),
    Mutation(
        "repair: commas inside texts are removed too",
        "actors/core/schemas/repair.py:remove_trailing_commas",
        r'_COMMAS(r"\1", text)',
        'text.replace(",", "")',
        ("tests/core/test_repair.py",),
    ),
    Mutation(
        "guards: every call of a message is a separate fault",
        "actors/core/turn/guards.py:TurnGuard._count_calls",
        "self._refusals.update(refused)",
        "self._refusals.update([call.name for call in calls if call.name in refused])",
        (f"{GUARDS}::test_ten_wrong_calls_in_one_message_count_as_one_mistake",),
    ),
    Mutation(
        "guards: a tool called wrongly too often continues",
        "actors/core/turn/batch.py:_plan_call",
        "call.name in disabled_tools",
        "call.name not in tools",
        (f"{GUARDS}::test_a_tool_called_wrongly_too_often_is_disabled_for_the_turn",),
    ),
    Mutation(
        "guards: arguments in a different order are a different call",
        "actors/core/turn/guards.py:_call_key",
        "json.dumps(call.arguments, sort_keys=True)",
        "json.dumps(call.arguments)",
        (f"{GUARDS}::test_the_result_of_a_repeated_call_notes_the_repetition",),
    ),
    Mutation(
        "guards: a result with a note is a different result",
        "actors/core/turn/guards.py:_is_same",
        "_comparable_result(_with_repeat_note(earlier))",
        "_comparable_result(earlier)",
        (f"{GUARDS}::test_the_result_of_a_repeated_call_notes_the_repetition",),
    ),
    Mutation(
        "guards: a different result is a repetition too",
        "actors/core/turn/guards.py:TurnGuard._count_calls",
        "seen is not None and _is_same(end, seen.end)",
        "seen is not None",
        (f"{GUARDS}::test_equal_calls_with_new_results_or_in_one_message_are_not_a_repetition",),
    ),
    Mutation(
        "guards: a waiting turn restarts its count",
        "actors/session/steps.py:TurnSteps.resume",
        "history.upto(length)",
        "history",
        (f"{GUARDS}::test_the_call_limits_of_a_resumed_turn_count_the_earlier_calls_in_its_log",),
    ),
    Mutation(
        "guards: results passed by the caller do not count",
        "actors/session/driver.py:TurnDriver._resume_turn",
        "not (stopped or await_step.calls) and turn_steps.is_stuck()",
        "False",
        (f"{GUARDS}::test_equal_results_passed_by_the_caller_count_as_repetitions",),
    ),
    Mutation(
        "guards: repetitions do not end a turn",
        "actors/core/turn/turn.py:_TurnRules._next_round",
        "is_stuck or ... or ...",
        "... or ...",
        (f"{GUARDS}::test_the_on_repeat_policy_allows_repeated_calls_or_warns_the_model_or_stops_the_tools",),
    ),
    Mutation(
        "awaiting: a late reader does not learn the status of the ask",
        "actors/core/session/publishing.py:Publisher._publish_pause",
        "(TurnPausedEvent(*...), terminal_event(result, self.seq))",
        "(TurnPausedEvent(*...),)",
        ("tests/session/test_replayed_events.py::test_the_log_yields_the_same_events_for_an_ask_that_waits",),
    ),
    Mutation(
        "awaiting: a late reader does not see the attempts before a turn waited",
        "actors/core/session/publishing.py:AskResultBuilder.pause",
        "self.attempts, self.finish, self.cut = (ask.attempts, None, None)",
        "self.finish, self.cut = (None, None)",
        ("tests/session/test_replayed_events.py::test_the_log_yields_the_same_events_for_an_ask_that_waits",),
    ),
    Mutation(
        "awaiting: an ask's timer continues while its turn waits",
        "actors/session/session_actor.py:SessionActor._deliver_result",
        "self._deadline.stop_timer()",
        "self._deadline.stop_timer() if self._log.state.pause is None else None",
        (f"{EDGES}::test_no_timer_runs_while_a_turn_waits_for_its_caller",),
    ),
    Mutation(
        "approvals: a call that is always denied runs for the program",
        "actors/core/turn/batch.py:_plan_call",
        'approval == "deny"',
        'approval == "deny" and (not approved)',
        ("tests/session/test_call_tool.py::test_a_denied_tool_is_also_denied_if_the_program_calls_the_tool",),
    ),
    Mutation(
        "call_tool: its call counts as a request of an unpriced model",
        "actors/core/session/state.py:SessionState._end_round",
        "self.bound not in (None, RUNTIME)",
        "self.bound is not None",
        ("tests/session/test_call_tool.py::test_a_call_by_the_program_uses_no_budget_for_requests",),
    ),
    Mutation(
        "awaiting: a resumed turn was driven since the clock started",
        "actors/session/driver.py:TurnDriver.resume",
        "self._turn_log.start_clock()",
        "",
        (f"{AFTER}::test_a_budget_of_seconds_does_not_count_the_time_spent_waiting",),
    ),
    Mutation(
        "awaiting: the tokens used before it are forgotten",
        "actors/session/inflight.py:AskTotals.from_pause",
        "used.input_tokens + used.output_tokens",
        "0",
        (f"{AFTER}::test_a_token_limit_counts_the_tokens_used_before_a_wait",),
    ),
    Mutation(
        "awaiting: the cost of earlier turns is forgotten",
        "actors/session/inflight.py:AskTotals.from_pause",
        "progress.cost",
        "0.0",
        (f"{AFTER}::test_the_cost_of_an_ask_includes_the_turns_before_a_wait",),
    ),
    Mutation(
        "awaiting: the requested type is lost with the actors",
        "actors/runtime/lifecycle.py:SessionLifecycle.passivate",
        "actors.pending if self.pending_calls and actors.pending.output_type is not None else None",
        "None",
        (f"{AFTER}::test_an_ask_that_waited_returns_a_value_of_its_output_type",),
    ),
    Mutation(
        "awaiting: readers see no text of the asks behind it",
        "actors/runtime/delivery.py:SessionCaller._resolve",
        "Resolve(new_resolutions, self._lifecycle.sink_with_readers(sink, variables), variables)",
        "Resolve(new_resolutions, sink, variables)",
        (f"{AFTER}::test_a_subscriber_receives_the_text_that_follows_a_wait",),
    ),
    Mutation(
        "awaiting: a turn whose last decision was recorded in a crash waits forever",
        "actors/session/session_actor.py:SessionActor._continue_waiting_turn",
        """
        if not self.pending_calls:
            ...
        else:
            ...
        """,
        """
        if not self.pending_calls and (not pending.is_empty):
            ...
        else:
            ...
        """,
        (f"{AFTER}::test_a_turn_continues_if_actors_crash_after_its_last_decision",),
    ),
    Mutation(
        "approvals: a decision is not shown to its maker",
        "actors/session/resolutions.py:_check_and_write",
        "log.state.pause is not None and live.is_idle",
        "False",
        (f"{AFTER}::test_the_stream_and_the_log_of_an_ask_contain_the_same_approval_decisions",),
    ),
    Mutation(
        "awaiting: a resumed turn has its full time again",
        "actors/session/limits.py:Deadline.start_timer",
        "0.0 if state.pause is None else state.pause.awaited.ask_so_far.seconds",
        "0.0",
        ("tests/session/test_awaiting_edges.py::test_a_resumed_turn_gets_only_the_rest_of_its_time_limit",),
    ),
)
