"""Mistakes in turns that wait for their caller: external calls and approvals."""

from tests.teeth.mutations.mutation import Mutation

EXTERNAL = "tests/test_external_calls.py"
APPROVALS = "tests/test_approvals.py"
EDGES = "tests/test_awaiting_edges.py"
GUARDS = "tests/test_guards.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "awaiting: what comes for a call that was handed out once is refused when it comes late",
        "actors/brought.py",
        "        late -= {call_id for event in events if isinstance(event, Awaited) for call_id in event.external}\n",
        "        late -= {each for event in events if isinstance(event, Awaited) for each in event.external[:0]}\n",
        (
            f"{EXTERNAL}::test_a_result_for_a_tool_that_was_removed_meanwhile_is_late_and_not_unheard_of",
            f"{EXTERNAL}::test_of_two_results_that_race_one_goes_on_with_the_turn_and_the_other_is_a_duplicate",
        ),
    ),
    Mutation(
        "awaiting: an id is taken because the ledger knows it",
        "actors/brought.py",
        "        late -= {call_id for event in events if isinstance(event, Awaited) for call_id in event.external}\n",
        "        late -= {call_id for call_id in ledger._known if events}\n",
        (f"{EXTERNAL}::test_the_call_of_a_tool_with_a_body_takes_no_result_from_outside",),
    ),
    Mutation(
        "awaiting: who brings something for a turn that has gone on goes on with it once more",
        "actors/session.py",
        '        if self._phase != "awaiting":\n            bring',
        "        if self._log.state.closed:\n            bring",
        (
            f"{EXTERNAL}::test_of_two_results_that_race_one_goes_on_with_the_turn_and_the_other_is_a_duplicate",
        ),
    ),
    Mutation(
        "ledger: a second, different result takes the place of the first",
        "actors/core/ledger.py",
        "    return replace(known, duplicates=(*known.duplicates, new))",
        "    return replace(known, end=event)",
        (
            f"{EXTERNAL}::test_results_that_come_twice_change_nothing_and_different_ones_are_kept_and_not_sent",
        ),
    ),
    Mutation(
        "awaiting: a turn goes on when half of the results are there",
        "actors/session.py",
        "        if self.waits:\n            bring.sink",
        "        if len(self.waits) > 1:\n            bring.sink",
        (f"{EXTERNAL}::test_half_of_the_results_are_taken_and_the_turn_waits_for_the_rest",),
    ),
    Mutation(
        "awaiting: a crash interrupts a turn that waits",
        "actors/core/phases.py",
        '    if is_awaiting:\n        return "awaiting"\n',
        "",
        (f"{EXTERNAL}::test_a_crash_of_the_actors_while_a_turn_waits_loses_nothing_of_it",),
    ),
    Mutation(
        "awaiting: an ask that waits behind the turn is lost when the session is put away",
        "actors/session.py",
        '(self._phase == "awaiting" and self._pending.is_empty)',
        '(self._phase == "awaiting")',
        (f"{EXTERNAL}::test_meanwhile_asks_queue_and_a_switch_is_held_until_the_turn_has_ended",),
    ),
    Mutation(
        "awaiting: a turn that goes on begins to count its rounds anew",
        "actors/core/turn.py",
        'CloseStep("complete", "", rounds=so_far.rounds, usage=so_far.usage)',
        'CloseStep("complete", "", rounds=1, usage=so_far.usage)',
        (f"{EXTERNAL}::test_at_the_limit_of_rounds_a_turn_that_waited_is_bounded_as_any",),
    ),
    Mutation(
        "cancel: calls that are awaited stay open",
        "actors/steps.py",
        '        await self._close(step.awaited, "cancelled")\n',
        "",
        (f"{EXTERNAL}::test_cancel_closes_the_calls_and_a_result_that_comes_after_it_is_late_and_not_lost",),
    ),
    Mutation(
        "approvals: a decision about other arguments holds",
        "actors/brought.py",
        "if decision.digest not in (None, found.digest):",
        "if decision.digest not in (None, found.digest, decision.digest):",
        (f"{APPROVALS}::test_a_decision_about_other_arguments_is_refused_and_so_is_one_nobody_waits_for",),
    ),
    Mutation(
        "approvals: edited arguments are not judged",
        "actors/brought.py",
        "        if errors := await refs.scheduler.ask(CheckCall(edited)):",
        "        if errors := (await refs.scheduler.ask(CheckCall(edited)))[:0]:",
        (f"{APPROVALS}::test_edited_arguments_are_judged_again_and_the_call_runs_with_them",),
    ),
    Mutation(
        "approvals: the call runs with the arguments of the model",
        "actors/core/awaiting.py",
        "return call if decision.arguments is None else replace(call, json=decision.arguments, raw=None)",
        "return call",
        (f"{APPROVALS}::test_edited_arguments_are_judged_again_and_the_call_runs_with_them",),
    ),
    Mutation(
        "approvals: the model is not told why",
        "actors/core/batch.py",
        '    why = f": {reason}" if reason else "."',
        '    why = "."',
        (f"{APPROVALS}::test_a_denial_is_a_real_completion_and_the_model_sees_its_reason",),
    ),
    Mutation(
        "approvals: what nobody approved of runs when there is nobody to ask",
        "actors/core/batch.py",
        "Waits(call, is_external=False) if asks and not can_ask else",
        "Waits(call, is_external=False) if asks and not can_ask and not call.name else",
        (f"{APPROVALS}::test_a_call_that_asks_waits_and_runs_once_somebody_has_allowed_it",),
    ),
    Mutation(
        "run_tool: who runs a tool is asked whether it may run",
        "actors/driver.py",
        "RunBatch((call,), ask.variables, ask.log.prelude(), approved=True)",
        "RunBatch((call,), ask.variables, ask.log.prelude())",
        (
            "tests/test_run_tool.py::test_a_tool_that_the_program_runs_is_recorded_as_any_call_and_every_provider_accepts_it",
        ),
    ),
    Mutation(
        "run_tool: its call uses no id, so the next has the same",
        "actors/driver.py",
        "RoundEnded(turn, 1, pack(said), calls=1), lambda",
        "RoundEnded(turn, 1, pack(said), calls=0), lambda",
        ("tests/test_run_tool.py::test_the_call_after_it_has_an_id_of_its_own",),
    ),
    Mutation(
        "repair: commas inside texts are taken out too",
        "actors/core/repair.py",
        '"" if found[0] == "," else found[0]',
        'found[0].replace(",", "")',
        ("tests/core/test_repair.py",),
    ),
    Mutation(
        "guards: every call of a message is a fault of its own",
        "actors/core/guards.py",
        "        self._refusals.update(refused)\n",
        "        self._refusals.update([call.name for call in calls if call.name in refused])\n",
        (f"{GUARDS}::test_ten_wrong_calls_of_one_message_are_one_fault",),
    ),
    Mutation(
        "guards: a tool that was called wrongly too often goes on",
        "actors/core/batch.py",
        "    if call.name in barred:\n",
        "    if call.name not in tools:\n",
        (f"{GUARDS}::test_a_tool_called_wrongly_too_often_is_gone_for_the_turn_and_the_others_go_on",),
    ),
    Mutation(
        "guards: arguments in another order are another call",
        "actors/core/guards.py",
        "json.dumps(call.arguments, sort_keys=True)",
        "json.dumps(call.arguments)",
        (f"{GUARDS}::test_a_repeated_call_runs_and_its_result_says_that_it_is_the_same",),
    ),
    Mutation(
        "guards: a result with a note is another result",
        "actors/core/guards.py",
        "isinstance(first, Returned | Failed) and said == _said(_noted(first))",
        "isinstance(first, Returned | Failed) and said == _said(first)",
        (f"{GUARDS}::test_a_repeated_call_runs_and_its_result_says_that_it_is_the_same",),
    ),
    Mutation(
        "guards: another result is a repetition too",
        "actors/core/guards.py",
        "again = seen is not None and _is_same(end, seen.end)",
        "again = seen is not None",
        (f"{GUARDS}::test_what_changes_is_no_repetition_and_neither_is_one_message_that_calls_often",),
    ),
    Mutation(
        "guards: a turn that waited begins to count anew",
        "actors/steps.py",
        "        self._history = history.upto(length)\n",
        "        self._history = history\n",
        (f"{GUARDS}::test_a_turn_that_waited_is_guarded_by_what_its_log_says",),
    ),
    Mutation(
        "guards: what the caller brings does not count",
        "actors/driver.py",
        "stuck = not (stopped or waited.calls) and await served.is_stuck()",
        "stuck = False",
        (f"{GUARDS}::test_results_that_the_caller_brings_count_as_repetitions",),
    ),
    Mutation(
        "guards: repetitions do not end a turn",
        "actors/core/turn.py",
        "if stuck or self._end.rounds",
        "if self._end.rounds",
        (f"{GUARDS}::test_the_policy_says_what_is_done_about_repetitions",),
    ),
    Mutation(
        "awaiting: a late reader is not told how the ask stands",
        "actors/core/publishing.py",
        "return (told, terminal(self._asked.waits(event, calls), self.seq))",
        "return (told, terminal(self._asked.waits(event, calls), self.seq))[:1]",
        ("tests/test_published.py::test_an_ask_that_waits_is_told_alike",),
    ),
    Mutation(
        "awaiting: a late reader does not know what was tried before a turn waited",
        "actors/core/publishing.py",
        "self.attempts, self.finish, self.cut = list(ask.attempts), None, None",
        "self.finish, self.cut = None, None",
        ("tests/test_published.py::test_an_ask_that_waits_is_told_alike",),
    ),
    Mutation(
        "awaiting: the time limit runs while a turn waits",
        "actors/session.py",
        "        self._deadline.end()\n",
        "        self._deadline.end() if self._log.state.pause is None else None\n",
        (f"{EDGES}::test_no_time_limit_runs_while_a_turn_waits",),
    ),
)
