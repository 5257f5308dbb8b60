"""Mutations of the pauses of long reads while writes are pending."""

from tests.teeth.mutations.mutation import Mutation

THROTTLE, EVENTS = "actors/journal/pages.py:ReadThrottle", "actors/journal/session_events.py"
JOURNAL, ADMIN = "actors/journal/journal_actor.py:JournalActor", "actors/runtime/journal_admin.py"
TESTS = "tests/journal/test_read_throttle.py"
STOPS = f"{TESTS}::test_a_client_pauses_after_one_slice_while_a_write_is_pending"
PENDING = f"{TESTS}::test_writes_count_as_pending_until_answered_and_reads_do_not"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "throttle: a reader pauses for one round of the event loop, whatever is pending",
        f"{THROTTLE}.pause",
        "if self._is_idle_since(answered): return",
        "return",
        (STOPS, f"{TESTS}::test_successive_writes_overtake_a_client_that_reads_a_long_log"),
    ),
    Mutation(
        "throttle: a pause has no limit while writes are pending",
        f"{THROTTLE}.pause",
        "here.now() + MAX_PAUSE",
        "float('inf')",
        (f"{TESTS}::test_a_reading_client_finishes_even_if_writes_are_always_pending",),
    ),
    Mutation(
        "throttle: a pause ends between two writes of one writer",
        f"{THROTTLE}._is_idle_since",
        "self._answered == answered",
        "True",
        (f"{TESTS}::test_a_reader_stays_paused_between_two_writes_of_one_writer",),
    ),
    Mutation(
        "throttle: pages are long while writes are pending",
        f"{THROTTLE}.page_size",
        "SLICE + self.pending",
        "limit",
        (f"{TESTS}::test_each_further_pending_write_allows_slightly_longer_pages",),
    ),
    Mutation(
        "throttle: a reader of events does not pause",
        f"{EVENTS}:SessionEvents._convert_events",
        "self._is_catching_up and not self._publisher.seq % SLICE",
        "False",
        (f"{STOPS}[asyncio-events]",),
    ),
    Mutation(
        "throttle: a reader of new events pauses too",
        f"{EVENTS}:SessionEvents._queue_page",
        "len(page.events) >= SLICE",
        "True",
        (f"{TESTS}::test_a_reader_of_new_events_does_not_pause_for_other_writers",),
    ),
    Mutation(
        "throttle: an export pauses by the number of events, not by their size",
        f"{ADMIN}:JournalAdmin.export",
        "size >= SLICE_BYTES",
        "False",
        (f"{TESTS}::test_an_export_pauses_after_each_large_event",),
    ),
    Mutation(
        "throttle: a read counts as pending",
        f"{JOURNAL}.receive",
        "not isinstance(command, Read)",
        "True",
        (PENDING,),
    ),
    Mutation(
        "throttle: answered writes stay pending",
        f"{JOURNAL}._process_queue",
        "self._throttle.end_writes(...)",
        "None",
        (PENDING,),
    ),
    Mutation(
        "throttle: writes of a crashed journal actor stay pending",
        f"{JOURNAL}.__init__",
        "self._throttle.end_writes(self._throttle.pending)",
        "",
        (f"{TESTS}::test_a_restarted_journal_actor_has_no_pending_writes",),
    ),
)
