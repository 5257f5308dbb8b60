"""Logs in Postgres: who may write, what a lost connection leaves, what is told of a failure, what is deleted."""

from tests.teeth.mutations.mutation import Mutation

STORAGE, STATEMENTS, BATCH, LINK, FAULTS, FORMAT, ADDRESS = (
    f"actors/journal/storage/postgres/{name}.py"
    for name in ("storage", "statements", "batch", "connection", "faults", "format", "address")
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
        "postgres: claims that are made together give the numbers that the writers before had",
        f"{STATEMENTS}:CLAIM_ALL",
        '"""...s.fence + 1,..."""',
        '"""...s.fence,..."""',
        (TABLES,),
    ),
    Mutation(
        "postgres: who claims sessions together takes those of others",
        f"{STORAGE}:PostgresStorage._claim_all",
        "row.owner in (None, self._host) or seconds <= 0",
        "True",
        (TABLES,),
    ),
    Mutation(
        "postgres: each of the claims that are made together is a commit",
        f"{STORAGE}:PostgresStorage.transaction",
        "len(claims) > 1",
        "False",
        (TABLES,),
    ),
    Mutation(
        "postgres: a claim gives the number that the writer before had",
        f"{STATEMENTS}:CLAIM",
        '"""...= fence + 1,..."""',
        '"""...= fence,..."""',
        (COMMON,),
    ),
    Mutation(
        "postgres: an older number may write too, where nobody looked",
        f"{STATEMENTS}:_APPEND",
        '_APPEND = "...s.fence = g.fence AND s.last..."',
        '_APPEND = "...s.last..."',
        (TABLES,),
    ),
    Mutation(
        "postgres: two that saw the same number both claim it",
        f"{STATEMENTS}:CLAIM",
        '"""...%s AND fence =..."""',
        '"""...%s AND fence >=..."""',
        (f"{TABLES}::test_a_claim_that_raced_with_another_checks_the_owner_again",),
    ),
    Mutation(
        "postgres: a deleted session's number begins anew",
        f"{STATEMENTS}:DELETE_SESSIONS",
        '"""...= fence + 1,..."""',
        '"""...= 0,..."""',
        (COMMON,),
    ),
    Mutation(
        "postgres: a session of another host may be claimed",
        f"{STORAGE}:PostgresStorage._free",
        "row.owner not in (None, self._host) and seconds > 0",
        "seconds > 1000",
        (TABLES,),
    ),
    Mutation(
        "postgres: a lease that is over lasts on",
        f"{STORAGE}:PostgresStorage._free",
        "row.owner not in (None, self._host) and seconds > 0",
        "row.owner not in (None, self._host)",
        (TABLES,),
    ),
    Mutation(
        "postgres: a beat prolongs nothing",
        f"{STATEMENTS}:BEAT",
        '"""...UPDATE SET until = excluded.until..."""',
        '"""...NOTHING..."""',
        (TABLES,),
    ),
    Mutation(
        "postgres: a lost connection's append is done again though it was done",
        f"{STORAGE}:PostgresStorage._begin_writing",
        "connection.execute(sql.TAKE_BACK, self._doubt.back)",
        "",
        DOUBT,
    ),
    Mutation(
        "postgres: the connection that was lost may still do what it was asked",
        f"{STORAGE}:PostgresStorage._begin_writing",
        "not has_ended",
        "has_ended is None",
        (f"{FAILURES}::test_a_storage_waits_for_an_old_connection_that_does_not_end",),
    ),
    Mutation(
        "postgres: what another host took over is taken back",
        f"{STATEMENTS}:TAKE_BACK",
        '"""...s.fence = g.fence AND s.last..."""',
        '"""...s.last..."""',
        (f"{FAILURES}::test_an_append_in_doubt_is_not_undone_after_a_takeover",),
    ),
    Mutation(
        "postgres: a log is read while it is not known what is in it",
        f"{STORAGE}:PostgresStorage._settle",
        "self._doubt is not None or not self._is_prepared",
        "not self._is_prepared",
        DOUBT,
    ),
    Mutation(
        "postgres: an error that says that nothing was done leaves a doubt",
        f"{STORAGE}:PostgresStorage._write",
        "not isinstance(error, psycopg.Error) or is_lost(connection, error)",
        "True",
        (f"{FAILURES}::test_an_append_that_certainly_failed_is_not_undone",),
    ),
    Mutation(
        "postgres: a deadlock is told at once",
        f"{FAULTS}:AGAIN",
        '("40001", "40P01", "23503")',
        '("40001", "23503")',
        (FAILURES,),
    ),
    Mutation(
        "postgres: what others get in the way of is done again for ever",
        f"{LINK}:Link._goes_on",
        "tries < TRIES",
        "tries < 3 * TRIES",
        (f"{FAILURES}::test_a_transaction_conflict_is_retried_a_bounded_number_of_times",),
    ),
    Mutation(
        "postgres: a connection that is lost is told at once",
        f"{LINK}:Link._is_patient",
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
        "postgres: a wrong password in an outage ends the journal",
        f"{LINK}:Link.new_connection",
        "... and self._was_made",
        "... and (not self._was_made)",
        (FAILURES,),
    ),
    Mutation(
        "postgres: a server that is stopped is waited for without end",
        f"{LINK}:_Bounded._watch",
        "monotonic() - heard > self.silence",
        "monotonic() - heard > 3600.0",
        ("tests/journal/test_postgres_silence.py",),
    ),
    Mutation(
        "postgres: what a server's default loses is told as written",
        f"{STATEMENTS}:SETTINGS",
        "SETTINGS = \"...current_setting('synchronous_commit') WHEN 'off'...\"",
        "SETTINGS = \"...current_setting('synchronous_commit') WHEN 'never'...\"",
        (FAILURES,),
    ),
    Mutation(
        "postgres: the details of an error are told, which hold what was written",
        f"{FAULTS}:error_of",
        'f"{where}: {{}} (Postgres: {code} {error.diag.message_primary})"',
        'f"{where}: {{}} (Postgres: {code} {error})"',
        (FAILURES,),
    ),
    Mutation(
        "postgres: an address that cannot be read is told",
        f"{ADDRESS}:parameters",
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
        "postgres: an entry is read whatever its checksum",
        f"{BATCH}:row_of",
        "checksum(row) != found",
        "not found",
        (TABLES,),
    ),
    Mutation(
        "postgres: a blob goes with the first log that goes",
        f"{STATEMENTS}:DELETE_BLOBS",
        'DELETE_BLOBS = "...NOT EXISTS (SELECT FROM actors_blob_use u WHERE u.hash = b.hash)..."',
        'DELETE_BLOBS = "...b.hash IS NOT NULL..."',
        (TABLES,),
    ),
    Mutation(
        "postgres: a blob stays when the last log goes",
        f"{STATEMENTS}:DELETE_BLOBS",
        'DELETE_BLOBS = "...hash = ANY(%s)..."',
        'DELETE_BLOBS = "...hash = ANY(%s) AND false..."',
        (TABLES,),
    ),
    Mutation(
        "postgres: who deletes a blob does not wait for who refers to it",
        f"{STATEMENTS}:LOCK_BLOBS",
        'LOCK_BLOBS = "...hash FOR UPDATE..."',
        'LOCK_BLOBS = "...hash..."',
        (f"{TABLES}::test_the_later_of_two_concurrent_deletions_deletes_a_shared_value",),
    ),
    Mutation(
        "postgres: who refers to a blob that was just deleted is refused",
        f"{FAULTS}:AGAIN",
        '(*..., "23503")',
        "(*...,)",
        (FAILURES,),
    ),
    Mutation(
        "postgres: a fenced writer's blobs are kept",
        f"{STATEMENTS}:_BLOBS",
        '_BLOBS = "...bytes) JOIN written w ON w.key = b.session..."',
        '_BLOBS = "...bytes)..."',
        (TABLES,),
    ),
)
