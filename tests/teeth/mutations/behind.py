"""Mutations of sessions that are used again after a rollback of their journal."""

from tests.teeth.mutations.mutation import Mutation

CACHE, FAILOVER = "actors/journal/storage/postgres/reading.py", "tests/journal/test_postgres_failover.py"
TABLES = "tests/journal/test_postgres.py"
POSTGRES_CLOCK = "actors/journal/storage/postgres/hosts.py"
SLEPT = f"{FAILOVER}::test_a_session_read_after_a_failover_fails_once_and_then_continues"
SUSPENDED = f"{FAILOVER}::test_a_session_suspended_before_a_failover_fails_once_and_then_continues"
CLOCK = "tests/journal/test_postgres_clock.py"

MUTATIONS = (
    Mutation(
        "behind: a loss found by a read is not recorded",
        "actors/journal/journal_actor.py:JournalActor._check_answer",
        "self._record_loss(error, ...)",
        "",
        (SLEPT, SUSPENDED),
    ),
    Mutation(
        "behind: the fencing number of a claim is not stored",
        "actors/journal/health.py:ClaimedLogs.fence",
        "self._fences.get(session, 0)",
        "0",
        (SLEPT, SUSPENDED),
    ),
    Mutation(
        "behind: a cached row is trusted after a rollback",
        f"{CACHE}:_begins_at_end",
        "entry.after is None or entry.after == row.last",
        "entry.after is None or entry.after <= row.last",
        (SLEPT, SUSPENDED),
    ),
    Mutation(
        "behind: events that the next host has written count as lost",
        f"{CACHE}:_begins_at_end",
        "entry.session in rows and entry.after > row.last",
        "entry.after > row.last",
        (f"{TABLES}::test_a_writer_is_fenced_even_if_it_has_read_the_events_of_the_next_host",),
    ),
    Mutation(
        "behind: a row is read for each further entry of a batch",
        f"{CACHE}:_begins_at_end",
        "entry.session in rows and entry.after > row.last",
        "False",
        (f"{TABLES}::test_consecutive_entries_of_a_batch_are_written_without_a_read",),
    ),
    Mutation(
        "behind: a fork reads the log with the rights of its writer",
        "actors/runtime/claims.py:read_events",
        "read_log(journal, session, throttle=throttle)",
        "read_log(journal, session, as_writer=True, throttle=throttle)",
        (f"{FAILOVER}::test_a_fork_after_a_rollback_leaves_recording_the_loss_to_the_writer",),
    ),
    Mutation(
        "behind: a close retries forever",
        "actors/runtime/session_actors.py:_log_end",
        "raise",
        "return await _log_end(session)",
        (f"{FAILOVER}::test_a_close_fails_if_the_journal_is_rolled_back",),
    ),
    Mutation(
        "behind: a lost connection loses clock notes",
        f"{POSTGRES_CLOCK}:observe_clock",
        "connection.transaction()",
        "connection.cursor()",
        (f"{CLOCK}::test_a_connection_lost_during_an_update_of_the_journal_clock_loses_no_update",),
    ),
    Mutation(
        "behind: two hosts note the clock at once",
        f"{POSTGRES_CLOCK}:observe_clock",
        "connection.execute(sql.LOCK_CLOCK)",
        "",
        (f"{CLOCK}::test_an_update_of_the_journal_clock_waits_for_a_concurrent_update",),
    ),
    Mutation(
        "behind: the age of another host's write is measured by a clock ahead of its own",
        f"{POSTGRES_CLOCK}:observe_clock",
        "min(server_time(connection), now)",
        "server_time(connection)",
        ("tests/journal/test_retention.py::test_a_host_clock_behind_the_server_deletes_nothing_early",),
    ),
)
