"""Mistakes in what readers see of a log that goes back, and in who is read for first."""

from tests.teeth.mutations.mutation import Mutation

EVENTS = "actors/logs/session_events.py:SessionEvents"
CUTS = "tests/test_reader_cuts.py"

MUTATIONS = (
    Mutation(
        "late readers: who is ahead of a log that went back reads it for ever when its session has ended",
        f"{EVENTS}._publish",
        """
        if following.cut_to is None:
            raise self._gone()
        """,
        "",
        (f"{CUTS}::test_a_reader_ahead_of_a_log_that_went_back_is_told_when_its_session_ends",),
    ),
)
