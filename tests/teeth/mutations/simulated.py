"""Mistakes in single features that the simulation finds by the invariants of each."""

from tests.teeth.mutations.mutation import Mutation
from tests.teeth.mutations.simulation import SEEDS

LIVE = "actors/configuration.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "simulated: another system prompt is forgotten",
        LIVE,
        "            self.system = change.system\n",
        "            pass\n",
        SEEDS,
    ),
    Mutation(
        "simulated: other tools are written and not offered",
        LIVE,
        "            self.offer = change.offer\n",
        "            pass\n",
        SEEDS,
    ),
    Mutation(
        "simulated: what is configured takes effect in the midst of an ask",
        "actors/session.py",
        '        if action == "apply":\n            self._log.send(self._changed()',
        "        if action:\n            self._log.send(self._changed()",
        SEEDS,
    ),
)
