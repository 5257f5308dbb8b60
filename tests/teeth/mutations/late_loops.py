"""Loops and threads at their ends: backups that nobody waits for, loops of a program that ends, asks in a queue."""

from tests.teeth.mutations.mutation import Mutation

BACKUP, SYNC = "tests/journal/test_backup.py", "tests/runtime/test_sync.py"
REWIND, QUEUE = "tests/session/test_rewind.py", "tests/session/test_queue_limits.py"
LOOP = "actors/kernel/loop_thread.py"

MUTATIONS = (
    Mutation(
        "backup: a caller that is cancelled natively leaves the thread to go on",
        "actors/runtime/backups.py:make_backup",
        "backup.abandon()",
        "",
        (f"{BACKUP}::test_native_cancellation_of_the_caller_stops_the_backup",),
    ),
    Mutation(
        "backup: one that is complete when its caller is cancelled stays",
        "actors/runtime/backups.py:_Backup._copy",
        "self._path.unlink(missing_ok=True)",
        "pass",
        (f"{BACKUP}::test_a_backup_completed_after_cancellation_leaves_no_file",),
    ),
    Mutation(
        "closing: a call that goes on without end keeps the loop",
        f"{LOOP}:LoopThread._host",
        "self._tasks.cancel_scope.deadline = anyio.current_time() + ENDING",
        "",
        (f"{SYNC}::test_a_program_ends_though_a_call_goes_on_and_a_runtime_is_refused_then",),
    ),
    Mutation(
        "closing: a loop that goes on is closed all the same",
        f"{LOOP}:LoopThread.close",
        "self._thread.is_alive()",
        "False",
        (f"{SYNC}::test_closing_says_that_what_is_hosted_is_not_left_in_time",),
    ),
    Mutation(
        "exit: a runtime that is made when the main thread has ended is never stopped",
        f"{LOOP}:RunningLoops._stop_at_exit",
        "[*self._loops], True",
        "[*self._loops], False",
        (f"{SYNC}::test_a_program_ends_though_a_call_goes_on_and_a_runtime_is_refused_then",),
    ),
    Mutation(
        "exit: a watcher that could not start is taken for one that runs",
        f"{LOOP}:RunningLoops.add",
        "watch.start()\nself._watch = watch",
        "self._watch = watch\nwatch.start()",
        (f"{SYNC}::test_a_watcher_that_cannot_start_is_an_error_and_is_started_for_the_next_loop",),
    ),
    Mutation(
        "advice: the turn to go back to is the one that was last counted",
        "actors/core/session/state.py:SessionState.turn_before",
        "turn_ends.last_turn_within(self.ends, self.asked_at)",
        "self.turns - 1",
        (f"{REWIND}::test_the_turn_to_go_back_to_is_none_that_an_earlier_rewind_took_away",),
    ),
    Mutation(
        "queue limits: an ask that waited too long is kept until the turn goes on",
        "actors/session/queue_limits.py:QueueLimits._expire",
        "self._children.discard(child)",
        "pass",
        (f"{QUEUE}::test_an_ask_behind_a_turn_that_waits_for_an_approval_is_bounded_by_its_total",),
    ),
    Mutation(
        "queue limits: an ask that waited too long is not counted",
        "actors/session/pending.py:PendingAsks.refuse",
        "submit.variables.copy().run(self.record.refuse, error)",
        "",
        (f"{QUEUE}::test_an_ask_behind_a_turn_that_waits_for_an_approval_is_bounded_by_its_total",),
    ),
)
