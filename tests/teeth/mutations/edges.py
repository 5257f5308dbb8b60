"""Mistakes at the edges of host operations: cancelled work, backups, sweeps, large events and shared budgets."""

from tests.teeth.mutations.mutation import Mutation

TASKS = "tests/test_host_tasks.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "host tasks: an error that is no error of ours is lost",
        "actors/hosting/host_task.py:HostTask.result",
        "isinstance(error, Exception)",
        "isinstance(error, ActorsError)",
        (f"{TASKS}::test_an_unexpected_error_of_a_deletion_reaches_its_caller",),
    ),
    Mutation(
        "host tasks: work that was cancelled looks done",
        "actors/hosting/host_task.py:HostTask.result",
        "not self._is_done",
        "error is not None",
        (
            f"{TASKS}::test_work_that_was_cancelled_because_the_runtime_was_left_raises_and_is_not_logged_as_a_crash",
        ),
    ),
    Mutation(
        "host tasks: a close that failed unexpectedly looks done",
        "actors/hosting/activation.py:Activation._close",
        "closing.error = error",
        "closing.error = error if isinstance(error, JournalError) else None",
        (f"{TASKS}::test_an_unexpected_error_of_a_close_reaches_its_caller_and_the_session_goes_on",),
    ),
    Mutation(
        "backup: a copy that is complete after its caller was cancelled twice stays",
        "actors/hosting/backups.py:_Backup._copy",
        "self._unwanted.is_set()",
        "not self._is_complete",
        (f"{TASKS}::test_a_backup_whose_caller_is_cancelled_natively_twice_leaves_no_file",),
    ),
)
