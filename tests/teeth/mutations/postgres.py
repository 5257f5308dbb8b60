"""Mutations of logs in Postgres: writers, lost connections, failures, deletions."""

from tests.teeth.mutations.mutation import Mutation

STORAGE, CLAIMS, STATEMENTS, BATCH, LINK, FAULTS, FORMAT, ADDRESS = (
    f"actors/journal/storage/postgres/{name}.py"
    for name in ("storage", "claims", "statements", "batch", "connection", "faults", "format", "address")
)
COMMON, TABLES, FAILURES, TAKEOVER = (
    f"tests/{name}.py"
    for name in (
        "journal/test_storages",
        "journal/test_postgres",
        "journal/test_postgres_faults",
        "runtime/test_takeover",
    )
)
DOUBT = (
    f"{FAILURES}::test_an_append_in_doubt_after_a_lost_connection_is_written_once",
    f"{FAILURES}::test_an_append_refused_during_an_outage_is_not_in_the_log",
)

MUTATIONS = (
    Mutation(
        "postgres: grouped claims return the previous writers' numbers",
        f"{STATEMENTS}:CLAIM_ALL",
        '"""...s.fence + 1,..."""',
        '"""...s.fence,..."""',
        (TABLES,),
    ),
    Mutation(
        "postgres: grouped claims take sessions leased by others",
        f"{CLAIMS}:claim_free",
        "row.owner in (None, host) or seconds <= 0",
        "True",
        (TABLES,),
    ),
    Mutation(
        "postgres: each of a group of claims is a separate commit",
        f"{STORAGE}:PostgresStorage.transaction",
        "len(claims) > 1",
        "False",
        (TABLES,),
    ),
    Mutation(
        "postgres: a claim returns the previous writer's number",
        f"{STATEMENTS}:CLAIM",
        '"""...= fence + 1,..."""',
        '"""...= fence,..."""',
        (COMMON,),
    ),
    Mutation(
        "postgres: an older number may also write if unchecked",
        f"{STATEMENTS}:_APPEND",
        '_APPEND = "...s.fence = g.fence AND s.last..."',
        '_APPEND = "...s.last..."',
        (TABLES,),
    ),
    Mutation(
        "postgres: two hosts that saw the same number both claim it",
        f"{STATEMENTS}:CLAIM",
        '"""...%s AND fence =..."""',
        '"""...%s AND fence >=..."""',
        (f"{TABLES}::test_a_claim_checks_the_owner_again_if_another_claim_came_first",),
    ),
    Mutation(
        "postgres: the numbers of a deleted session start again",
        f"{STATEMENTS}:DELETE_SESSIONS",
        '"""...= fence + 1,..."""',
        '"""...= 0,..."""',
        (COMMON,),
    ),
    Mutation(
        "postgres: a session of another host may be claimed",
        f"{CLAIMS}:claimable_rows",
        "row.owner not in (None, host) and seconds > 0",
        "seconds > 1000",
        (TABLES,),
    ),
    Mutation(
        "postgres: an expired lease continues",
        f"{CLAIMS}:claimable_rows",
        "row.owner not in (None, host) and seconds > 0",
        "row.owner not in (None, host)",
        (TABLES,),
    ),
    Mutation(
        "postgres: a heartbeat does not extend the lease",
        f"{STATEMENTS}:BEAT",
        '"""...UPDATE SET until = excluded.until..."""',
        '"""...NOTHING..."""',
        (TABLES,),
    ),
    Mutation(
        "postgres: an append of a lost connection is repeated although it was done",
        f"{STORAGE}:PostgresStorage._prepare_writing",
        "connection.execute(sql.TAKE_BACK, self._doubt.revert_parameters)",
        "",
        DOUBT,
    ),
    Mutation(
        "postgres: a lost connection may still execute its request",
        f"{STORAGE}:PostgresStorage._prepare_writing",
        "not has_ended",
        "has_ended is None",
        (f"{FAILURES}::test_a_storage_waits_for_an_old_connection_that_does_not_end",),
    ),
    Mutation(
        "postgres: an append taken over by another host is undone",
        f"{STATEMENTS}:TAKE_BACK",
        '"""...s.fence = g.fence AND s.last..."""',
        '"""...s.last..."""',
        (f"{FAILURES}::test_an_append_in_doubt_is_not_undone_after_a_takeover",),
    ),
    Mutation(
        "postgres: a log in doubt is read",
        f"{STORAGE}:PostgresStorage._resolve_uncertain_append",
        "self._doubt is not None or not self._is_prepared",
        "not self._is_prepared",
        DOUBT,
    ),
    Mutation(
        "postgres: an error that rules out a write leaves a doubt",
        f"{STORAGE}:PostgresStorage._write_batch",
        "not isinstance(error, psycopg.Error) or is_lost(connection, error)",
        "True",
        (f"{FAILURES}::test_an_append_that_certainly_failed_is_not_undone",),
    ),
    Mutation(
        "postgres: a deadlock is not retried",
        f"{FAULTS}:AGAIN",
        '("40001", "40P01", "23503")',
        '("40001", "23503")',
        (FAILURES,),
    ),
    Mutation(
        "postgres: conflicts are retried forever",
        f"{LINK}:Link._recovers_from",
        "tries < TRIES",
        "tries < 3 * TRIES",
        (f"{FAILURES}::test_a_transaction_conflict_is_retried_a_bounded_number_of_times",),
    ),
    Mutation(
        "postgres: a lost connection is reported at once",
        f"{LINK}:Link._wait_before_retry",
        "now - self._out_since >= self._patience",
        "now >= self._out_since",
        (FAILURES,),
    ),
    Mutation(
        "postgres: a connection to a server that became read-only is kept",
        f"{FAULTS}:ELSEWHERE",
        '("25006",)',
        '("25007",)',
        (FAILURES,),
    ),
    Mutation(
        "postgres: a wrong password during an outage ends the journal",
        f"{LINK}:Link.new_connection",
        "... and self._was_made",
        "... and (not self._was_made)",
        (FAILURES,),
    ),
    Mutation(
        "postgres: a stopped server is waited for without a limit",
        f"{LINK}:_BoundedConnection._watch",
        "monotonic() - heard > self.silence",
        "monotonic() - heard > 3600.0",
        ("tests/journal/test_postgres_silence.py",),
    ),
    Mutation(
        "postgres: an asynchronous commit counts as durable",
        f"{STATEMENTS}:SETTINGS",
        "SETTINGS = \"...current_setting('synchronous_commit') WHEN 'off'...\"",
        "SETTINGS = \"...current_setting('synchronous_commit') WHEN 'never'...\"",
        (FAILURES,),
    ),
    Mutation(
        "postgres: details of an error, with content, are reported",
        f"{FAULTS}:translate_error",
        'f"{where}: {{}} (Postgres: {code} {error.diag.message_primary})"',
        'f"{where}: {{}} (Postgres: {code} {error})"',
        (FAILURES,),
    ),
    Mutation(
        "postgres: an unparsable URL is quoted",
        f"{ADDRESS}:connection_parameters",
        "raise ConfigError(_UNREADABLE) from None",
        'raise ConfigError(f"{_UNREADABLE}: {url}") from None',
        (TABLES,),
    ),
    Mutation(
        "postgres: newer tables are used",
        f"{FORMAT}:check_tables",
        "version > VERSION",
        "False",
        (f"{TABLES}::test_tables_of_a_newer_version_are_refused",),
    ),
    Mutation(
        "postgres: an entry is read despite a wrong checksum",
        f"{BATCH}:decode_row",
        "row_checksum(row) != found",
        "not found",
        (TABLES,),
    ),
    Mutation(
        "postgres: a blob is deleted with its first log",
        f"{STATEMENTS}:DELETE_BLOBS",
        'DELETE_BLOBS = "...NOT EXISTS (SELECT FROM actors_blob_use u WHERE u.hash = b.hash)..."',
        'DELETE_BLOBS = "...b.hash IS NOT NULL..."',
        (TABLES,),
    ),
    Mutation(
        "postgres: a blob stays after its last log",
        f"{STATEMENTS}:DELETE_BLOBS",
        'DELETE_BLOBS = "...hash = ANY(%s)..."',
        'DELETE_BLOBS = "...hash = ANY(%s) AND false..."',
        (TABLES,),
    ),
    Mutation(
        "postgres: deleting a blob does not wait for new references",
        f"{STATEMENTS}:LOCK_BLOBS",
        'LOCK_BLOBS = "...hash FOR UPDATE..."',
        'LOCK_BLOBS = "...hash..."',
        (f"{TABLES}::test_the_later_of_two_concurrent_deletions_deletes_a_shared_value",),
    ),
    Mutation(
        "postgres: a reference to a blob deleted just now is refused",
        f"{FAULTS}:AGAIN",
        '(*..., "23503")',
        "(*...,)",
        (FAILURES,),
    ),
    Mutation(
        "postgres: blobs of a fenced writer are kept",
        f"{STATEMENTS}:_BLOBS",
        '_BLOBS = "...bytes) JOIN written w ON w.key = b.session..."',
        '_BLOBS = "...bytes)..."',
        (TABLES,),
    ),
)
