"""Mistakes in what changes between turns: the system prompt and the tools."""

from tests.teeth.mutations.mutation import Mutation

STATE = "actors/core/state.py"
LANES = "tests/core/test_outdated.py"
WALKS = "tests/test_walks.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "configure: reasoning goes back behind other tools",
        STATE,
        "            if before.preamble != after.preamble:\n",
        "            if before.preamble == after.preamble:\n",
        (
            f"{LANES}::test_what_was_configured_begins_an_epoch_where_reasoning_is_bound_to_it_and_nowhere_else",
        ),
    ),
    Mutation(
        "configure: every lane is rewritten",
        STATE,
        '            if self._rules(binding)[0].reasoning.binding == "prefix":\n',
        '            if self._rules(binding)[0].reasoning.binding != "":\n',
        (
            f"{LANES}::test_what_was_configured_begins_an_epoch_where_reasoning_is_bound_to_it_and_nowhere_else",
        ),
    ),
    Mutation(
        "configure: what had to be said plainly is said as before",
        STATE,
        '"configured", lane.state.plain, CONFIGURED)',
        '"configured", False, CONFIGURED)',
        (f"{LANES}::test_a_lane_that_had_to_be_plain_stays_plain",),
    ),
    Mutation(
        "configure: a walk over bound hosts is refused",
        STATE,
        "state=lane.state._replace(outdated=True))",
        "state=lane.state._replace(outdated=False))",
        (f"{WALKS}::test_no_request_of_a_random_walk_is_refused_or_changes_what_was_sent",),
    ),
)
