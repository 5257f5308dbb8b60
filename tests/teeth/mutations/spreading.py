"""Mutations of pools that spread sessions over their members."""

from tests.teeth.mutations.mutation import Mutation

ROUTING, CHOOSING = "actors/core/policy/routing.py", "actors/provider/resolver.py"
POOLS = "tests/provider/test_pools.py"
SPREAD = (f"{POOLS}::test_new_sessions_are_spread_over_a_pool",)
GOES_ON = (f"{POOLS}::test_a_session_keeps_its_position_in_a_pool_across_hibernation",)

MUTATIONS = (
    Mutation(
        "spreading: each session of a round robin starts with the first member",
        f"{ROUTING}:_order_members",
        "at % len(pool.members)",
        "(position.ask - 1) % len(pool.members)",
        SPREAD,
    ),
    Mutation(
        "spreading: every session has the same position",
        "actors/provider/resolver.py:StartPositions.next_position",
        "self._next[pool] = place + 1",
        "self._next[pool] = place",
        SPREAD,
    ),
    Mutation(
        "spreading: a session's position changes with each ask",
        f"{CHOOSING}:MemberSelector._ask_position",
        "pool.name not in start_positions",
        "True",
        GOES_ON,
    ),
    Mutation(
        "spreading: a session that joins a pool later starts further on",
        f"{CHOOSING}:MemberSelector._ask_position",
        "AskPosition(self._ask - first_ask + 1, place)",
        "AskPosition(self._ask, place)",
        GOES_ON,
    ),
    Mutation(
        "spreading: each process starts with the first member",
        "actors/provider/resolver.py:StartPositions.next_position",
        "0 if self._is_seeded else self._random.randrange(POSITION_RANGE)",
        "0",
        (f"{POOLS}::test_the_first_position_in_a_pool_is_random_unless_the_runtime_is_seeded",),
    ),
)
