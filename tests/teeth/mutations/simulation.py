"""Mutations that the simulation detects by the general promises."""

from tests.teeth.mutations.mutation import Mutation

SEEDS = (
    "tests/commands/test_simulation.py::test_every_invariant_holds_under_faults",
    "tests/commands/test_simulation.py::test_a_simulated_model_that_reads_error_messages_needs_one_correction_per_fault",
)

FIGURES = "tests/commands/test_simulation.py::test_each_wrong_stats_figure_is_reported"
RETRIES = "tests/provider/test_provider.py::test_a_retry_is_counted_when_it_is_sent"

MUTATIONS: tuple[Mutation, ...] = (
    *(
        Mutation(
            f"simulation: {what} is not recounted",
            f"tests/simulation/recount.py:{name}",
            old,
            new,
            (FIGURES,),
        )
        for what, name, old, new in (
            ("the figure of a backend", "figures", "OF_A_BACKEND", "()"),
            ("the figure of a runtime", "figures", "OF_ALL", "()"),
            ("a figure that is too great", "stats_differences", "value != must", "value < must"),
        )
    ),
    Mutation(
        "simulation: a retry that was not sent is counted",
        "actors/provider/rounds.py:Round._next_wait",
        "wait = self._retry_wait(failure, random)",
        """
        wait = self._retry_wait(failure, random)
        self._counters["retries"] += wait is not None
        """,
        (RETRIES,),
    ),
    Mutation(
        "simulation: a timer of the clock wakes no task",
        "actors/testing/simulation/loop.py:_VirtualClock._wake_due_tasks",
        "number in self._waiting",
        "number in self._waiting and number % 2",
        ("tests/commands/test_simulation.py::test_a_sleep_takes_its_virtual_time_and_can_be_cancelled",),
    ),
    Mutation(
        "simulation: synthetic results are sent before they are sealed",
        "actors/session/requests.py:TurnRequests._log_request",
        "results_to_seal(rendered, snapshot.ledger)",
        "()",
        SEEDS,
    ),
    Mutation(
        "simulation: a call is closed twice",
        "actors/scheduler/scheduler_actor.py:_Batch.on_call_end",
        "self._open.pop(ended_call.call.id, None) is not None",
        "self._open.pop(ended_call.call.id, None) is not None or event is not None",
        SEEDS,
    ),
    Mutation(
        "simulation: a switch moves the running turn",
        "actors/session/held_changes.py:HeldChanges.switch",
        "at_once",
        "True",
        SEEDS,
    ),
    Mutation(
        "simulation: a held switch is not applied at the end of the ask",
        "actors/session/held_changes.py:HeldChanges._next_event",
        "resolve_switch(held, self._active_config.resolver.pool)",
        'SwitchFailed(held, "")',
        SEEDS,
    ),
    Mutation(
        "simulation: a request is retried after part of its answer was shown",
        "actors/provider/rounds.py:Round._retry_wait",
        'failure.action != "retry" or self._visible',
        'failure.action != "retry"',
        (
            "tests/commands/test_simulation.py::test_answers_that_often_break_off_do_not_repeat_text_already_shown",
        ),
    ),
    Mutation(
        "simulation: a late result is lost",
        "actors/scheduler/scheduler_actor.py:_Batch.on_call_end",
        'self._executor.start_separate_task(partial(self._record_late, event), "late")',
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulation: calls that are not run stay open",
        "actors/session/steps.py:TurnSteps.close",
        'await self._close_calls(step.unrun, "never_started")',
        "",
        SEEDS,
    ),
    Mutation(
        "simulation: a lane is not adopted when its request is written",
        "actors/session/requests.py:TurnRequests._log_request",
        "ask.generation.store_sent_lane(binding, rendered)",
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulation: a cancel waits for the tool",
        "actors/scheduler/scheduler_actor.py:_Batch.stop",
        "self._executor.call_after(GRACE, self._close_remaining)",
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulation: an attempt is not counted",
        "actors/provider/rounds.py:Round._send_and_read",
        'self._counters["requests"] += 1',
        'self._counters["requests"] += self._tries == 1',
        SEEDS,
    ),
    Mutation(
        "simulation: a round's usage is not added",
        "actors/core/turn/turn.py:_TurnRules._record_outcome",
        "(*..., end.usage + outcome.usage)",
        "(*..., outcome.usage)",
        SEEDS,
    ),
    Mutation(
        "simulation: a model does not learn which argument is missing",
        "actors/core/schemas/arguments.py:tool_error",
        "_tool_error(*..., message, errors)",
        '_tool_error(*..., "They are wrong.", [])',
        SEEDS,
    ),
)
