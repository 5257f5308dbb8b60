"""Logs in Postgres: who may write, what a lost connection leaves, what is told of a failure, what is erased."""

from tests.teeth.mutations.mutation import Mutation

STORAGE, STATEMENTS, BATCH, LINK, FAULTS, FORMAT, ADDRESS = (
    f"actors/storage/postgres/{name}.py"
    for name in ("storage", "statements", "batch", "connection", "faults", "format", "address")
)
COMMON, TABLES, FAILURES, TAKEOVER = (
    f"tests/test_{name}.py" for name in ("storages", "postgres", "postgres_faults", "takeover")
)
DOUBT = (
    f"{FAILURES}::test_what_a_lost_connection_leaves_in_doubt_is_in_the_log_once",
    f"{FAILURES}::test_what_was_refused_in_an_outage_is_not_in_the_log_afterwards",
)

MUTATIONS = (
    Mutation(
        "postgres: claims that are made together give the numbers that the writers before had",
        STATEMENTS,
        "SET fence = s.fence + 1",
        "SET fence = s.fence",
        (TABLES,),
    ),
    Mutation(
        "postgres: who claims sessions together takes those of others",
        STORAGE,
        "if row.owner in (None, self._host) or seconds <= 0:",
        "if True:",
        (TABLES,),
    ),
    Mutation(
        "postgres: each of the claims that are made together is a commit",
        STORAGE,
        "if len(claims) > 1:",
        "if False:",
        (TABLES,),
    ),
    Mutation(
        "postgres: a claim gives the number that the writer before had",
        STATEMENTS,
        "UPDATE actors_session s SET fence = fence + 1, owner = %s",
        "UPDATE actors_session s SET fence = fence, owner = %s",
        (COMMON,),
    ),
    Mutation(
        "postgres: an older number may write too, where nobody looked",
        STATEMENTS,
        "WHERE s.key = g.key AND s.fence = g.fence AND s.last = g.before",
        "WHERE s.key = g.key AND s.last = g.before",
        (TABLES,),
    ),
    Mutation(
        "postgres: two that saw the same number both claim it",
        STATEMENTS,
        "WHERE key = %s AND fence = %s RETURNING",
        "WHERE key = %s AND fence >= %s RETURNING",
        (f"{TABLES}::test_who_saw_a_session_before_another_claimed_it_looks_again",),
    ),
    Mutation(
        "postgres: an erased session's number begins anew",
        STATEMENTS,
        "UPDATE actors_session SET fence = fence + 1, owner = NULL",
        "UPDATE actors_session SET fence = 0, owner = NULL",
        (COMMON,),
    ),
    Mutation(
        "postgres: a session of another host may be claimed",
        STORAGE,
        "if row.owner not in (None, self._host) and seconds > 0:",
        "if seconds > 1000:",
        (TABLES,),
    ),
    Mutation(
        "postgres: a lease that is over lasts on",
        STORAGE,
        "if row.owner not in (None, self._host) and seconds > 0:",
        "if row.owner not in (None, self._host):",
        (TABLES,),
    ),
    Mutation(
        "postgres: a beat prolongs nothing",
        STATEMENTS,
        "ON CONFLICT (name) DO UPDATE SET until = excluded.until",
        "ON CONFLICT (name) DO NOTHING",
        (TABLES,),
    ),
    Mutation(
        "postgres: a lost connection's append is done again though it was done",
        STORAGE,
        "            connection.execute(sql.TAKE_BACK, self._doubt.back)\n",
        "",
        DOUBT,
    ),
    Mutation(
        "postgres: the connection that was lost may still do what it was asked",
        STORAGE,
        "if not has_ended:",
        "if has_ended is None:",
        (f"{FAILURES}::test_a_connection_that_does_not_end_is_waited_for",),
    ),
    Mutation(
        "postgres: what another host took over is taken back",
        STATEMENTS,
        "WHERE s.key = g.key AND s.fence = g.fence AND s.last = g.after",
        "WHERE s.key = g.key AND s.last = g.after",
        (f"{FAILURES}::test_what_another_host_has_taken_over_is_not_taken_back",),
    ),
    Mutation(
        "postgres: a log is read while it is not known what is in it",
        STORAGE,
        "if self._doubt is not None or not self._is_prepared:",
        "if not self._is_prepared:",
        DOUBT,
    ),
    Mutation(
        "postgres: an error that says that nothing was done leaves a doubt",
        STORAGE,
        "            if not is_lost(connection, error):\n                self._doubt = None\n",
        "",
        (f"{FAILURES}::test_what_failed_for_certain_is_nothing_to_be_taken_back",),
    ),
    Mutation(
        "postgres: a deadlock is told at once",
        FAULTS,
        'AGAIN = ("40001", "40P01", "23503")',
        'AGAIN = ("40001", "23503")',
        (FAILURES,),
    ),
    Mutation(
        "postgres: what others get in the way of is done again for ever",
        LINK,
        "error.sqlstate in AGAIN and tries < TRIES",
        "error.sqlstate in AGAIN and tries < 3 * TRIES",
        (f"{FAILURES}::test_what_others_get_in_the_way_of_is_done_again_and_a_few_times_at_most",),
    ),
    Mutation(
        "postgres: a connection that is lost is told at once",
        LINK,
        "        if now - self._out_since >= self._patience:",
        "        if now >= self._out_since:",
        (FAILURES,),
    ),
    Mutation(
        "postgres: a connection to a server that became read-only is kept",
        FAULTS,
        'ELSEWHERE = ("25006",)',
        'ELSEWHERE = ("25007",)',
        (FAILURES,),
    ),
    Mutation(
        "postgres: a wrong password in an outage ends the journal",
        LINK,
        "if isinstance(failure, ConfigError) and self._was_made:",
        "if isinstance(failure, ConfigError) and not self._was_made:",
        (FAILURES,),
    ),
    Mutation(
        "postgres: a server that is stopped is waited for without end",
        LINK,
        "self.bound if timeout is None else timeout",
        "3600.0 if timeout is None else timeout",
        (f"{TAKEOVER}::test_a_server_that_answers_no_more_is_unavailable_and_goes_on_where_it_was",),
    ),
    Mutation(
        "postgres: what a server's default loses is told as written",
        STATEMENTS,
        "WHEN 'off' THEN",
        "WHEN 'never' THEN",
        (FAILURES,),
    ),
    Mutation(
        "postgres: the details of an error are told, which hold what was written",
        FAULTS,
        "(Postgres: {code} {error.diag.message_primary})",
        "(Postgres: {code} {error})",
        (FAILURES,),
    ),
    Mutation(
        "postgres: an address that cannot be read is told",
        ADDRESS,
        "        raise ConfigError(_UNREADABLE) from None",
        "        raise ConfigError(f'{_UNREADABLE}: {url}') from None",
        (TABLES,),
    ),
    Mutation(
        "postgres: older tables are used as they are",
        FORMAT,
        "            MIGRATIONS[older](connection)",
        "            assert older >= 0",
        (TABLES,),
    ),
    Mutation(
        "postgres: an entry is read whatever its checksum",
        BATCH,
        "if checksum(row) != found:",
        "if not found:",
        (TABLES,),
    ),
    Mutation(
        "postgres: a blob goes with the first log that goes",
        STATEMENTS,
        "    AND NOT EXISTS (SELECT FROM actors_blob_use u WHERE u.hash = b.hash)\n",
        "    AND b.hash IS NOT NULL\n",
        (TABLES,),
    ),
    Mutation(
        "postgres: a blob stays when the last log goes",
        STATEMENTS,
        "DELETE FROM actors_blob b WHERE hash = ANY(%s)",
        "DELETE FROM actors_blob b WHERE hash = ANY(%s) AND false",
        (TABLES,),
    ),
    Mutation(
        "postgres: who erases a blob does not wait for who refers to it",
        STATEMENTS,
        "ORDER BY hash FOR UPDATE",
        "ORDER BY hash",
        (f"{TABLES}::test_of_two_that_erase_the_last_logs_with_a_large_value_the_second_erases_that",),
    ),
    Mutation(
        "postgres: who refers to a blob that was just erased is refused",
        FAULTS,
        'AGAIN = ("40001", "40P01", "23503")',
        'AGAIN = ("40001", "40P01")',
        (FAILURES,),
    ),
    Mutation(
        "postgres: a fenced writer's blobs are kept",
        STATEMENTS,
        "AS b (session, hash, bytes) JOIN written w ON w.key = b.session",
        "AS b (session, hash, bytes)",
        (TABLES,),
    ),
)
