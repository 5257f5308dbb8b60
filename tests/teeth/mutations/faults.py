"""Mistakes about tools that run away, and about faults."""

from tests.teeth.mutations.mutation import Mutation

_RUNAWAY = "tests/test_runaway_tools.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "a tool that blocks the loop is told of",
        "actors/watchdog.py",
        "        if step is None or now - step[1] < STALL:",
        "        if step is None or now - step[1] >= STALL:",
        (f"{_RUNAWAY}::test_a_tool_that_blocks_the_loop_is_named_with_its_place_while_it_does",),
    ),
    Mutation(
        "a wait is no stall",
        "actors/kernel/contained.py",
        "            finally:\n                containment.step = None\n",
        "            finally:\n                pass\n",
        (f"{_RUNAWAY}::test_a_tool_that_waits_is_no_stall_and_the_thread_that_looks_ends_by_itself",),
    ),
    Mutation(
        "a tool whose calls run on is barred",
        "actors/quarantine.py",
        "self._held[_key(tool)] >= self._most",
        "self._held[_key(tool)] > self._most",
        (f"{_RUNAWAY}::test_a_tool_whose_calls_run_on_gets_no_more_until_they_have_ended",),
    ),
    Mutation(
        "a call that ends leaves quarantine",
        "actors/calls.py",
        "                self.site.executor.quarantine.leave(self.tool)",
        "                pass",
        (f"{_RUNAWAY}::test_a_tool_whose_calls_run_on_gets_no_more_until_they_have_ended",),
    ),
)
