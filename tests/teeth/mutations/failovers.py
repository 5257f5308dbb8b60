"""Failovers of real Postgres servers, storage sweeps, and cancelled calls on Postgres."""

from tests.teeth.mutations.mutation import Mutation

LAGGING = (
    "tests/test_failover_matrix.py::test_callers_hear_of_each_event_that_a_lagging_standby_did_not_have",
)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "failover matrix: the log does not name a loss",
        "actors/journal.py:JournalActor._name_loss",
        "self._ends.lost(session)",
        "None",
        LAGGING,
    ),
    Mutation(
        "failover matrix: the session's reader does not hear of a loss",
        "actors/journal.py:JournalActor._lose",
        "self._readers.cut(error.session, error.first - 1)",
        "",
        LAGGING,
    ),
)
