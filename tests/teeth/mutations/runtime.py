"""Mistakes in the kernel, the actors and what they stand on."""

from tests.teeth.mutations.mutation import Mutation

ACTIVATION = "tests/test_activation.py"
PUT_AWAY = "tests/kernel/test_put_away.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "switch: one asked for during a turn is applied at once",
        "actors/session.py",
        "        conductor = self._conductor\n        if conductor is None:",
        "        conductor = self._conductor\n        if True:",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "switch: one that was held is forgotten at the boundary",
        "actors/session.py",
        "        if held is None:\n            await self._concluded()",
        "        if True:\n            await self._concluded()",
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
        "kernel: a service is stopped under those who ask it",
        "actors/kernel/system.py",
        '        cells.sort(key=attrgetter("depth"))\n',
        "",
        ("tests/kernel/test_actor_lifecycle.py",),
    ),
    Mutation(
        "kernel: an actor is put away that owes an answer",
        "actors/kernel/cell.py",
        "        return not owes and self.actor is not None",
        "        return self.actor is not None",
        (PUT_AWAY,),
    ),
    Mutation(
        "session: put away while an event is being written",
        "actors/session.py",
        "        return not self._busy and self._head.settled",
        "        return not self._busy",
        (f"{ACTIVATION}::test_a_session_whose_event_is_being_written_keeps_its_actors",),
    ),
    Mutation(
        "session: put away while a tool still runs",
        "actors/activation.py",
        "        if self._running:\n",
        "        if False:\n",
        (
            f"{ACTIVATION}::test_a_tool_that_still_runs_keeps_its_sessions_actors_and_its_late_result_is_taken",
        ),
    ),
    Mutation(
        "session: its lanes are forgotten when it is put away",
        "actors/activation.py",
        "        self._lanes, self._resting = renderer.lanes, head.resting or None",
        "        self._resting = head.resting or None",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: its ledger is the one it began with when it is put away",
        "actors/activation.py",
        "        self._state = lay_down(replace(head.state, ledger=ledger.ledger))",
        "        self._state = lay_down(head.state)",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
)
