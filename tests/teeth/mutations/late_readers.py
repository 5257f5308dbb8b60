"""Mutations of readers of a log that is cut, and of the priority of reads."""

from tests.teeth.mutations.mutation import Mutation

EVENTS = "actors/journal/session_events.py:SessionEvents"
CUTS = "tests/journal/test_reader_cuts.py"

MUTATIONS = (
    Mutation(
        "late readers: a reader past the end of a cut log reads forever after its session ended",
        f"{EVENTS}._convert_events",
        """
        if subscriber.rolled_back_to is None:
            raise self._ended_error()
        """,
        "",
        (f"{CUTS}::test_a_reader_past_the_end_of_a_cut_log_learns_that_its_session_ended",),
    ),
    Mutation(
        "late readers: a reader cancelled while it rewinds forgets the rewind",
        f"{EVENTS}._roll_back",
        "last = subscriber.rolled_back_to",
        "last, subscriber.rolled_back_to = subscriber.rolled_back_to, None",
        (f"{CUTS}::test_a_reader_cancelled_while_it_rewinds_misses_nothing",),
    ),
    Mutation(
        "late readers: a log that is cut again during a rewind has ended",
        f"{EVENTS}._roll_back",
        "subscriber.rolled_back_to == last",
        "True",
        (f"{CUTS}::test_a_reader_of_a_log_cut_twice_rewinds_to_the_earlier_cut",),
    ),
    Mutation(
        "late readers: a log that is cut while a reader starts has ended",
        f"{EVENTS}._subscribe",
        """
        if subscriber.rolled_back_to is None:
            raise
        """,
        "raise",
        (f"{CUTS}::test_a_reader_that_starts_while_its_log_is_cut_starts_again",),
    ),
    Mutation(
        "late readers: a reader that starts while its log is cut is past its end",
        f"{EVENTS}._subscribe",
        """
        if subscriber.rolled_back_to is None:
            break
        """,
        "break",
        (f"{CUTS}::test_a_reader_that_starts_while_its_log_is_cut_is_not_treated_as_past_the_end",),
    ),
    Mutation(
        "late readers: all pages but the first of a log in use wait like a client's",
        "actors/journal/pages.py:LogPages.__init__",
        "as_writer or urgent",
        "urgent",
        ("tests/journal/test_readers.py::test_excess_reads_never_refuse_a_page_of_a_log_in_use",),
    ),
    Mutation(
        "late readers: a late result is read with a client's priority",
        "actors/session/resolutions.py:_check_external_results",
        "LogPages(refs.journal, log.state.session, urgent=True)",
        "LogPages(refs.journal, log.state.session)",
        (
            "tests/session/test_external_calls.py::test_a_late_result_is_recorded_even_if_the_read_queue_is_full",
        ),
    ),
    Mutation(
        "late readers: an append in progress is in doubt",
        "actors/journal/storage/postgres/storage.py:PostgresStorage._write_batch",
        "statement = sql.append(**...)",
        """
        self._doubt = batch
        statement = sql.append(labels=batch.changes_labels, blobs=batch.has_blobs)
        """,
        ("tests/journal/test_postgres_faults.py::test_a_read_does_not_wait_for_an_append_in_progress",),
    ),
)
