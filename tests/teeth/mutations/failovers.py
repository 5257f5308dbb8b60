"""Mutations of failovers of real Postgres servers, storage sweeps, and cancelled calls on Postgres."""

from tests.teeth.mutations.mutation import Mutation

LAGGING = (
    "tests/commands/test_failover_matrix.py::test_callers_are_notified_of_each_event_that_a_lagging_standby_lost",
)

SWEEPS, RETENTION = "tests/journal/test_sweeps.py", "actors/runtime/retention.py"
DELETION = "actors/runtime/deletion.py"

FAILOVER = "tests/journal/test_postgres_failover.py"
SAME_NUMBER = "test_a_host_whose_claim_was_lost_is_fenced_after_its_successor_wrote"
OWNERSHIP = "tests/runtime/test_ownership.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "kill sweep: a forked worker keeps the locks of a killed host",
        "actors/journal/storage/sqlite/locks.py:_release_in_child",
        "lock.close()",
        "pass",
        ("tests/commands/test_killing.py",),
    ),
    Mutation(
        "ownership on Postgres: a claim has no owner between the journal's answer and the caller",
        "actors/runtime/claims.py:claim_session",
        "ClaimSession(session, existing, pending.set_claim)",
        "ClaimSession(session, existing)",
        (
            f"{OWNERSHIP}::test_open_cancelled_at_any_await_leaves_no_session_claimed",
            f"{OWNERSHIP}::test_resume_cancelled_at_any_await_leaves_no_session_claimed",
            f"{OWNERSHIP}::test_open_with_resume_cancelled_at_any_await_leaves_no_session_claimed",
        ),
    ),
    Mutation(
        "ownership on Postgres: a closed storage keeps a connection",
        "actors/journal/storage/postgres/storage.py:PostgresStorage.close",
        "self._reader.close()",
        "pass",
        (f"{OWNERSHIP}::test_cancelling_a_runtime_at_any_await_leaves_no_resource_open",),
    ),
    Mutation(
        "sweeps: each session is deleted in a separate transaction",
        f"{RETENTION}:Retention.sweep",
        "len(expired) == BATCH",
        "len(expired) == 1",
        (f"{SWEEPS}::test_a_sweep_deletes_many_sessions_in_one_transaction",),
    ),
    Mutation(
        "sweeps: long logs are deleted together",
        f"{RETENTION}:Retention.sweep",
        "sum(...) + each.bytes > BYTES",
        "False",
        (f"{SWEEPS}::test_the_bytes_deleted_in_one_transaction_are_bounded",),
    ),
    Mutation(
        "sweeps: a session that cannot be deleted blocks its transaction",
        f"{DELETION}:delete_unused",
        "(SessionLeased, JournalError)",
        "SessionLeased",
        (f"{SWEEPS}::test_a_session_that_cannot_be_deleted_does_not_block_the_sweep",),
    ),
    Mutation(
        "sweeps: a session used since the listing is deleted",
        f"{DELETION}:_claim_unused",
        "claim.last == sessions[each] and (not failures)",
        "not failures",
        (f"{SWEEPS}::test_a_session_that_was_used_after_the_listing_of_the_sweep_is_kept_and_released",),
    ),
    Mutation(
        "sweeps: a kept session is never released",
        f"{DELETION}:_claim_unused",
        "await _release_claims(journal, ...)",
        "pass",
        (f"{SWEEPS}::test_a_session_that_was_used_after_the_listing_of_the_sweep_is_kept_and_released",),
    ),
    Mutation(
        "sweeps: leaving the runtime crashes a sweep",
        "actors/runtime/runtime.py:Runtime._start_retention",
        "removal.delete_unused",
        "lambda stored: self.journal._session_removal(self._running_host()).delete_unused(stored)",
        (f"{SWEEPS}::test_exiting_the_runtime_during_a_sweep_logs_no_crash",),
    ),
    Mutation(
        "failover: a host writes after another host's events with the same number",
        "actors/journal/storage/postgres/statements.py:_APPEND",
        '_APPEND = """...s.checksum = g.seen..."""',
        '_APPEND = """...true..."""',
        (f"{FAILOVER}::{SAME_NUMBER}",),
    ),
    Mutation(
        "failover: a lost claim is reported as a gap in the log",
        "actors/journal/storage/postgres/batch.py:rejection",
        "owner == row.owner and last < row.last",
        "last < row.last",
        (f"{FAILOVER}::{SAME_NUMBER}",),
    ),
    Mutation(
        "failover: a reader with missing events ends the session",
        "actors/journal/session_events.py:SessionEvents._convert_events",
        "not page.last",
        "not page.events",
        (
            f"{FAILOVER}::test_a_reader_that_finds_events_missing_waits_until_the_writer_has_recorded_the_loss",
        ),
    ),
    Mutation(
        "failover matrix: the log does not record a loss",
        "actors/journal/journal_actor.py:JournalActor._write_loss",
        "self._logs.pending_loss(session)",
        "None",
        LAGGING,
    ),
    Mutation(
        "failover matrix: the session's reader does not receive a loss",
        "actors/journal/journal_actor.py:JournalActor._record_loss",
        "self._readers.roll_back(error.session, error.first - 1)",
        "",
        LAGGING,
    ),
)
