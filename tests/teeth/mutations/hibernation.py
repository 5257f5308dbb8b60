"""Mistakes in sessions that sleep: what is kept of them, what is made of their logs, and who is taken in."""

from tests.teeth.mutations.mutation import Mutation

STATE = "tests/core/test_state.py"

MUTATIONS = (
    Mutation(
        "waking: lanes are rendered although nobody asks for one",
        "actors/core/state.py",
        "            self._to_fold.append((event, before, after))",
        "            self._fold(event, before, after)",
        (STATE,),
    ),
    Mutation(
        "waking: what happened to calls is told to the ledger behind the request that seals them",
        "actors/core/state.py",
        "            state = state.told(happened)\n            happened = []\n        before,",
        "            pass\n        before,",
        (STATE,),
    ),
)
