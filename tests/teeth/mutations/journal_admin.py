"""Mutations of the selection, deletion and reports of `Runtime.journal`."""

from tests.teeth.mutations.mutation import Mutation

ADMIN, RETENTION = "actors/runtime/journal_admin.py", "actors/runtime/retention.py"
TESTS, ERASURE, BACKUP = (
    "tests/journal/test_journal_admin.py",
    "tests/journal/test_erasure.py",
    "tests/journal/test_backup.py",
)
FIGURES = "tests/journal/test_operator_figures.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "journal: a deletion without a condition deletes everything",
        f"{ADMIN}:JournalAdmin.delete",
        "not ids and tenant is None and older_than is None",
        "not ids and tenant is None and older_than is None and not dry_run and False",
        (f"{TESTS}::test_a_deletion_without_conditions_is_refused",),
    ),
    Mutation(
        "journal: a named session is deleted whatever its tenant",
        f"{RETENTION}:_matching_ids",
        "tenant in (None, entry.tenant)",
        "tenant != entry.id",
        (f"{TESTS}::test_only_sessions_that_meet_every_condition_are_deleted",),
    ),
    Mutation(
        "journal: a named session is deleted whatever its age",
        f"{RETENTION}:_matching_ids",
        "before is None or entry.used < before",
        "before is None or entry.used > 0",
        (f"{TESTS}::test_only_sessions_that_meet_every_condition_are_deleted",),
    ),
    Mutation(
        "journal: a dry run deletes",
        f"{ADMIN}:JournalAdmin.delete",
        "if dry_run: ...",
        "",
        (f"{TESTS}::test_a_dry_run_lists_sessions_and_subagents_and_deletes_nothing",),
    ),
    Mutation(
        "journal: looking up a session resumes it after a refused event",
        "actors/journal/journal_actor.py:JournalActor._send_answer",
        "isinstance(command, FindSession | CheckOwner)",
        "isinstance(command, CheckOwner)",
        (f"{TESTS}::test_writes_stay_blocked_after_a_refused_event_even_if_the_session_is_looked_up",),
    ),
    Mutation(
        "journal: a check of a session's owner resumes it after a refused event",
        "actors/journal/journal_actor.py:JournalActor._send_answer",
        "isinstance(command, FindSession | CheckOwner)",
        "isinstance(command, FindSession)",
        (f"{TESTS}::test_writes_stay_blocked_after_a_refused_event_even_if_the_session_is_looked_up",),
    ),
    Mutation(
        "erasure: data kept by a reader is not reported",
        "actors/journal/storage/sqlite/connection.py:Connections.remove_deleted",
        "is_emptied = not (self.deleted or self._wal.stat().st_size)",
        "is_emptied = True",
        (f"{ERASURE}::test_deleted_data_pinned_by_a_reader_is_reported_until_its_removal",),
    ),
    Mutation(
        "erasure: the write-ahead log keeps data deleted before the rewrite",
        "actors/journal/storage/sqlite/connection.py:Connections.remove_deleted",
        "self.deleted = True",
        "self.deleted = self.pages > 10**9",
        (f"{ERASURE}::test_deleted_data_pinned_by_a_reader_is_reported_until_its_removal",),
    ),
    Mutation(
        "erasure: a reader that ends soon is not waited for",
        f"{RETENTION}:vacuum",
        "any(each.is_temporary for each in found)",
        "any(each.is_temporary for each in ())",
        (f"{ERASURE}::test_a_deletion_waits_briefly_for_a_reader",),
    ),
    Mutation(
        "erasure: the command succeeds although data remains",
        "actors/cli/sessions.py:_report_remaining_data",
        "code = Exit.FAILED",
        "code = Exit.OK",
        (f"{ERASURE}::test_the_delete_command_fails_and_names_the_reading_process",),
    ),
    Mutation(
        "erasure: a deletion is not counted, so a killed process leaves remnants",
        "actors/journal/storage/sqlite/format.py:record_removal",
        "write_meta(connection, DELETIONS, deletions + 1)",
        "",
        (f"{ERASURE}::test_remnants_of_a_killed_process_in_free_page_space_are_removed",),
    ),
    Mutation(
        "erasure: a file that was not rewritten counts as clean",
        "actors/journal/storage/sqlite/vacuum.py:is_rewritten",
        "deletions == read_meta(connection, REWRITTEN)",
        "deletions >= 0",
        (f"{ERASURE}::test_remnants_of_a_killed_process_in_free_page_space_are_removed",),
    ),
    Mutation(
        "erasure: every vacuum rewrites a file",
        "actors/journal/storage/sqlite/vacuum.py:record_rewrite",
        "(DELETIONS, REWRITTEN)",
        "(DELETIONS,)",
        (f"{ERASURE}::test_a_deletion_rewrites_the_file_once",),
    ),
    Mutation(
        "erasure: copies of a damaged file are not reported",
        "actors/journal/storage/sqlite/vacuum.py:find_remaining_data",
        'f"{glob.escape(path.name)}-damaged-*"',
        'f"{glob.escape(path.name)}-broken-*"',
        (f"{ERASURE}::test_a_copy_of_a_damaged_file_is_reported_until_its_deletion",),
    ),
    Mutation(
        "erasure: a deletion whose data cannot be removed loses its error",
        f"{RETENTION}:vacuum",
        "JournalUnavailable",
        "NotImplementedError",
        (f"{ERASURE}::test_a_deletion_reports_data_that_it_cannot_remove",),
    ),
    Mutation(
        "erasure: deleted rows of a Postgres server are not reported",
        "actors/journal/storage/postgres/statements.py:NOTE_DELETION",
        '"""...WHERE NOT EXISTS..."""',
        '"""...WHERE false AND NOT EXISTS..."""',
        (f"{ERASURE}::test_postgres_tables_with_deleted_data_are_reported_until_rewritten",),
    ),
    Mutation(
        "backup: a copy contains pages that were not committed before it began",
        "actors/journal/storage/sqlite/vacuum.py:copy_into",
        'connection.execute("VACUUM INTO ?", (str(part),))',
        "part.write_bytes(Path(connection.execute('PRAGMA database_list').fetchone()[2]).read_bytes())",
        (f"{BACKUP}::test_a_backup_contains_every_event_acknowledged_before_the_backup_began",),
    ),
    Mutation(
        "backup: writers wait for it",
        "actors/journal/storage/sqlite/connection.py:Connections.copy_journal",
        "copy_into(connection, path, check)",
        """
        with self._writing, self._lock:
            copy_into(connection, path, lambda: None)
        """,
        (f"{BACKUP}::test_writers_continue_during_a_backup",),
    ),
    Mutation(
        "backup: an existing file is replaced",
        "actors/journal/storage/sqlite/connection.py:Connections.copy_journal",
        "check_target(path)",
        "path.unlink(missing_ok=True)",
        (f"{BACKUP}::test_a_backup_never_replaces_a_file",),
    ),
    Mutation(
        "backup: an interrupted one leaves its partial file",
        "actors/journal/storage/sqlite/vacuum.py:copy_into",
        "part.unlink(missing_ok=True)",
        "pass",
        (f"{BACKUP}::test_an_interrupted_backup_leaves_no_file",),
    ),
    Mutation(
        "backup: a cancelled caller waits for the end",
        "actors/journal/storage_calls.py:back_up",
        "partial(storage.backup, path, check_stopped)",
        "partial(storage.backup, path, check_stopped.__hash__)",
        (f"{BACKUP}::test_cancelling_the_caller_stops_the_backup",),
    ),
    Mutation(
        "backup: other users may read the copy",
        "actors/journal/storage/sqlite/vacuum.py:copy_into",
        "384",
        "420",
        (f"{BACKUP}::test_a_backup_is_a_usable_journal_without_deleted_data",),
    ),
    Mutation(
        "figures: pages left in the log by a checkpoint are not in its lag",
        "actors/journal/storage/sqlite/connection.py:Connections._checkpoint",
        "self._unmoved = max(0, frames - moved)",
        "",
        (f"{FIGURES}::test_the_lag_of_checkpoints_grows_while_a_program_reads_the_file",),
    ),
    Mutation(
        "figures: sizes are those of the first transaction",
        "actors/journal/storage/sqlite/connection.py:Connections.transaction",
        "self._record_sizes()",
        "self.sizes.file_bytes or self._record_sizes()",
        (f"{FIGURES}::test_stats_report_file_sizes_and_commit_times",),
    ),
    Mutation(
        "figures: commits are not timed",
        "actors/journal/journal_actor.py:JournalActor._commit",
        "partial(self._meter.time_commit, write)",
        "write",
        (f"{FIGURES}::test_stats_report_file_sizes_and_commit_times",),
    ),
)
