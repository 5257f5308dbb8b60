"""Mutations of host operations at their edges: cancelled work, backups, sweeps, large events and shared budgets."""

from tests.teeth.mutations.mutation import Mutation

TASKS, SWEEPS = "tests/runtime/test_host_tasks.py", "tests/journal/test_sweeps.py"
BACKUP, OWN = "tests/journal/test_backup.py", "tests/journal/test_own_writes.py"
OPENING = "tests/runtime/test_get_or_create.py"
RESPONSES, INTERRUPTS = "tests/session/test_responses_sessions.py", "tests/host_code/test_interrupts.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "host tasks: a foreign exception is lost",
        "actors/runtime/host_task.py:HostTask._end",
        "isinstance(error, Exception)",
        "isinstance(error, ActorsError)",
        (f"{TASKS}::test_an_unexpected_error_of_a_deletion_reaches_its_caller",),
    ),
    Mutation(
        "host tasks: cancelled work appears complete",
        "actors/runtime/host_task.py:HostTask.result",
        "not self._is_done",
        "error is not None",
        (
            f"{TASKS}::test_work_that_was_cancelled_because_the_runtime_was_left_raises_and_is_not_logged_as_a_crash",
        ),
    ),
    Mutation(
        "host tasks: an unexpectedly failed close appears complete",
        "actors/runtime/lifecycle.py:SessionLifecycle._close",
        "raise",
        "pass",
        (f"{TASKS}::test_an_unexpected_error_of_a_close_reaches_its_caller_and_the_session_goes_on",),
    ),
    Mutation(
        "backup: a copy completed after a double cancellation stays",
        "actors/runtime/backups.py:_Backup._copy",
        "self._unwanted.is_set()",
        "not self._is_complete",
        (f"{TASKS}::test_a_backup_whose_caller_is_cancelled_natively_twice_leaves_no_file",),
    ),
    Mutation(
        "sweeps: sessions being deleted count against the limit",
        "actors/runtime/registry.py:SessionRegistry.check_room",
        'each.purpose == "open"',
        "True",
        (f"{SWEEPS}::test_a_sweep_does_not_count_against_the_session_limit",),
    ),
    Mutation(
        "sweeps: every doubtful session is remembered",
        "actors/runtime/retention.py:Retention.sweep",
        "len(examples) < logger.MOST",
        "True",
        (f"{SWEEPS}::test_a_sweep_remembers_a_bounded_number_of_doubtful_sessions",),
    ),
    Mutation(
        "sweeps: data kept by a reader is not logged",
        "actors/runtime/retention.py:Retention._vacuum_daily",
        "if found: ...",
        "",
        (f"{SWEEPS}::test_a_sweep_logs_remaining_data_and_retries_the_next_day",),
    ),
    Mutation(
        "sweeps: data kept by a reader for more than a day is logged once",
        "actors/runtime/retention.py:Retention._vacuum_daily",
        "any(each.is_temporary for each in found)",
        "False",
        (f"{SWEEPS}::test_a_sweep_logs_remaining_data_and_retries_the_next_day",),
    ),
    Mutation(
        "large events: an event may have one mebibyte",
        "actors/adapters/base.py:Decoder.framing",
        "self.frames(self.max_bytes)",
        "self.frames(min(self.max_bytes, _LARGE))",
        (
            f"{RESPONSES}::test_an_image_of_over_a_mebibyte_in_the_last_events_is_read",
            "tests/adapters/test_large_events.py::test_a_text_that_the_last_events_repeat_is_read_once_and_whole",
        ),
    ),
    Mutation(
        "interrupts: an interrupt while a value is read is swallowed",
        "actors/core/data/ingest.py:ValueWalk._read_foreign",
        "_is_interrupt(error)",
        "False",
        (f"{INTERRUPTS}::test_an_interrupt_that_a_signal_delivers_passes_where_values_are_read",),
    ),
    Mutation(
        "interrupts: an interrupt while a tool is created is swallowed",
        "actors/tools/signature.py:_schema_error",
        "is_delivered(failure)",
        "False",
        (f"{INTERRUPTS}::test_an_interrupt_that_a_signal_delivers_passes_where_a_tool_is_made",),
    ),
    Mutation(
        "backup: it needs hard links",
        "actors/journal/storage/sqlite/backup.py:_name",
        "error.errno not in _NO_LINKS",
        "True",
        (f"{BACKUP}::test_a_backup_works_without_hard_links",),
    ),
    Mutation(
        "backup: without hard links it replaces a file",
        "actors/journal/storage/sqlite/backup.py:_name",
        "os.close(os.open(*...))",
        "",
        (f"{BACKUP}::test_a_backup_without_hard_links_keeps_a_file_created_meanwhile",),
    ),
    Mutation(
        "large events: a line without data may be as large as an answer",
        "actors/adapters/framing.py:EventParser._check",
        'not line.startswith(b"data")',
        "False",
        ("tests/adapters/test_sse.py", "tests/session/test_faulty_streams.py"),
    ),
    Mutation(
        "own writes: a standby is read",
        "actors/journal/storage/postgres/storage.py:PostgresStorage._begin_reading",
        "check_primary(connection, self.where)",
        "",
        (f"{OWN}::test_a_standby_is_never_read",),
    ),
    Mutation(
        "own writes: the reader stays on the server that the writer left",
        "actors/journal/storage/postgres/storage.py:PostgresStorage._begin_writing",
        "self._reader.renew()",
        "",
        (f"{OWN}::test_a_reader_follows_its_writer_to_a_new_connection",),
    ),
    Mutation(
        "own writes: a read starts before earlier events are written",
        "actors/journal/journal_actor.py:JournalActor._run_batch",
        "group.reads.append(command)",
        "await self._begin_reading(command)",
        ("tests/journal/test_journal.py", "tests/journal/test_readers.py", OWN),
    ),
    Mutation(
        "open: a session being read is never released",
        "actors/runtime/residency.py:Residency.let_one_go",
        "self.unused[candidate.name] = candidate",
        "pass",
        (f"{OPENING}::test_a_session_that_waits_or_is_read_keeps_its_place",),
    ),
    Mutation(
        "open: the same sessions are examined each time",
        "actors/runtime/residency.py:Residency.let_one_go",
        "del self.unused[candidate.name]",
        "pass",
        (f"{OPENING}::test_a_session_that_is_read_hides_none_that_nobody_has",),
    ),
    Mutation(
        "open: a session interrupted by an outage is not released",
        "actors/runtime/lifecycle.py:SessionLifecycle.let_go",
        'self.is_over or (self._state == "suspended" and self.current.runs_tools)',
        'self._state not in ("stored", "folded")',
        (f"{OPENING}::test_a_session_that_an_outage_broke_off_makes_place_for_another",),
    ),
    Mutation(
        "host tasks: a cancelled close appears complete",
        "actors/runtime/lifecycle.py:SessionLifecycle.close",
        "self.is_over",
        "True",
        (f"{TASKS}::test_a_caller_does_not_wait_for_a_close_that_was_cancelled_before_its_first_step",),
    ),
    Mutation(
        "host tasks: a cancelled close cannot be repeated",
        "actors/runtime/lifecycle.py:SessionLifecycle.closing",
        "self._closing is None or self._closing.has_failed",
        "self._closing is None",
        (f"{TASKS}::test_a_caller_does_not_wait_for_a_close_that_was_cancelled_before_its_first_step",),
    ),
    Mutation(
        "open: a session released while it is closed is forgotten",
        "actors/runtime/lifecycle.py:SessionLifecycle._rest_unused",
        "self.handles or self.is_over",
        "self.handles or self.is_over or self._closing is not None",
        (
            f"{OPENING}::test_a_session_that_was_given_back_during_a_close_that_failed_makes_place_for_another",
        ),
    ),
    Mutation(
        "host tasks: an error that cannot be copied is replaced",
        "actors/session/pending.py:copy_error",
        "call_host(*...)",
        "copy(error)",
        (f"{TASKS}::test_an_error_of_a_close_that_cannot_be_copied_reaches_its_caller_as_it_is",),
    ),
    Mutation(
        "host tasks: a frame and its error keep each other alive",
        "actors/runtime/host_task.py:HostTask._end",
        "copy_error(error)",
        "error",
        (
            f"{TASKS}::test_a_task_keeps_neither_its_work_nor_a_frame_of_its_error_and_each_caller_gets_an_error",
        ),
    ),
    Mutation(
        "open: a session with a waiting ask is evicted",
        "actors/runtime/lifecycle.py:SessionLifecycle.let_go",
        "self._submitting",
        "False",
        (f"{OPENING}::test_a_session_that_was_looked_up_keeps_its_place_while_its_ask_waits_to_begin",),
    ),
)
