"""What a session finds that is used again after its journal went back."""

from tests.teeth.mutations.mutation import Mutation

STORAGE, FAILOVER = "actors/journal/storage/postgres/storage.py", "tests/journal/test_postgres_failover.py"
SLEPT = f"{FAILOVER}::test_a_session_reading_after_a_failover_continues_at_its_second_use"
SUSPENDED = f"{FAILOVER}::test_a_session_suspended_before_a_failover_continues_at_its_second_use"
CLOCK = "tests/journal/test_postgres_clock.py"

MUTATIONS = (
    Mutation(
        "behind: what a read finds to be lost is not noted",
        "actors/journal/journal_actor.py:JournalActor._check_answer",
        "self._lose(error, ...)",
        "",
        (SLEPT, SUSPENDED),
    ),
    Mutation(
        "behind: the number of a claim is not kept",
        "actors/journal/ends.py:LogEnds.fence",
        "self._fences.get(session, 0)",
        "0",
        (SLEPT, SUSPENDED),
    ),
    Mutation(
        "behind: a row that is remembered is right though its log went back",
        f"{STORAGE}:PostgresStorage._known_rows",
        "entry.after < row.last",
        "False",
        (SLEPT, SUSPENDED),
    ),
    Mutation(
        "behind: whoever forks a session reads its log as its writer",
        "actors/runtime/replays.py:read_events",
        "read_log(journal, session)",
        "read_log(journal, session, anew=True)",
        (f"{FAILOVER}::test_a_fork_after_a_rollback_does_not_record_the_loss_itself",),
    ),
    Mutation(
        "behind: a close asks again for ever",
        "actors/runtime/lifecycle.py:SessionLifecycle._write_end",
        "raise",
        "return await self._write_end()",
        (f"{FAILOVER}::test_a_close_fails_if_the_journal_is_rolled_back",),
    ),
    Mutation(
        "behind: a connection that is lost takes the notes of the clock with it",
        f"{STORAGE}:_observe_clock",
        "connection.transaction()",
        "suppress()",
        (f"{CLOCK}::test_a_connection_lost_during_a_clock_note_loses_no_note",),
    ),
    Mutation(
        "behind: two hosts note the clock at once",
        f"{STORAGE}:_observe_clock",
        "connection.execute(sql.LOCK_CLOCK)",
        "",
        (f"{CLOCK}::test_a_clock_note_waits_for_a_concurrent_one",),
    ),
    Mutation(
        "behind: the age of what a host wrote is told by a clock that is ahead of its own",
        f"{STORAGE}:_observe_clock",
        "min(server_time(connection), now)",
        "server_time(connection)",
        ("tests/journal/test_retention.py::test_a_host_clock_behind_the_server_deletes_nothing_early",),
    ),
)
