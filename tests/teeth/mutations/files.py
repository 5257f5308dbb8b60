"""Mutations of journals in files: forked children, damage, clocks, and salvage."""

from tests.teeth.mutations.mutation import Mutation

FORKS = "actors/journal/storage/sqlite/locks.py"
CONNECTIONS = "actors/journal/storage/sqlite/connection.py:Connections"
WAL = "tests/journal/test_write_ahead_log.py"
SALVAGE, PAGES = "actors/journal/storage/sqlite/salvage.py", "actors/journal/storage/sqlite/salvage.py"
FSCK = "tests/journal/test_fsck.py"
CLOCK, RETENTION = "actors/journal/storage/clock.py", "tests/journal/test_retention.py"
FORKED = "tests/runtime/test_forked_hosts.py"

MUTATIONS = (
    Mutation(
        "files: a forked worker keeps its host's locks",
        f"{FORKS}:_release_in_child",
        "lock.close()",
        "pass",
        (
            f"{FORKED}::test_a_host_killed_in_a_write_is_taken_over_while_its_workers_live",
            f"{FORKED}::test_a_host_killed_between_writes_is_taken_over_while_workers_live",
        ),
    ),
    Mutation(
        "files: a forked child uses its parent's connections",
        f"{FORKS}:Database.check_own",
        "self.is_inherited",
        "False",
        (f"{FORKED}::test_a_forked_child_can_neither_use_nor_close_the_journal_of_its_parent",),
    ),
    Mutation(
        "files: a damaged log is not checked where a power loss may cost events",
        f"{CONNECTIONS}._check_wal",
        "check_wal(self.path)",
        """
        if self._durability == "power":
            check_wal(self.path)
        """,
        (f"{WAL}::test_at_the_level_process_a_journal_that_lost_events_is_copied_and_the_loss_is_logged",),
    ),
    Mutation(
        "files: a journal opens before its damaged log is copied",
        "actors/journal/storage/sqlite/wal.py:copy_damaged_log",
        "_copy_file(source, target)",
        """
        try:
            _copy_file(source, target)
        except OSError:
            pass
        """,
        (f"{WAL}::test_a_journal_that_lost_events_opens_only_after_its_copy_is_complete",),
    ),
    Mutation(
        "retention: a clock that jumped is trusted at once",
        f"{CLOCK}:ObservedClock.earliest_now",
        "sum(...)",
        "0",
        (f"{RETENTION}::test_after_a_forward_clock_jump_nothing_is_deleted_for_a_day_of_running_time",),
    ),
    Mutation(
        "retention: a jump of up to a month counts as time without hosts",
        f"{CLOCK}:observe",
        "step > elapsed + SLACK",
        "step > elapsed + LEAP",
        (f"{RETENTION}::test_after_a_forward_clock_jump_nothing_is_deleted_for_a_day_of_running_time",),
    ),
    Mutation(
        "retention: time counts as observed only within one process",
        f"{CLOCK}:observe",
        "before.observed + max(*...)",
        "max(*...) if elapsed else 0",
        (f"{RETENTION}::test_a_host_restarted_daily_deletes_expired_sessions",),
    ),
    Mutation(
        "retention: a Postgres journal is swept by the host's clock",
        "actors/journal/storage/postgres/hosts.py:observe_clock",
        "min(server_time(connection), now)",
        "now",
        (f"{RETENTION}::test_a_postgres_sweep_uses_the_clock_of_the_server",),
    ),
    Mutation(
        "retention: apparently expired sessions are not logged",
        "actors/runtime/retention.py:Retention.sweep",
        "logger.retention_waits(*...)",
        "pass",
        (f"{RETENTION}::test_after_a_forward_clock_jump_nothing_is_deleted_for_a_day_of_running_time",),
    ),
    Mutation(
        "files: a runtime is ready although its journal is damaged",
        "actors/journal/journal_actor.py:JournalActor._reject",
        "isinstance(error, JournalDamaged)",
        "False",
        (
            "tests/runtime/test_readiness.py::test_a_runtime_is_not_ready_after_it_found_damage_in_its_journal",
        ),
    ),
    Mutation(
        "files: the holder of the lock is unknown",
        "actors/journal/storage/sqlite/locks.py:WriteLock.__enter__",
        "self._write_holder_id()",
        "pass",
        ("tests/journal/test_unavailable.py::test_a_lock_error_names_the_process_that_holds_the_lock",),
    ),
    Mutation(
        "files: the holder of an SQLite lock is unknown",
        "actors/journal/storage/sqlite/faults.py:_describe_holder",
        "find_writer(Path(path))",
        "None",
        (
            "tests/journal/test_unavailable.py::test_an_sqlite_lock_error_names_the_process_that_holds_the_lock",
        ),
    ),
    Mutation(
        "salvage: a damaged first page hides all logs",
        f"{SALVAGE}:_collect_rows",
        "error = damage",
        "raise damage",
        (f"{FSCK}::test_every_log_is_salvaged_when_the_root_page_of_a_table_is_damaged",),
    ),
    Mutation(
        "salvage: pages of the write-ahead log are not read",
        f"{PAGES}:_Pages._read_page",
        "self._newer.get(page_number)",
        "None",
        (f"{FSCK}::test_logs_are_salvaged_from_the_wal_when_the_first_page_is_damaged",),
    ),
    Mutation(
        "salvage: only the part of a value on its first page is read",
        f"{PAGES}:_Pages._read_payload",
        "here < length",
        "False",
        (f"{FSCK}::test_every_log_is_salvaged_when_the_root_page_of_a_table_is_damaged",),
    ),
    Mutation(
        "salvage: the page size is taken from the damaged header",
        f"{PAGES}:readable_rows",
        "dict.fromkeys((_page_size(file.read(20)), _PAGE))",
        "(_page_size(file.read(20)) * 2,)",
        (f"{FSCK}::test_every_log_is_salvaged_when_the_root_page_of_a_table_is_damaged",),
    ),
    Mutation(
        "fsck: a file that SQLite cannot open is not salvaged",
        "actors/cli/sessions.py:_check_file",
        "if not options.salvage: ...",
        "raise",
        ("tests/cli/test_fsck.py::test_logs_are_salvaged_from_a_file_with_a_damaged_first_page",),
    ),
)
