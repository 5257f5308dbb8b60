"""Mutations of single features that the simulation detects by its invariants."""

from tests.teeth.mutations.mutation import Mutation
from tests.teeth.mutations.simulation import SEEDS

LIVE = "actors/session/configuration.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "simulated: a changed system prompt is forgotten",
        f"{LIVE}:Configuration.apply_change",
        "self.system = change.system",
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulated: changed tools are logged and not offered",
        f"{LIVE}:Configuration.apply_change",
        "self.session_tools = change.session_tools",
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulated: a configuration takes effect during an ask",
        "actors/session/held_changes.py:HeldChanges.configure",
        "at_once",
        "True",
        SEEDS,
    ),
    Mutation(
        "simulated: the value of an answer is dropped",
        "actors/session/inflight.py:AskInFlight.read_answer",
        "self.tally.output, self.tally.answer_repairs = made",
        "",
        SEEDS,
    ),
    Mutation(
        "simulated: an answer is corrected endlessly",
        "actors/core/turn/turn.py:_TurnRules._after_check",
        "self._end.malformed >= self._bounds.max_corrections",
        "self._end.malformed >= 99",
        SEEDS,
    ),
    Mutation(
        "simulated: edited arguments are only in the log",
        "actors/core/session/open_asks.py:with_edits",
        "call if decision.arguments is None else call.with_arguments(decision.arguments)",
        "call",
        SEEDS,
    ),
    Mutation(
        "simulated: edited arguments are not judged",
        "actors/session/resolutions.py:_check_decision",
        "(errors := (await refs.scheduler.ask(CheckCall(edited, variables))))",
        "(errors := (await refs.scheduler.ask(CheckCall(edited, variables)))) and (not edited)",
        SEEDS,
    ),
    Mutation(
        "simulated: the parts of a message change their order",
        "actors/session/user_input.py:pack_user_input",
        'Message("user", [_to_block(number, part) for number, part in enumerate(message)])',
        'Message("user", [_to_block(number, part) for number, part in enumerate(message)][::-1])',
        SEEDS,
    ),
    Mutation(
        "simulated: calls behind an ended call do not wait for its tool",
        "actors/scheduler/ordering.py:ResourceWriter.wait_for_turn",
        "not writer.is_over",
        "writer.is_over and (not writer.is_closed)",
        SEEDS,
    ),
    Mutation(
        "simulated: writers do not wait for each other",
        "actors/scheduler/ordering.py:ResourceWriter.__init__",
        "[writer for key in keys for writer in order.get(key, ())]",
        "[writer for key in keys for writer in order.get(key, ()) if not key]",
        SEEDS,
    ),
    Mutation(
        "simulated: a program receives a different result than the log",
        "actors/session/separate_turns.py:run_host_call",
        "known.completion or ...",
        "ToolResult(call.id, content=0) or ...",
        SEEDS,
    ),
    Mutation(
        "simulated: a program's call asks for approval",
        "actors/session/separate_turns.py:run_host_call",
        "RunBatch(*..., **..., approved=True)",
        "RunBatch(*..., **...)",
        SEEDS,
    ),
    Mutation(
        "simulated: tools stay on at the round limit",
        "actors/core/turn/turn.py:_TurnRules._next_round",
        "self._end.rounds >= self._bounds.max_rounds",
        "self._end.rounds > self._bounds.max_rounds",
        SEEDS,
    ),
    Mutation(
        "simulated: an ask's settings are missing in its requests",
        "actors/session/requests.py:TurnRequests._build",
        "self.backend.request(*..., plan.asked, omitted)",
        "self.backend.request(*..., None, omitted)",
        SEEDS,
    ),
    Mutation(
        "simulated: a token budget is not counted",
        "actors/core/settings/spending.py:exhausted_limit",
        "(tokens := used.tokens) >= budget.tokens",
        "(tokens := used.tokens) >= 9 * budget.tokens",
        SEEDS,
    ),
    Mutation(
        "simulated: a round budget allows one too many",
        "actors/core/settings/spending.py:exhausted_limit",
        "used.rounds >= budget.rounds",
        "used.rounds > budget.rounds",
        SEEDS,
    ),
    Mutation(
        "simulated: a tenant's shared budget is never used up",
        "actors/provider/budgets.py:Share._wait_until_counted",
        "budget.used_up_limit()",
        "None",
        SEEDS,
    ),
    Mutation(
        "simulated: a call ends before its subagent",
        "actors/scheduler/calls.py:CallExecution._report_end",
        "self._subagents.end_and_notify(partial(self.batch.on_end, self, event))",
        "self.batch.on_end(self, event)",
        ("tests/subagents/test_ends.py",),
    ),
    Mutation(
        "simulated: a handoff does not move the conversation",
        "actors/session/turn_changes.py:HandoverSteps.requested_handover",
        "handover is not None and known is not None and known.completion and (not known.completion.error)",
        "handover is not None and known is not None and known.completion and known.completion.error",
        SEEDS,
    ),
    Mutation(
        "simulated: a handoff moves the ask but not the session's target",
        "actors/session/turn_changes.py:HandoverSteps.apply_handover",
        "(*..., target)",
        "(*...,)",
        SEEDS,
    ),
    Mutation(
        "simulated: a handoff's configuration overrides the host's",
        "actors/session/turn_changes.py:HandoverSteps._apply_configuration",
        "active_config.hold(change, as_older=True)",
        "active_config.hold(change)",
        SEEDS,
    ),
    Mutation(
        "simulated: a cancelled call does not wait for its thread",
        "actors/scheduler/calls.py:CallExecution.stop",
        """
        if self._thread is None:
            self._task.cancel()
        """,
        "self._task.cancel()",
        SEEDS,
    ),
    Mutation(
        "simulated: a shared toolset is opened for each session",
        "actors/tools/toolsets.py:Toolsets._resolve_item",
        "source.shared",
        "not source.shared",
        SEEDS,
    ),
    Mutation(
        "simulated: a recovered refusal is the cause of a cancelled turn",
        "actors/core/turn/turn.py:_TurnRules.next",
        "self._record_outcome(outcome, cause=None)",
        "self._take(outcome)",
        (
            "tests/core/test_turn.py::test_a_rejection_followed_by_an_accepted_retry_is_not_the_cause_of_a_cancelled_turn",
        ),
    ),
    Mutation(
        "simulated: a summary within an ask is not in its usage",
        "actors/session/separate_turns.py:CompactionTurns.compact",
        "ask.tally.record_turn_end(step, ask.resolver.cost(backend.binding, step.usage))",
        "",
        SEEDS,
    ),
    Mutation(
        "simulated: a switch right after a crash leaves the held one unsettled",
        "actors/session/held_changes.py:HeldChanges.switch",
        "(held := log.state.held) is not None",
        "not at_once and (held := log.state.held) is not None",
        (
            "tests/session/test_switching.py::test_a_switch_after_a_crash_supersedes_a_switch_queued_before_the_crash",
        ),
    ),
    Mutation(
        "simulated: a turn that ends before its subagents is not reported",
        "tests/simulation/invariants/below.py:EndedSubagents._on_turn_ended",
        "self._open.get(session)",
        "self._open.get(event.reason)",
        (
            "tests/simulation/test_simulation_invariants.py::test_a_turn_that_ends_before_its_subagents_is_reported",
        ),
    ),
    Mutation(
        "simulated: an unsettled held switch is not reported",
        "tests/simulation/witness.py:Witness._switch",
        "seen.held != target",
        "False",
        (
            "tests/simulation/test_simulation_invariants.py::test_a_deferred_switch_replaced_without_an_event_is_reported",
        ),
    ),
    Mutation(
        "simulated: endless retries of a too long request are not reported",
        "tests/simulation/invariants/too_long.py:TooLongRequests.record_refusal",
        "self._refused[session] > TRIES",
        "not self._refused[session]",
        (
            "tests/simulation/test_simulation_invariants.py::test_a_too_long_request_may_be_retried_three_times",
        ),
    ),
    Mutation(
        "simulated: a summary resets the retries of a too long request",
        "tests/simulation/invariants/too_long.py:TooLongRequests._on_ended",
        "event.round and event.fault is None",
        "event.fault is None",
        (
            "tests/simulation/test_simulation_invariants.py::test_a_too_long_request_may_be_retried_three_times",
        ),
    ),
    Mutation(
        "simulated: the media of a result are lost",
        "actors/core/render/walk.py:RenderWalk._place_media",
        "moved.append(media)",
        "",
        SEEDS,
    ),
    Mutation(
        "simulated: a toolset's changes are ignored",
        "actors/tools/toolset_owner.py:ToolsetOwner._publish_changes",
        """
        self._publish_tools(opened.tools)
        self._changes.notify()
        """,
        "pass",
        ("tests/commands/test_simulation.py::test_the_simulation_runs_exercise_every_feature",),
    ),
    Mutation(
        "simulated: a subagent with a format answers in text",
        "actors/runtime/subagents.py:subagent",
        "result.text if output is None else result.output",
        "result.text",
        SEEDS,
    ),
    Mutation(
        "simulated: a compaction during a turn resets the corrections",
        "actors/session/separate_turns.py:CompactionTurns.compact",
        "ask.tally.malformed",
        "0",
        ("tests/session/test_compaction.py::test_corrections_are_counted_across_a_compaction",),
    ),
)
