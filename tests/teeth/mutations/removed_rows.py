"""Mutations of the removal of a deleted session's row, and of the fencing floor that replaces it."""

from tests.teeth.mutations.mutation import Mutation

TESTS = "tests/journal/test_removed_rows.py"
MEMORY, SQLITE, FORMAT = (
    "actors/journal/storage/memory.py",
    "actors/journal/storage/sqlite/storage.py",
    "actors/journal/storage/sqlite/format.py",
)
STATEMENTS, REMOVAL, TABLES = (
    "actors/journal/storage/postgres/statements.py",
    "actors/journal/storage/postgres/hosts.py",
    "actors/journal/storage/postgres/format.py",
)
GONE = f"{TESTS}::test_a_deleted_session_has_no_row_and_fences_its_old_writers"
LET_GO = f"{TESTS}::test_releasing_a_session_without_a_log_deletes_its_row"
LOWER = f"{TESTS}::test_deleting_a_session_with_a_low_fencing_number_allows_no_reuse_of_higher_numbers"
WAITS = (f"{TESTS}::test_a_claim_of_a_new_session_waits_while_the_first_free_fencing_number_changes",)
CLAIMED = (f"{TESTS}::test_a_deletion_that_waits_to_record_its_fencing_number_does_not_affect_new_claims",)

MUTATIONS = (
    Mutation(
        "rows: in memory, the numbers of a deleted session start again",
        f"{MEMORY}:MemoryStorage.claim",
        "self._fences.get(session, self._removed_fence)",
        "self._fences.get(session, 0)",
        (f"{GONE}[memory]",),
    ),
    Mutation(
        "rows: in memory, the floor decreases",
        f"{MEMORY}:MemoryStorage._remove_fence",
        "max(self._removed_fence, self._fences.pop(session, 0))",
        "self._fences.pop(session, 0)",
        (f"{LOWER}[memory]",),
    ),
    Mutation(
        "rows: in memory, a released session without a log is kept",
        f"{MEMORY}:MemoryStorage.release",
        "session not in self._logs",
        "False",
        (f"{LET_GO}[memory-release]",),
    ),
    Mutation(
        "rows: in memory, sessions without a log are kept at the end",
        f"{MEMORY}:MemoryStorage._release_all_claims",
        "self._remove_fence(session)",
        "pass",
        (f"{LET_GO}[memory-close]",),
    ),
    Mutation(
        "rows: SQLite keeps the row of a deleted session",
        f"{SQLITE}:SqliteStorage._remove_row",
        'connection.execute("DELETE FROM session WHERE name = ?", (row.name,))',
        "pass",
        (f"{GONE}[sqlite-process]",),
    ),
    Mutation(
        "rows: SQLite keeps the row of a released session without a log",
        f"{SQLITE}:SqliteStorage._release_claim",
        "row.last",
        "True",
        (f"{LET_GO}[sqlite-process-release]",),
    ),
    Mutation(
        "rows: SQLite's floor is that of the last removed row",
        f"{FORMAT}:record_removal",
        "max(before, fence)",
        "fence",
        (f"{LOWER}[sqlite-process]",),
    ),
    Mutation(
        "rows: a missing SQLite floor counts as none",
        f"{FORMAT}:_removed_rows",
        "bool(removed) != bool(fence)",
        "False",
        (
            "tests/journal/test_fsck.py::test_a_lost_record_of_used_fencing_numbers_is_reported_and_blocks_claims",
        ),
    ),
    Mutation(
        "rows: Postgres keeps the row of a deleted session",
        f"{REMOVAL}:_remove_rows",
        "fences and ...",
        "not fences",
        (f"{GONE}[postgres]",),
    ),
    Mutation(
        "rows: Postgres keeps the row of a released session without a log",
        f"{REMOVAL}:release_session",
        "remove_unused_rows(connection)",
        "pass",
        (f"{LET_GO}[postgres-release]",),
    ),
    Mutation(
        "rows: a new session gets a number from a floor that is being raised",
        f"{STATEMENTS}:CLAIM_NEW",
        '"""...key = \'floor\' FOR SHARE..."""',
        '"""...key = \'floor\'..."""',
        WAITS,
    ),
    Mutation(
        "rows: Postgres' floor decreases",
        f"{STATEMENTS}:REMOVE",
        '"""...greatest(value, (SELECT max(fence) FROM given))..."""',
        '"""...(SELECT max(fence) FROM given)..."""',
        (f"{LOWER}[postgres]",),
    ),
    Mutation(
        "rows: a deletion removes the row of a later claim",
        f"{STATEMENTS}:REMOVE",
        '"""...AND s.fence = g.fence AND s.last = 0 AND s.owner IS NULL..."""',
        '"""..."""',
        CLAIMED,
    ),
    Mutation(
        "rows: the leftovers of a killed deletion stay",
        f"{STATEMENTS}:UNUSED",
        'UNUSED = "...bucket < 0 AND..."',
        'UNUSED = "...bucket < -1 AND..."',
        (f"{TESTS}::test_a_row_that_remains_after_a_killed_deletion_is_removed_later",),
    ),
    Mutation(
        "rows: Postgres tables without a floor are used",
        f"{TABLES}:_check_removed_fence",
        "not has_removed_fence(connection)",
        "False",
        (f"{TESTS}::test_a_missing_record_of_used_fencing_numbers_is_damage",),
    ),
)
