"""Mutations of reads of a journal beside its writers."""

from tests.teeth.mutations.mutation import Mutation

JOURNAL, RECORDS = "actors/journal/journal_actor.py", "actors/journal/storage/sqlite/records.py"
TESTS = "tests/journal/test_readers.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "readers: a log is read in the writer's thread",
        f"{JOURNAL}:JournalActor._run_read",
        "self._threads.read",
        "self._threads.write",
        (f"{TESTS}::test_other_sessions_write_while_a_page_is_read",),
    ),
    Mutation(
        "readers: an event is shown before it is acknowledged",
        f"{JOURNAL}:JournalActor._check_answer",
        "page.up_to(self._logs.visible_end(command.session, page.last))",
        "page",
        (f"{TESTS}::test_readers_see_no_unacknowledged_event",),
    ),
    Mutation(
        "readers: the number of waiting reads is unbounded",
        f"{JOURNAL}:JournalActor._queue_read",
        "self._reads.is_full",
        "False",
        (f"{TESTS}::test_excess_reads_are_refused_unless_a_session_needs_them",),
    ),
    Mutation(
        "readers: the end of a log is published as its first event",
        "actors/journal/session_events.py:SessionEvents._create_publisher_at",
        "first and (not start.is_found)",
        "first",
        (f"{TESTS}::test_reading_the_end_of_a_log_skips_its_beginning",),
    ),
    Mutation(
        "readers: an ask is published with turn 0",
        "actors/core/session/open_asks.py:AskStartSearch.search",
        "(event.turn, True)",
        "(0, True)",
        (
            "tests/core/test_ask_start.py::test_publishing_from_the_start_of_an_ask_gives_the_same_events_as_from_the_log_start",
        ),
    ),
    Mutation(
        "readers: a log erased during a read has no end",
        "actors/journal/pages.py:LogPages.__anext__",
        "not page.events",
        "False",
        (f"{TESTS}::test_a_log_erased_while_it_is_read_raises_an_error",),
    ),
    Mutation(
        "readers: a page is found from the end of its log",
        f"{RECORDS}:_stored_rows",
        "until < row.last",
        "False",
        (f"{TESTS}::test_a_page_inside_a_log_is_read_from_the_next_waypoint",),
    ),
    Mutation(
        "readers: a wrong waypoint is damage",
        f"{RECORDS}:_stored_rows",
        "len(found) == until - after",
        "True",
        (f"{TESTS}::test_a_missing_or_wrong_waypoint_only_slows_the_read",),
    ),
    Mutation(
        "readers: an overdue checkpoint never waits for a reader",
        "actors/journal/storage/sqlite/connection.py:Connections._checkpoint",
        "self.pages >= OVERDUE",
        "False",
        (f"{TESTS}::test_only_an_overdue_checkpoint_waits_until_a_page_has_been_read",),
    ),
    Mutation(
        "readers: Postgres reads as many large values as records fit a page",
        "actors/journal/storage/postgres/reading.py:_first_page",
        "size >= PAGE_BYTES",
        "False",
        (f"{TESTS}::test_postgres_reads_no_large_values_beyond_the_current_page_of_a_log",),
    ),
    Mutation(
        "readers: an export blocks the event loop until a page is written",
        "actors/runtime/journal_admin.py:JournalAdmin.export",
        "await throttle.pause()",
        "pass",
        (f"{TESTS}::test_an_export_does_not_block_the_event_loop",),
    ),
)
