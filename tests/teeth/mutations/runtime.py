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
        "kernel: a stray cancellation ends a runner that has just answered",
        "actors/kernel/runner.py",
        "            await self.pool.parking.checkpoint()\n        except BaseException as error:\n"
        "            self._stray(error)\n",
        "            await self.pool.parking.checkpoint()\n        except BaseException as error:\n"
        "            raise error\n",
        (
            "tests/kernel/test_actor_lifecycle.py::test_a_runner_cancelled_natively_lives_on",
            "tests/kernel/test_actor_lifecycle.py::test_a_busy_runner_cancelled_natively_lives_on",
        ),
    ),
    Mutation(
        "kernel: a runner waits as soon as it has answered",
        "actors/kernel/runner.py",
        "            if pool.attending == 1:\n",
        "            if False:\n",
        (
            "tests/kernel/test_actor_semantics.py::test_asks_that_follow_each_other_take_one_turn_of_the_loop_each",
        ),
    ),
    Mutation(
        "kernel: a query that was told is asked while it still waits to be handled",
        "actors/kernel/message.py",
        "    attach(query, Reply(Nobody()))\n    return query",
        "    return query",
        ("tests/kernel/test_actor_semantics.py::test_a_query_may_be_asked_again_and_told",),
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
        "        return Asleep(state, renderer.lanes, head.resting or None)",
        "        return Asleep(state, None, head.resting or None)",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: its ledger is the one it began with when it is put away",
        "actors/activation.py",
        "        state = replace(head.state, ledger=ledger.ledger)",
        "        state = head.state",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: to be put away is to end",
        "actors/activation.py",
        "        self._unwatch()  # that these end is no end of the session\n",
        "",
        (ACTIVATION,),
    ),
    Mutation(
        "session: something is written behind its end",
        "actors/session.py",
        "        await self._crew.ledger.ask(Shut())\n",
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
