"""Mistakes in what is removed with a deleted session, and in the floor of numbers that is kept instead."""

from tests.teeth.mutations.mutation import Mutation

TESTS = "tests/journal/test_removed_rows.py"
MEMORY, SQLITE, FORMAT = (
    "actors/journal/storage/memory.py",
    "actors/journal/storage/sqlite/storage.py",
    "actors/journal/storage/sqlite/format.py",
)
STATEMENTS, REMOVAL, TABLES = (
    "actors/journal/storage/postgres/statements.py",
    "actors/journal/storage/postgres/removal.py",
    "actors/journal/storage/postgres/format.py",
)
GONE = f"{TESTS}::test_a_deleted_session_has_no_row_and_its_writers_stay_fenced_whoever_claims_it_later"
LET_GO = f"{TESTS}::test_a_session_that_is_let_go_without_a_log_has_no_row_and_its_number_is_not_given_again"
LOWER = f"{TESTS}::test_the_floor_stays_where_a_row_with_a_lower_number_is_removed"
WAITS = (f"{TESTS}::test_who_claims_a_new_session_waits_for_who_raises_the_floor",)
CLAIMED = (
    f"{TESTS}::"
    "test_who_removes_a_row_holds_none_while_it_waits_for_the_floor_and_takes_what_is_claimed_from_nobody",
)

MUTATIONS = (
    Mutation(
        "rows: in memory the numbers of a deleted session begin anew",
        f"{MEMORY}:MemoryStorage.claim",
        "self._fences.get(session, self._removed_fence)",
        "self._fences.get(session, 0)",
        (f"{GONE}[memory]",),
    ),
    Mutation(
        "rows: in memory the floor goes down",
        f"{MEMORY}:MemoryStorage._forget",
        "max(self._removed_fence, self._fences.pop(session, 0))",
        "self._fences.pop(session, 0)",
        (f"{LOWER}[memory]",),
    ),
    Mutation(
        "rows: in memory a session without a log that is released is kept",
        f"{MEMORY}:MemoryStorage.release",
        "session not in self._logs",
        "False",
        (f"{LET_GO}[memory-release]",),
    ),
    Mutation(
        "rows: in memory sessions without a log are kept at the end",
        f"{MEMORY}:MemoryStorage.close",
        "self._forget(session)",
        "pass",
        (f"{LET_GO}[memory-close]",),
    ),
    Mutation(
        "rows: a file keeps the row of a deleted session",
        f"{SQLITE}:SqliteStorage._remove",
        'connection.execute("DELETE FROM session WHERE name = ?", (row.name,))',
        "pass",
        (f"{GONE}[sqlite-process]",),
    ),
    Mutation(
        "rows: a file keeps the row of a session without a log that is released",
        f"{SQLITE}:SqliteStorage._release",
        "row.last",
        "True",
        (f"{LET_GO}[sqlite-process-release]",),
    ),
    Mutation(
        "rows: the floor of a file is that of the last row that was removed",
        f"{FORMAT}:note_removal",
        "max(before, fence)",
        "fence",
        (f"{LOWER}[sqlite-process]",),
    ),
    Mutation(
        "rows: a floor of a file that is missing is taken for none",
        f"{FORMAT}:_removals",
        "bool(removed) != bool(fence)",
        "False",
        (
            "tests/journal/test_fsck.py::test_a_floor_of_numbers_that_is_lost_is_told_and_no_number_is_given_again",
        ),
    ),
    Mutation(
        "rows: tables keep the row of a deleted session",
        f"{REMOVAL}:remove",
        "fences and ...",
        "not fences",
        (f"{GONE}[postgres]",),
    ),
    Mutation(
        "rows: tables keep the row of a session without a log that is released",
        f"{REMOVAL}:release",
        "remove_unused(connection)",
        "pass",
        (f"{LET_GO}[postgres-release]",),
    ),
    Mutation(
        "rows: a new session is given a number by a floor that is being raised",
        f"{STATEMENTS}:CLAIM_NEW",
        '"""...key = \'floor\' FOR SHARE..."""',
        '"""...key = \'floor\'..."""',
        WAITS,
    ),
    Mutation(
        "rows: the floor of tables goes down",
        f"{STATEMENTS}:REMOVE",
        '"""...greatest(value, (SELECT max(fence) FROM given))..."""',
        '"""...(SELECT max(fence) FROM given)..."""',
        (f"{LOWER}[postgres]",),
    ),
    Mutation(
        "rows: a deletion removes the row of who has claimed the session since",
        f"{STATEMENTS}:REMOVE",
        '"""...AND s.fence = g.fence AND s.last = 0 AND s.owner IS NULL..."""',
        '"""..."""',
        CLAIMED,
    ),
    Mutation(
        "rows: what a killed host left of a deletion stays",
        f"{STATEMENTS}:UNUSED",
        'UNUSED = "...bucket < 0 AND..."',
        'UNUSED = "...bucket < -1 AND..."',
        (f"{TESTS}::test_the_row_that_a_host_left_that_was_killed_as_it_deleted_a_session_goes_later",),
    ),
    Mutation(
        "rows: tables without a floor are used",
        f"{TABLES}:_check_removed_fence",
        "not has_removed_fence(connection)",
        "False",
        (f"{TESTS}::test_tables_without_a_floor_are_damaged_and_give_no_number",),
    ),
)
