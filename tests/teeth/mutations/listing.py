"""Mutations of the listing of a journal's directory."""

from tests.teeth.mutations.mutation import Mutation

TESTS, TITLES = "tests/journal/test_listing.py", "tests/runtime/test_titles.py"
PLANS = "tests/journal/test_postgres_plans.py"
FILE, TABLES = "actors/journal/storage/sqlite/storage.py", "actors/journal/storage/postgres"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "listing: a session is listed by its first use",
        f"{FILE}:SqliteStorage._write_records",
        "connection.executemany(_INDEX, moved)",
        "",
        (f"{TESTS}::test_sqlite_orders_a_growing_log_by_its_last_use",),
    ),
    Mutation(
        "listing: a page starts at the first bucket",
        "actors/journal/storage/sqlite/records.py:query",
        '"bucket <= :bucket"',
        '"bucket > :bucket"',
        (f"{TESTS}::test_sessions_are_listed_by_tenant_and_state_most_recently_used_first",),
    ),
    Mutation(
        "listing: Postgres scans all sessions to find those of a tenant",
        f"{TABLES}/statements.py:sessions",
        '"tenant = %(tenant)s"',
        '"tenant || state = %(tenant)s || state"',
        (f"{PLANS}::test_lists_use_an_index",),
    ),
    Mutation(
        "listing: Postgres scans all sessions to find those that run",
        f"{TABLES}/statements.py:sessions",
        '"state = %(state)s"',
        '"state || tenant = %(state)s || tenant"',
        (f"{PLANS}::test_lists_use_an_index",),
    ),
    Mutation(
        "listing: Postgres scans all sessions to find metadata",
        f"{TABLES}/statements.py:sessions",
        '"(entries @> %(indexed)s::text[] OR ..."',
        '"(entries || ARRAY[tenant] @> %(indexed)s::text[] OR ..."',
        (f"{PLANS}::test_lists_use_an_index",),
    ),
    Mutation(
        "listing: every event changes a Postgres index",
        f"{TABLES}/format.py:SCHEMA",
        'SCHEMA = "...(tenant, bucket, state)..."',
        'SCHEMA = "...(tenant, bucket, last)..."',
        (f"{TESTS}::test_events_within_a_turn_change_no_postgres_index",),
    ),
    Mutation(
        "listing: metadata that is too long for an index is put into it",
        f"{TABLES}/format.py:SCHEMA",
        'SCHEMA = "...octet_length(metadata) > 2500..."',
        'SCHEMA = "...octet_length(metadata) > 250000..."',
        (f"{TITLES}::test_long_metadata_is_found_by_each_entry",),
    ),
    Mutation(
        "hosts: a page of a host's sessions sorts all of them",
        f"{TABLES}/format.py:SCHEMA",
        'SCHEMA = "...(owner, name) WHERE owner..."',
        'SCHEMA = "...(owner) WHERE owner..."',
        (f"{PLANS}::test_sessions_of_a_host_are_found_by_an_index",),
    ),
    Mutation(
        "hosts: the rows to release are found by their owner, each among all",
        f"{TABLES}/statements.py:RELEASE_PAGE",
        'f"...owner IS NOT DISTINCT FROM %s...{_IS_OURS}..."',
        'f"...owner = %s...{_IS_OURS}..."',
        (f"{PLANS}::test_the_sessions_of_a_host_missing_in_the_statistics_are_released_by_key",),
    ),
    Mutation(
        "hosts: only the first page of a host's sessions is released",
        f"{TABLES}/storage.py:PostgresStorage._release_claims",
        "while ...:\n    ...",
        "if ...:\n    ...",
        ("tests/journal/test_postgres.py::test_all_pages_of_the_sessions_of_a_host_are_released",),
    ),
    Mutation(
        "titles: searches are case-sensitive",
        "actors/core/settings/labels.py:fold_title",
        "title.casefold()",
        "title",
        (f"{TITLES}::test_a_list_of_sessions_can_be_filtered_by_title_words_in_any_case",),
    ),
    Mutation(
        "titles: an entry of metadata matches within another one",
        "actors/core/settings/labels.py:metadata_entries",
        """f"\\n{_literal(key)}:{_literal(value)}\\n\"""",
        """f"{_literal(key)}:{_literal(value)}\"""",
        (f"{TITLES}::test_a_list_of_sessions_can_be_filtered_by_metadata",),
    ),
    Mutation(
        "titles: SQLite checks only the first key of the given metadata",
        "actors/journal/storage/sqlite/records.py:query",
        "range(len(session_filter.metadata))",
        "range(len(session_filter.metadata[:1]))",
        (f"{TITLES}::test_a_list_of_sessions_can_be_filtered_by_metadata",),
    ),
    Mutation(
        "titles: Postgres lists sessions that match any of the given metadata",
        f"{TABLES}/statements.py:sessions",
        '"...bool_and..."',
        '"...bool_or..."',
        (f"{TITLES}::test_long_metadata_is_found_by_each_entry",),
    ),
    Mutation(
        "titles: SQLite shows a changed title",
        "actors/journal/storage/sqlite/records.py:decode_row",
        "crc32(msgpack.encode(fields)) == checksum",
        "True",
        (f"{TITLES}::test_a_changed_title_or_metadata_in_a_file_is_damage",),
    ),
    Mutation(
        "titles: Postgres shows a changed title",
        f"{TABLES}/batch.py:row_checksum",
        "(row.name, row.key, *_log_summary(row), *row.labels)",
        "(row.name, row.key, *_log_summary(row))",
        (f"{TITLES}::test_a_changed_title_or_metadata_in_a_database_is_damage",),
    ),
    Mutation(
        "titles: an undone append leaves its title",
        f"{TABLES}/batch.py:Batch.revert_parameters",
        "*_changed_labels(change.before, change.after)",
        "*_changed_labels(change.before, change.before)",
        (f"{TITLES}::test_a_reverted_append_in_a_database_leaves_no_title",),
    ),
    Mutation(
        "titles: a message repeats a value of metadata",
        "actors/core/settings/labels.py:_checked_value",
        "_mismatch(value, TEXT) or 'the value cannot be stored'",
        "repr(value)",
        (f"{TITLES}::test_an_invalid_title_or_metadata_raises_a_config_error",),
    ),
)
