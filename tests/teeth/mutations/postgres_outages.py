"""Mutations of Postgres failures: losses in a failover, silent servers, and refusals."""

from tests.teeth.mutations.mutation import Mutation

STORAGE, STATEMENTS, ADDRESS = (
    f"actors/journal/storage/postgres/{name}.py" for name in ("storage", "statements", "connection")
)
SILENCE, RIGHTS, FAILOVER = (
    "tests/journal/test_postgres_silence.py",
    "tests/journal/test_postgres_rights.py",
    "tests/journal/test_postgres_failover.py",
)
LOST = f"{FAILOVER}::test_events_lost_in_a_failover_are_reported_to_callers_log_and_fsck"

MUTATIONS = (
    Mutation(
        "failover: a log that the storage has lost in part is appended to",
        "actors/journal/storage/__init__.py:Entry.refusal",
        "self.after is None or last == self.after",
        "self.after is None or last <= self.after",
        (f"{FAILOVER}::test_an_append_after_lost_events_is_refused", LOST),
    ),
    Mutation(
        "failover: an append does not carry the expected last event",
        "actors/journal/health.py:ClaimedLogs.add_predecessors",
        "Entry(entry.session, entry.fence, entry.events, after)",
        "entry",
        ("tests/journal/test_log_ends.py",),
    ),
    Mutation(
        "failover: a loss is not recorded in the log",
        "actors/journal/journal_actor.py:JournalActor._write_loss",
        "self._logs.pending_loss(session)",
        "None",
        (LOST,),
    ),
    Mutation(
        "failover: a reader waits for reused numbers",
        "actors/journal/journal_actor.py:JournalActor._record_loss",
        "self._readers.roll_back(error.session, error.first - 1)",
        "",
        (LOST,),
    ),
    Mutation(
        "failover: a lost call gives its id to another",
        "actors/core/session/state.py:SessionState.apply",
        "self.calls + last - first + 1",
        "self.calls",
        ("tests/core/test_state.py",),
    ),
    Mutation(
        "failover: events missing in the reply to an append count as written",
        f"{STORAGE}:PostgresStorage._write_batch",
        "(None, False)",
        "(None, True)",
        (f"{FAILOVER}::test_an_append_to_a_session_without_a_row_is_fenced",),
    ),
    Mutation(
        "failover: a host writes to a session claimed by another with the same number",
        f"{STATEMENTS}:_APPEND",
        '_APPEND = "...(s.owner IS NULL OR s.owner = %t::text)..."',
        "_APPEND = \"...(%t::text <> '')...\"",
        (f"{FAILOVER}::test_a_host_whose_claim_was_lost_is_fenced_before_its_successor_writes",),
    ),
    Mutation(
        "fsck: a skipped turn is no damage",
        "actors/journal/storage/rows.py:find_losses",
        "turn is not None and event.turn not in (turn, turn + 1)",
        "False",
        ("tests/journal/test_holes.py",),
    ),
    Mutation(
        "silence: an unconfirmed request waits as long as the system allows",
        f"{ADDRESS}:connection_parameters",
        """{**..., "tcp_user_timeout": ..., **...}""",
        """{**..., **...}""",
        (SILENCE,),
    ),
    Mutation(
        "silence: a runtime is ready although a write waits for long",
        "actors/core/stats/stats.py:JournalStats.is_ready",
        "self.lag <= LAG",
        "self.lag >= 0.0",
        (SILENCE,),
    ),
    Mutation(
        "silence: a runtime is ready although its lease has expired",
        "actors/core/stats/stats.py:JournalStats.is_ready",
        "self.lease_age <= self.lease",
        "self.lease_age >= 0.0",
        (SILENCE,),
    ),
    Mutation(
        "silence: a lease is as old as the journal",
        "actors/journal/journal_actor.py:JournalActor._send_answer",
        "self._threads.record_renewal()",
        "",
        (f"{SILENCE}::test_a_storage_waits_for_a_silent_server_no_longer_than_its_lease",),
    ),
    Mutation(
        "rights: unexpected errors are permanent",
        "actors/journal/storage/postgres/connection.py:translate_error",
        "code and code[:2] not in _REFUSED",
        "False",
        (RIGHTS,),
    ),
    Mutation(
        "rights: a right revoked at run time is a configuration error",
        "actors/journal/storage/postgres/connection.py:translate_error",
        "code in _MISCONFIGURED and not was_open",
        "code in _MISCONFIGURED",
        (RIGHTS,),
    ),
    Mutation(
        "rights: an older host appends to newer tables",
        f"{STATEMENTS}:_APPEND",
        '_APPEND = "...AND {ours}..."',
        '_APPEND = "..."',
        (RIGHTS,),
    ),
    Mutation(
        "rights: an older host is told that its sessions have another writer",
        f"{STORAGE}:PostgresStorage._append",
        "check_version(connection, self.where)",
        "pass",
        (RIGHTS,),
    ),
    Mutation(
        "rights: missing rights are found only by the first write",
        f"{STORAGE}:PostgresStorage._prepare_writing",
        "check_rights(connection, self.where)",
        "",
        (RIGHTS,),
    ),
    Mutation(
        "pooler: shared connections count as exclusive",
        "actors/journal/storage/postgres/connection.py:check_direct",
        "len(first_pids) > 1 or len(second_pids) > 1 or first_pids & second_pids",
        "len(first_pids) > CHECKS",
        ("tests/journal/test_postgres_pooler.py",),
    ),
    Mutation(
        "pooler: settings are made on connections that may be shared",
        f"{STORAGE}:PostgresStorage._prepare_writing",
        """
        self._check_direct(connection)
        self._configure(connection, self._write_timeout)
        """,
        """
        self._configure(connection, self._write_timeout)
        self._check_direct(connection)
        """,
        ("tests/journal/test_postgres_pooler.py",),
    ),
)
