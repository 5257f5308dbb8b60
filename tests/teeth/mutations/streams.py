"""Mistakes in what readers are shown."""

from tests.teeth.mutations.mutation import Mutation

LOG = "tests/test_published.py::test_the_log_tells_the_same_events_as_the_stream_did"
FAILOVER = "tests/test_published.py::test_a_failover_is_told_alike"
GROUPS = "tests/test_published.py::test_the_last_of_the_events_of_one_number_and_no_other_may_be_read_on_from"
CUT = "tests/test_session_events.py::test_a_reader_cut_off_at_any_event_reads_on_and_has_missed_nothing"
SAME = "tests/test_session_events.py::test_two_readers_that_come_early_and_one_that_comes_late_see_the_same"
SLOW = "tests/test_session_events.py::test_a_slow_reader_is_told_to_resync_and_has_lost_deltas_only"
LEFT = "tests/test_session_events.py::"
LEFT += "test_readers_are_told_when_the_runtime_is_left_and_nothing_is_left_of_those_that_go"
WITHIN = "tests/test_session_events.py::test_a_reader_that_comes_in_the_midst_of_an_answer_hears_the_rest_as_it_comes"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "streams: a late reader is told of calls that were never run as of a batch",
        "actors/core/publishing.py",
        'NOT_RUN = ("never_started", "outcome_unknown")',
        'NOT_RUN = ("outcome_unknown",)',
        (LOG,),
    ),
    Mutation(
        "streams: a rewritten request counts as one more round",
        "actors/core/publishing.py",
        "self.rounds += self.request != (turn, number)",
        "self.rounds += 1",
        (LOG,),
    ),
    Mutation(
        "streams: the attempts of an ask are those of its last turn",
        "actors/core/publishing.py",
        "        self.attempts.append(Attempt(",
        "        self.attempts = [*self.attempts[:0]]\n        self.attempts.append(Attempt(",
        (FAILOVER,),
    ),
    Mutation(
        "streams: a number is said to be seen when its first event is",
        "actors/core/publishing.py",
        "            more=bool(calls),\n",
        "",
        (GROUPS, CUT),
    ),
    Mutation(
        "streams: deltas overtake what is in the log before them",
        "actors/readers.py",
        "return self._deltas[0][0] if self._deltas else self.last or 0",
        "return 0 if self._deltas else self.last or 0",
        (SAME,),
    ),
    Mutation(
        "streams: a slow reader is not told what it lost",
        "actors/readers.py",
        "            self.lost += BUFFER\n",
        "",
        (SLOW,),
    ),
    Mutation(
        "streams: a reader that left is kept",
        "actors/readers.py",
        "                self._following.pop(session, None)",
        "                pass",
        (LEFT,),
    ),
    Mutation(
        "streams: an answer that nobody read from its start is not shown to who comes",
        "actors/steps.py",
        "            self._sink,\n",
        "            self._sink if self._sink.is_watched else None,\n",
        (WITHIN,),
    ),
)
