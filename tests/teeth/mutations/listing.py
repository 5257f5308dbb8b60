"""Mistakes in how the directory of a journal is listed."""

from tests.teeth.mutations.mutation import Mutation

TESTS = "tests/test_listing.py"
FILE, TABLES = "actors/storage/sqlite/storage.py", "actors/storage/postgres"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "listing: a session is listed by its first use",
        f"{FILE}:SqliteStorage._append",
        "connection.executemany(_INDEX, moved)",
        "",
        (f"{TESTS}::test_a_file_lists_a_session_by_its_last_use_also_when_its_log_grows",),
    ),
    Mutation(
        "listing: a page begins at the first bucket",
        "actors/storage/sqlite/listing.py:query",
        '"bucket <= :bucket"',
        '"bucket > :bucket"',
        (f"{TESTS}::test_a_list_has_the_sessions_of_a_tenant_in_a_state_those_used_last_first",),
    ),
    Mutation(
        "listing: a state is what an index says of it",
        f"{TABLES}/statements.py:sessions",
        '"lifecycle = %(lifecycle)s AND state = %(state)s"',
        '"lifecycle = %(lifecycle)s"',
        (f"{TESTS}::test_a_list_has_the_sessions_of_a_tenant_in_a_state_those_used_last_first",),
    ),
    Mutation(
        "listing: a database finds the sessions of a tenant by looking at all",
        f"{TABLES}/statements.py:sessions",
        '"tenant = %(tenant)s"',
        '"tenant || lifecycle = %(tenant)s || lifecycle"',
        (f"{TESTS}::test_a_database_finds_each_list_by_an_index",),
    ),
    Mutation(
        "listing: every turn changes an index of a database",
        f"{TABLES}/format.py:_DIRECTORY",
        '''_DIRECTORY = "...CASE WHEN state IN ('awaiting', 'closed') THEN state ELSE 'open' END..."''',
        '''_DIRECTORY = "...state..."''',
        (f"{TESTS}::test_events_of_a_turn_change_no_index_of_a_database",),
    ),
)
