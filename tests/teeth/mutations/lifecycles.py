"""Mistakes in the life of a session: how it begins, what is kept of it, and how it ends."""

from tests.teeth.mutations.mutation import Mutation

ONCE = "tests/test_one_replay.py"

MUTATIONS = (
    Mutation(
        "lifecycle: the actors of a resumed session read the log again",
        "actors/runtime/session_actors.py:SessionActors._ledger_actor",
        "self._generation.following(replay)",
        "self._generation.following()",
        (f"{ONCE}::test_a_log_that_breaks_off_is_read_and_folded_once_when_its_session_is_resumed",),
    ),
    Mutation(
        "lifecycle: the resolver that a session was opened with is made again at its first use",
        "actors/runtime/activation.py:Activation.recall",
        "Passive(replay, resolver=resolver)",
        "Passive(replay)",
        (f"{ONCE}::test_the_first_ask_of_a_resumed_session_reads_nothing_again",),
    ),
)
