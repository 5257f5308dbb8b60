"""Mutations of loops and threads at their end: abandoned backups, ending programs, queued asks."""

from tests.teeth.mutations.mutation import Mutation

BACKUP, SYNC = "tests/journal/test_backup.py", "tests/runtime/test_sync.py"
REWIND, QUEUE = "tests/session/test_rewind.py", "tests/session/test_queue_limits.py"
LOOP = "actors/kernel/loop_thread.py"

MUTATIONS = (
    Mutation(
        "backup: native cancellation of the caller leaves the thread running",
        "actors/runtime/journal_admin.py:make_backup",
        "backup.abandon()",
        "",
        (f"{BACKUP}::test_native_cancellation_of_the_caller_stops_the_backup",),
    ),
    Mutation(
        "backup: a copy completed after cancellation stays",
        "actors/runtime/journal_admin.py:_Backup._copy_journal",
        "self._path.unlink(missing_ok=True)",
        "pass",
        (f"{BACKUP}::test_a_backup_completed_after_cancellation_leaves_no_file",),
    ),
    Mutation(
        "closing: an endless call keeps the loop open",
        f"{LOOP}:LoopThread._run_hosted",
        "self._tasks.cancel_scope.deadline = anyio.current_time() + CALL_GRACE",
        "",
        (f"{SYNC}::test_a_program_that_ends_during_a_sync_call_cannot_create_a_new_runtime",),
    ),
    Mutation(
        "closing: a running loop is closed nevertheless",
        f"{LOOP}:LoopThread.close",
        "self._thread.is_alive()",
        "False",
        (f"{SYNC}::test_closing_a_loop_thread_reports_a_context_that_does_not_exit_in_time",),
    ),
    Mutation(
        "exit: a runtime created after the main thread's end is never stopped",
        f"{LOOP}:RunningLoops._stop_at_exit",
        "[*self._loops], True",
        "[*self._loops], False",
        (f"{SYNC}::test_a_program_that_ends_during_a_sync_call_cannot_create_a_new_runtime",),
    ),
    Mutation(
        "exit: a watcher that failed to start counts as running",
        f"{LOOP}:RunningLoops.add",
        "watch.start()\nself._watch = watch",
        "self._watch = watch\nwatch.start()",
        (f"{SYNC}::test_an_exit_watcher_that_fails_to_start_is_started_for_the_next_loop",),
    ),
    Mutation(
        "advice: the suggested turn for a rewind is the last counted one",
        "actors/core/session/state.py:SessionState.turn_before",
        "last_turn_within(self.ends, self.asked_at)",
        "self.turns - 1",
        (f"{REWIND}::test_a_suggested_rewind_skips_turns_that_were_rewound",),
    ),
    Mutation(
        "queue limits: an ask that waited too long stays until the turn continues",
        "actors/session/limits.py:QueueLimits._expire",
        "self._children.pop(child, None)",
        "pass",
        (f"{QUEUE}::test_the_timeout_of_an_ask_applies_while_it_waits_for_a_turn_with_a_pending_approval",),
    ),
    Mutation(
        "queue limits: an ask that waited too long is not counted",
        "actors/session/pending.py:PendingAsks.reject_queued",
        "submit.variables.copy().run(self.record.record_refusal, error)",
        "",
        (f"{QUEUE}::test_the_timeout_of_an_ask_applies_while_it_waits_for_a_turn_with_a_pending_approval",),
    ),
)
