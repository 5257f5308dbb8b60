"""Mutations of expiry and deletion."""

from tests.teeth.mutations.mutation import Mutation

RETENTION, DELETION = "actors/runtime/retention.py", "actors/runtime/deletion.py"
TESTS, CLI = "tests/journal/test_retention.py", "tests/cli/test_sessions.py"
THROTTLE = "tests/journal/test_read_throttle.py"
CARRIED = "tests/runtime/test_carried_sessions.py"

MUTATIONS = (
    Mutation(
        "retention: an open session expires",
        "actors/runtime/deletion.py:SessionRemoval.delete_unused",
        "not registry.is_taken(each.id)",
        "True",
        (f"{TESTS}::test_only_sessions_unused_for_the_retention_time_are_deleted",),
    ),
    Mutation(
        "retention: a subagent's log expires before its parent",
        f"{RETENTION}:Retention._delete_expired",
        "... is None",
        "... != each.id",
        (f"{TESTS}::test_subagents_are_deleted_with_their_parent_at_any_age",),
    ),
    Mutation(
        "retention: a session that cannot be deleted blocks the others",
        f"{RETENTION}:delete_all",
        "_SINGLE_SESSION_ERRORS",
        "SessionExists",
        (f"{TESTS}::test_a_failed_deletion_does_not_block_other_deletions",),
    ),
    Mutation(
        "retention: the file is not rewritten",
        f"{RETENTION}:delete_all",
        "await vacuum(journal) if gone or not left else ()",
        "()",
        (f"{TESTS}::test_no_file_contains_a_byte_of_deleted_sessions",),
    ),
    Mutation(
        "delete: a session of another host loses its subagents' logs",
        f"{DELETION}:delete_logs",
        "claim: Claim = await journal.ask(ClaimSession(session, existing=True))",
        "claim = Claim(0, 0)",
        (f"{TESTS}::test_a_session_of_another_host_is_kept_until_its_release",),
    ),
    Mutation(
        "delete: an age is measured by a clock that jumped",
        "actors/runtime/journal_admin.py:JournalAdmin._cutoff_time",
        "newest[0].used - SLACK <= now <= newest[0].used + LEAP",
        "newest[0].used - SLACK <= now",
        (f"{CLI}::test_deletion_by_age_is_rejected_if_the_clock_differs_much_from_the_clock_of_the_journal",),
    ),
    Mutation(
        "delete: nothing is exported first",
        "actors/cli/sessions.py:_delete_sessions",
        "options.export is not None",
        "options.export is None and options.dry_run",
        (f"{CLI}::test_the_delete_command_deletes_sessions_by_tenant_and_age_after_exporting_them",),
    ),
    Mutation(
        "export: the logs of subagents are not exported",
        "actors/runtime/journal_admin.py:JournalAdmin.export",
        "file.add(session, ...)",
        "session == name and file.add(session, event)",
        (f"{CARRIED}::test_subagents_are_imported_with_their_parent_under_unused_ids",),
    ),
    Mutation(
        "import: half of a file stays after the other half is refused",
        "actors/core/session/export_file.py:import_logs",
        "... != announced",
        "... is None",
        (f"{CARRIED}::test_a_session_with_subagents_is_imported_completely_or_not_at_all",),
    ),
    Mutation(
        "import: imported sessions stay reserved when another id is taken",
        "actors/runtime/claims.py:Claims._release",
        "self._registry.free(name)",
        "",
        (f"{CARRIED}::test_subagents_are_imported_with_their_parent_under_unused_ids",),
    ),
    Mutation(
        "resume: the type of an answer is dropped",
        "actors/runtime/claims.py:unfinished_asks",
        "output is None",
        "output is not None",
        ("tests/runtime/test_resume.py::test_a_pending_answer_has_the_output_type_passed_to_resume",),
    ),
    Mutation(
        "fsck: records of a database are read without verification",
        "actors/journal/storage/postgres/check.py:JournalTables._verified_log",
        "decode_records(row.name, row.verified_records(found, 0, self._find_blob, self._location))",
        "found.fetchall()",
        ("tests/journal/test_postgres_check.py::test_fsck_names_the_damage_and_no_password",),
    ),
    Mutation(
        "replay: any call of a tool gets a recorded result",
        "actors/cli/replay.py:_call_key",
        "json.dumps(arguments, sort_keys=True)",
        "str(len(arguments))",
        (f"{CLI}::test_the_replay_command_sends_the_asks_again_with_recorded_results",),
    ),
    Mutation(
        "resume: an unknown_session_error id leaves a row",
        "actors/runtime/claims.py:claim_existing",
        "claim_session(host, session, existing=True)",
        "claim_session(host, session)",
        ("tests/runtime/test_resume.py::test_a_session_that_cannot_be_resumed_raises_a_short_error",),
    ),
    Mutation(
        "delete: the pages of a long log are read without pauses",
        "actors/journal/pages.py:LogPages.__anext__",
        "await self._throttle.pause()",
        "pass",
        (f"{THROTTLE}::test_calls_that_read_a_log_pause_after_one_page_while_a_write_is_pending",),
    ),
    Mutation(
        "fork: the pages of a long log are read without pauses",
        "actors/runtime/claims.py:read_events",
        "read_log(journal, session, throttle=throttle)",
        "read_log(journal, session)",
        (f"{THROTTLE}::test_calls_that_read_a_log_pause_after_one_page_while_a_write_is_pending",),
    ),
)
