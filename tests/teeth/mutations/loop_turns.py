"""Mistakes in how the kernel gets the next turn of trio's loop."""

from tests.teeth.mutations.mutation import Mutation

TURNS, PARKING = "tests/kernel/test_trio_turns.py", "actors/kernel/event_loop.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "turns: a system that ends leaves the task of its turns behind",
        "actors/kernel/host.py:SystemHost._run",
        "self._loop.rest()",
        "",
        (f"{TURNS}::test_a_system_leaves_no_task_behind",),
    ),
    Mutation(
        "turns: work is lost at the end of the run",
        f"{PARKING}:TrioTurns._abort",
        "self._parked, self._is_over = None, True",
        "self._parked = None\nself._is_running = True",
        (f"{TURNS}::test_work_of_the_end_of_the_run_is_handed_over_to_trio",),
    ),
    Mutation(
        "turns: work that was added meanwhile is called in the same turn",
        f"{PARKING}:TrioTurns._run",
        "await lowlevel.cancel_shielded_checkpoint()",
        "",
        (f"{TURNS}::test_work_that_schedules_itself_again_leaves_turns_to_other_tasks",),
    ),
    Mutation(
        "turns: work that is due at rest is dropped",
        f"{PARKING}:TrioTurns._run",
        "self._due or not self._ends",
        "not self._ends",
        (f"{TURNS}::test_the_task_ends_at_rest_after_the_work_that_is_due_and_later_work_starts_another",),
    ),
)
