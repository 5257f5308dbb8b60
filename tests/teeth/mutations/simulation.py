"""Mistakes that the simulation finds, whatever else does: it knows the promises and no test of its own for each."""

from tests.teeth.mutations.mutation import Mutation

SEEDS = (
    "tests/test_simulation.py::test_whatever_goes_wrong_every_invariant_holds",
    "tests/test_simulation.py::test_a_model_that_heeds_what_it_is_told_needs_one_correction_per_fault",
)

FIGURES = "tests/test_simulation.py::test_each_figure_that_is_not_what_was_seen_is_told"
RETRIES = "tests/test_provider.py::test_a_retry_is_counted_when_it_is_sent"

MUTATIONS: tuple[Mutation, ...] = (
    *(
        Mutation(
            f"simulation: {what} is not counted again",
            "actors/testing/simulation/recount.py",
            old,
            new,
            (FIGURES,),
        )
        for what, old, new in (
            ("the figure of a backend", "for name in OF_A_BACKEND:\n", "for name in ():\n"),
            ("the figure of a runtime", "for name in OF_ALL:\n", "for name in ():\n"),
            (
                "a figure that is too great",
                "if must is not None and value != must:",
                "if must is not None and value < must:",
            ),
        )
    ),
    Mutation(
        "simulation: a retry that was not sent is counted",
        "actors/backends/rounds.py",
        "        if wait is None and failure.kind",
        '        self._counters["retries"] += wait is not None\n        if wait is None and failure.kind',
        (RETRIES,),
    ),
    Mutation(
        "simulation: a timer of the clock wakes nobody",
        "actors/testing/simulation/loop.py",
        "            if number in self._waiting:\n",
        "            if number in self._waiting and number % 2:\n",
        ("tests/test_simulation.py::test_a_sleep_takes_its_virtual_time_and_ends_when_it_is_cancelled",),
    ),
    Mutation(
        "simulation: synthetic results are sent before they are sealed",
        "actors/turns/steps.py",
        "sealed = seals(rendered, known.ledger)\n",
        "sealed = ()\n",
        SEEDS,
    ),
    Mutation(
        "simulation: a call is closed twice",
        "actors/scheduler.py",
        "self._open.pop(running.call.id, None) is not None:",
        "self._open.pop(running.call.id, None) is not None or event is not None:",
        SEEDS,
    ),
    Mutation(
        "simulation: a switch moves the turn in flight",
        "actors/session.py",
        '        if action == "apply":\n            self._log.send(SwitchApplied',
        "        if True:\n            self._log.send(SwitchApplied",
        SEEDS,
    ),
    Mutation(
        "simulation: a held switch is forgotten at the boundary",
        "actors/session.py",
        "        elif state.held is not None:\n            event = settled",
        "        elif state.closed:\n            event = settled",
        SEEDS,
    ),
    Mutation(
        "simulation: a request is tried again after some of its answer was shown",
        "actors/backends/rounds.py",
        'if failure.action != "retry" or self._visible or',
        'if failure.action != "retry" or',
        (
            "tests/test_simulation.py::test_what_was_shown_is_not_said_again_where_answers_break_off_all_the_time",
        ),
    ),
    Mutation(
        "simulation: a late result is lost",
        "actors/scheduler.py",
        'self._executor.apart(partial(self._late, event), "late")',
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulation: calls that are not run stay open",
        "actors/turns/steps.py",
        '        await self._close(step.unrun, "never_started")\n',
        "",
        SEEDS,
    ),
    Mutation(
        "simulation: a lane is not adopted when its request is written",
        "actors/turns/steps.py",
        "await self._refs.renderer.tell(Adopt(binding, rendered.lane))",
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulation: a cancel waits for the tool",
        "actors/scheduler.py",
        "self._executor.after(GRACE, self._give_up)",
        "pass",
        SEEDS,
    ),
    Mutation(
        "simulation: a try is not counted",
        "actors/backends/rounds.py",
        '        self._counters["requests"] += 1\n',
        '        self._counters["requests"] += self._tries == 1\n',
        SEEDS,
    ),
    Mutation(
        "simulation: a round's usage is not added up",
        "actors/core/turn.py",
        "outcome.message or end.message, end.usage + outcome.usage",
        "outcome.message or end.message, outcome.usage",
        SEEDS,
    ),
    Mutation(
        "simulation: a model is not told which argument is missing",
        "actors/core/arguments.py",
        'return _tool_error("invalid_arguments", name, message, errors)',
        'return _tool_error("invalid_arguments", name, "They are wrong.", [])',
        SEEDS,
    ),
)
