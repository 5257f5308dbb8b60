"""Mistakes in the actors and what they stand on."""

from tests.teeth.mutations.mutation import Mutation

ACTIVATION = "tests/test_activation.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "switch: one asked for during a turn is applied at once",
        "actors/session.py",
        '        if action == "apply":\n',
        "        if True:\n",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "switch: one that was held is forgotten at the boundary",
        "actors/session.py",
        "        if held is not None:\n            event = settled",
        "        if False:\n            event = settled",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "runtime: a target takes any number of tools",
        "actors/runtime.py",
        "if most is not None and (count := len(self._tools)) > most:",
        "if most is not None and (count := len(self._tools)) > most and False:",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "session: put away while an event is being written",
        "actors/session.py",
        '        return self._phase in ("idle", "ended") and self._log.is_settled',
        '        return self._phase in ("idle", "ended")',
        (f"{ACTIVATION}::test_a_session_whose_event_is_being_written_keeps_its_actors",),
    ),
    Mutation(
        "session: put away while a tool still runs",
        "actors/activation.py",
        "        if self._executor.running:\n",
        "        if False:\n",
        (
            f"{ACTIVATION}::test_a_tool_that_still_runs_keeps_its_sessions_actors_and_its_late_result_is_taken",
        ),
    ),
    Mutation(
        "session: its lanes are forgotten when it is put away",
        "actors/activation.py",
        "        return Asleep(state, renderer.lanes, head.cooldowns or None)",
        "        return Asleep(state, None, head.cooldowns or None)",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: its ledger is the one it began with when it is put away",
        "actors/activation.py",
        "        state = replace(head.state, ledger=ledger.known.ledger.unread())",
        "        state = head.state",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: to be put away is to end",
        "actors/activation.py",
        "        self._unwatch()  # these ending does not end the session\n",
        "",
        (ACTIVATION,),
    ),
    Mutation(
        "session: something is written behind its end",
        "actors/session.py",
        "        await self._refs.ledger.ask(Shut())\n",
        "",
        (
            "tests/test_runtime.py::test_what_a_tool_returns_while_its_session_is_closed_is_not_written_behind_the_end",
        ),
    ),
    Mutation(
        "provider: a whole answer is lost when its time runs out behind its end",
        "actors/provider.py",
        "if scope.cancelled_caught and not self._decoder.ended:",
        "if scope.cancelled_caught:",
        ("tests/test_provider.py",),
    ),
    Mutation(
        "provider: a refusal whose words break off is tried again",
        "actors/provider.py",
        "        with suppress(ProviderFailed):  # the status has said what matters\n",
        "        with suppress():\n",
        ("tests/test_provider.py",),
    ),
    Mutation(
        "provider: a blank line is the beginning of a stream",
        "actors/provider.py",
        "if not is_begun and (begun := chunk.lstrip()):",
        "if not is_begun and (begun := chunk.lstrip() or chunk):",
        ("tests/test_provider.py",),
    ),
)
