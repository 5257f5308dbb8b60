"""Mutations of turns that wait for their caller: external calls and approvals."""

from tests.teeth.mutations.mutation import Mutation

EXTERNAL = "tests/session/test_external_calls.py"
APPROVALS = "tests/session/test_approvals.py"
EDGES = "tests/session/test_awaiting_edges.py"
GUARDS = "tests/session/test_guards.py"
AFTER = "tests/session/test_after_a_wait.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "awaiting: a late result for an external call is refused",
        "actors/session/resolutions.py:_check_handed_out",
        "{each for event in page.events if isinstance(event, TurnPaused) for each in event.external}",
        "{each for event in page.events if isinstance(event, TurnPaused) for each in event.external[:0]}",
        (
            f"{EXTERNAL}::test_a_result_for_a_tool_that_was_removed_meanwhile_is_late_and_not_unheard_of",
            f"{EXTERNAL}::test_of_two_results_that_race_one_goes_on_with_the_turn_and_the_other_is_a_duplicate",
        ),
    ),
    Mutation(
        "awaiting: an id is accepted because the ledger knows it",
        "actors/session/resolutions.py:_check_handed_out",
        "{each for event in page.events if isinstance(event, TurnPaused) for each in event.external}",
        "{each for each in ledger._known if page}",
        (f"{EXTERNAL}::test_the_call_of_a_tool_with_a_body_takes_no_result_from_outside",),
    ),
    Mutation(
        "awaiting: results for a resumed turn continue it again",
        "actors/session/session_actor.py:SessionActor._accept_resolution",
        'self._phase != "awaiting"',
        "self._log.state.closed",
        (
            f"{EXTERNAL}::test_of_two_results_that_race_one_goes_on_with_the_turn_and_the_other_is_a_duplicate",
        ),
    ),
    Mutation(
        "ledger: a second, different result replaces the first",
        "actors/core/ledger.py:_add_completion",
        "replace(known, duplicates=(*known.duplicates, new))",
        "replace(known, end=event)",
        (
            f"{EXTERNAL}::test_results_that_come_twice_change_nothing_and_different_ones_are_kept_and_not_sent",
        ),
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
        (f"{EXTERNAL}::test_half_of_the_results_are_taken_and_the_turn_waits_for_the_rest",),
    ),
    Mutation(
        "awaiting: a crash interrupts a waiting turn",
        "actors/core/session/phases.py:first",
        """
        if is_awaiting:
            return "awaiting"
        """,
        "",
        (f"{EXTERNAL}::test_a_crash_of_the_actors_while_a_turn_waits_loses_nothing_of_it",),
    ),
    Mutation(
        "awaiting: an ask behind a waiting turn is lost on passivation",
        "actors/session/session_actor.py:SessionActor.idle",
        '... or (self._phase == "awaiting" and self._pending.is_empty)',
        '... or self._phase == "awaiting"',
        (f"{EXTERNAL}::test_meanwhile_asks_queue_and_a_switch_is_held_until_the_turn_has_ended",),
    ),
    Mutation(
        "awaiting: a resumed turn restarts its round count",
        "actors/core/turn/turn.py:_TurnRules.__init__",
        "so_far.rounds",
        "1",
        (f"{EXTERNAL}::test_at_the_limit_of_rounds_a_turn_that_waited_is_bounded_as_any",),
    ),
    Mutation(
        "cancel: waiting calls stay open",
        "actors/session/steps.py:TurnSteps.close",
        'await self._close(step.awaited, "cancelled")',
        "",
        (f"{EXTERNAL}::test_cancel_closes_the_calls_and_a_result_that_comes_after_it_is_late_and_not_lost",),
    ),
    Mutation(
        "approvals: a decision about other arguments applies",
        "actors/session/resolutions.py:_check_bound",
        "(*...,)",
        "(*..., decision.digest)",
        (f"{APPROVALS}::test_a_decision_about_other_arguments_is_refused_and_so_is_one_nobody_waits_for",),
    ),
    Mutation(
        "approvals: decisions before a refused one are recorded",
        "actors/session/resolutions.py:_record",
        "await _check_bound(refs, decision, _awaited_call(decision, awaited), resolve.variables)",
        """
        await _check_bound(refs, decision, _awaited_call(decision, awaited), resolve.variables)
        await log.write(_event(decision, waits[decision.call_id]))
        """,
        (f"{APPROVALS}::test_if_one_of_several_is_refused_nothing_is_recorded",),
    ),
    Mutation(
        "approvals: decisions are recorded one by one",
        "actors/session/resolutions.py:_write",
        "log.hold(event)",
        "await log.write(event)",
        (f"{APPROVALS}::test_results_and_decisions_that_are_passed_at_once_are_recorded_at_once",),
    ),
    Mutation(
        "approvals: an external call may be approved to run",
        "actors/session/resolutions.py:_awaited_call",
        'found.kind == "external" and decision.verdict == "allow"',
        "False",
        (f"{APPROVALS}::test_an_external_call_that_wants_approval_is_approved_by_passing_its_result",),
    ),
    Mutation(
        "approvals: edited arguments are not judged",
        "actors/session/resolutions.py:_check_bound",
        "await refs.scheduler.ask(CheckCall(edited, variables))",
        "(await refs.scheduler.ask(CheckCall(edited, variables)))[:0]",
        (f"{APPROVALS}::test_edited_arguments_are_judged_again_and_the_call_runs_with_them",),
    ),
    Mutation(
        "approvals: the call runs with the model's arguments",
        "actors/core/session/awaiting.py:with_edits",
        "call if decision.arguments is None else call.with_arguments(decision.arguments)",
        "call",
        (f"{APPROVALS}::test_edited_arguments_are_judged_again_and_the_call_runs_with_them",),
    ),
    Mutation(
        "approvals: the model does not learn the reason",
        "actors/core/turn/batch.py:denial",
        'f": {reason}" if reason else "."',
        '"""."""',
        (f"{APPROVALS}::test_a_denial_is_a_real_completion_and_the_model_sees_its_reason",),
    ),
    Mutation(
        "approvals: an unapproved call runs without an approver",
        "actors/core/turn/batch.py:_plan_call",
        "asks and (not can_ask)",
        "asks and (not can_ask) and (not call.name)",
        (f"{APPROVALS}::test_a_call_that_asks_waits_and_runs_once_somebody_has_allowed_it",),
    ),
    Mutation(
        "call_tool: the program is asked to approve its own call",
        "actors/session/driver.py:TurnDriver.run_call",
        "RunBatch(*..., **..., approved=True)",
        "RunBatch(*..., **...)",
        (
            "tests/session/test_call_tool.py::test_a_tool_that_the_program_runs_is_recorded_as_any_call_and_every_provider_accepts_it",
        ),
    ),
    Mutation(
        "call_tool: its call uses no id, so the next one has the same",
        "actors/session/driver.py:TurnDriver.run_call",
        "RoundEnded(turn, 1, pack(said), calls=1)",
        "RoundEnded(turn, 1, pack(said), calls=0)",
        ("tests/session/test_call_tool.py::test_the_call_after_it_has_an_id_of_its_own",),
    ),
    Mutation(
        "repair: commas inside texts are removed too",
        "actors/core/schemas/repair.py:without_commas",
        '"" if found[0] == "," else found[0]',
        'found[0].replace(",", "")',
        ("tests/core/test_repair.py",),
    ),
    Mutation(
        "guards: every call of a message is a separate fault",
        "actors/core/turn/guards.py:TurnGuard._count",
        "self._refusals.update(refused)",
        "self._refusals.update([call.name for call in calls if call.name in refused])",
        (f"{GUARDS}::test_ten_wrong_calls_of_one_message_are_one_fault",),
    ),
    Mutation(
        "guards: a tool called wrongly too often continues",
        "actors/core/turn/batch.py:_plan_call",
        "call.name in disabled_tools",
        "call.name not in tools",
        (f"{GUARDS}::test_a_tool_called_wrongly_too_often_is_gone_for_the_turn_and_the_others_go_on",),
    ),
    Mutation(
        "guards: arguments in a different order are a different call",
        "actors/core/turn/guards.py:_key",
        "json.dumps(call.arguments, sort_keys=True)",
        "json.dumps(call.arguments)",
        (f"{GUARDS}::test_a_repeated_call_runs_and_its_result_says_that_it_is_the_same",),
    ),
    Mutation(
        "guards: a result with a note is a different result",
        "actors/core/turn/guards.py:_is_same",
        "_result(_with_repeat_note(first))",
        "_said(first)",
        (f"{GUARDS}::test_a_repeated_call_runs_and_its_result_says_that_it_is_the_same",),
    ),
    Mutation(
        "guards: a different result is a repetition too",
        "actors/core/turn/guards.py:TurnGuard._count",
        "seen is not None and _is_same(end, seen.end)",
        "seen is not None",
        (f"{GUARDS}::test_what_changes_is_no_repetition_and_neither_is_one_message_that_calls_often",),
    ),
    Mutation(
        "guards: a waiting turn restarts its count",
        "actors/session/steps.py:TurnSteps.resume",
        "history.upto(length)",
        "history",
        (f"{GUARDS}::test_a_turn_that_waited_is_guarded_by_what_its_log_says",),
    ),
    Mutation(
        "guards: results passed by the caller do not count",
        "actors/session/driver.py:TurnDriver._resume",
        "not (stopped or waited.calls) and served.is_stuck()",
        "False",
        (f"{GUARDS}::test_results_that_the_caller_passes_count_as_repetitions",),
    ),
    Mutation(
        "guards: repetitions do not end a turn",
        "actors/core/turn/turn.py:_TurnRules._next_round",
        "stuck or ... or ...",
        "... or ...",
        (f"{GUARDS}::test_the_policy_says_what_is_done_about_repetitions",),
    ),
    Mutation(
        "awaiting: a late reader does not learn the status of the ask",
        "actors/core/session/publishing.py:Publisher._publish_pause",
        "(TurnPausedEvent(*...), terminal_event(result, self.seq))",
        "(TurnPausedEvent(*...),)",
        ("tests/session/test_published.py::test_an_ask_that_waits_is_told_alike",),
    ),
    Mutation(
        "awaiting: a late reader does not see the attempts before a turn waited",
        "actors/core/session/publishing.py:AskFold.pause",
        "self.attempts, self.finish, self.cut = (list(ask.attempts), None, None)",
        "self.finish, self.cut = (None, None)",
        ("tests/session/test_published.py::test_an_ask_that_waits_is_told_alike",),
    ),
    Mutation(
        "awaiting: an ask's timer continues while its turn waits",
        "actors/session/session_actor.py:SessionActor._conclude",
        "self._deadline.end()",
        "self._deadline.end() if self._log.state.pause is None else None",
        (f"{EDGES}::test_no_timer_is_left_while_a_turn_waits",),
    ),
    Mutation(
        "approvals: a call that is always denied runs for the program",
        "actors/core/turn/batch.py:_plan_call",
        'approval == "deny"',
        'approval == "deny" and (not approved)',
        ("tests/session/test_call_tool.py::test_a_tool_that_nobody_may_run_is_denied_to_the_program_too",),
    ),
    Mutation(
        "call_tool: its call counts as a request of an unpriced model",
        "actors/core/session/state.py:SessionState._end_round",
        "self.bound not in (None, RUNTIME)",
        "self.bound is not None",
        (
            "tests/session/test_call_tool.py::test_a_call_of_the_programs_uses_nothing_of_a_budget_of_requests",
        ),
    ),
    Mutation(
        "awaiting: a resumed turn was driven since the clock started",
        "actors/session/driver.py:TurnDriver.go_on",
        "self._began = anyio.current_time()",
        "",
        (f"{AFTER}::test_a_budget_of_seconds_counts_what_was_driven_and_not_the_clock",),
    ),
    Mutation(
        "awaiting: the tokens used before it are forgotten",
        "actors/session/inflight.py:Tally.from_pause",
        "used.input_tokens + used.output_tokens",
        "0",
        (f"{AFTER}::test_the_tokens_of_an_ask_are_those_from_before_it_waited_too",),
    ),
    Mutation(
        "awaiting: the cost of earlier turns is forgotten",
        "actors/session/inflight.py:Tally.from_pause",
        "progress.cost",
        "0.0",
        (f"{AFTER}::test_the_cost_of_an_ask_is_that_of_turns_before_the_one_that_waited_too",),
    ),
    Mutation(
        "awaiting: the requested type is lost with the actors",
        "actors/runtime/lifecycle.py:SessionLifecycle.passivate",
        "actors.pending if self.pending_calls and actors.pending.form is not None else None",
        "None",
        (f"{AFTER}::test_the_answer_is_a_value_of_the_type_that_was_asked_for",),
    ),
    Mutation(
        "awaiting: readers see no text of the asks behind it",
        "actors/runtime/delivery.py:SessionCaller._resolve",
        "Resolve(given, self._lifecycle.audience(sink, variables), variables)",
        "Resolve(given, sink, variables)",
        (f"{AFTER}::test_who_reads_along_sees_the_words_that_come_after_a_wait",),
    ),
    Mutation(
        "awaiting: a turn whose last decision was recorded in a crash waits forever",
        "actors/session/session_actor.py:SessionActor._wait_on",
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
        (f"{AFTER}::test_a_turn_goes_on_whose_last_decision_was_recorded_when_its_actors_crashed",),
    ),
    Mutation(
        "approvals: a decision is not shown to its maker",
        "actors/session/resolutions.py:_record",
        "log.state.pause is not None and live.is_idle",
        "False",
        (f"{AFTER}::test_a_decision_is_in_its_own_stream_as_in_the_log",),
    ),
    Mutation(
        "awaiting: a resumed turn has its full time again",
        "actors/session/deadline.py:Deadline.begin",
        "0.0 if state.pause is None else state.pause.awaited.ask_so_far.seconds",
        "0.0",
        (
            "tests/session/test_awaiting_edges.py::test_a_turn_that_goes_on_has_what_is_left_of_its_time_limit",
        ),
    ),
)
