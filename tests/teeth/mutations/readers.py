"""Mistakes in what reads a journal beside those who write it."""

from tests.teeth.mutations.mutation import Mutation

JOURNAL, RECORDS = "actors/journal/journal_actor.py", "actors/journal/storage/sqlite/records.py"
TESTS = "tests/journal/test_readers.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "readers: a log is read in the thread that writes",
        f"{JOURNAL}:JournalActor._start_read",
        "self._threads.read",
        "self._threads.write",
        (f"{TESTS}::test_while_a_page_of_a_log_is_being_read_other_sessions_write",),
    ),
    Mutation(
        "readers: an event is shown before it is acknowledged",
        f"{JOURNAL}:JournalActor._check_answer",
        "page.up_to(self._ends.acknowledged_end(command.session, page.last))",
        "page",
        (f"{TESTS}::test_what_is_written_and_not_acknowledged_is_shown_to_no_reader",),
    ),
    Mutation(
        "readers: any number of reads may wait",
        f"{JOURNAL}:JournalActor._begin_reading",
        "self._reads.is_full",
        "False",
        (f"{TESTS}::test_of_too_many_reads_those_are_refused_that_no_session_needs_to_go_on",),
    ),
    Mutation(
        "readers: the end of a log is published from its first event",
        "actors/journal/session_events.py:SessionEvents._publisher_at",
        "first and (not start.is_found)",
        "first",
        (f"{TESTS}::test_the_end_of_a_long_log_is_read_without_its_beginning",),
    ),
    Mutation(
        "readers: an ask is published as of turn 0",
        "actors/core/session/ask_start.py:AskStart.look",
        "(event.turn, True)",
        "(0, True)",
        ("tests/core/test_ask_start.py::test_a_log_is_published_alike_from_any_place_on",),
    ),
    Mutation(
        "readers: a log that is erased while it is read has no end",
        "actors/journal/pages.py:LogPages.__anext__",
        "not page.events",
        "False",
        (f"{TESTS}::test_a_log_that_is_erased_while_it_is_read_is_an_error_and_not_a_shorter_log",),
    ),
    Mutation(
        "readers: a page is found from the end of its log",
        f"{RECORDS}:_stored_rows",
        "until < row.last",
        "False",
        (f"{TESTS}::test_a_page_in_the_midst_of_a_log_is_read_from_the_next_waypoint",),
    ),
    Mutation(
        "readers: a waypoint that is wrong is damage",
        f"{RECORDS}:_stored_rows",
        "len(found) == until - after",
        "True",
        (f"{TESTS}::test_a_waypoint_that_is_missing_or_wrong_only_makes_the_way_longer",),
    ),
    Mutation(
        "readers: an overdue checkpoint never waits for a reader",
        "actors/journal/storage/sqlite/connection.py:Connections._checkpoint",
        "self.pages >= OVERDUE",
        "False",
        (f"{TESTS}::test_a_checkpoint_waits_for_no_page_unless_it_is_overdue",),
    ),
    Mutation(
        "readers: of Postgres as many large values are read as records fit a page",
        "actors/journal/storage/postgres/reading.py:_first_page",
        "size >= PAGE_BYTES",
        "False",
        (f"{TESTS}::test_of_postgres_no_more_large_values_are_read_than_fit_a_page",),
    ),
    Mutation(
        "readers: an export holds up the event loop until a page is written",
        "actors/runtime/journal_admin.py:JournalAdmin.export",
        "await throttle.pause()",
        "pass",
        (f"{TESTS}::test_while_a_log_is_exported_the_event_loop_comes_round",),
    ),
)
