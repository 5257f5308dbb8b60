"""Loops and threads at their ends: backups that nobody waits for, loops of a program that ends, asks in a queue."""

from tests.teeth.mutations.mutation import Mutation

BACKUP = "tests/test_backup.py"

MUTATIONS = (
    Mutation(
        "backup: a caller that is cancelled natively leaves the thread to go on",
        "actors/hosting/backups.py:_Backup.stop",
        "self._unwanted.set()",
        "",
        (f"{BACKUP}::test_a_caller_that_is_cancelled_natively_ends_the_backup",),
    ),
    Mutation(
        "backup: one that is complete when its caller is cancelled stays",
        "actors/hosting/backups.py:_Backup.remove",
        "self._path.unlink(missing_ok=True)",
        "pass",
        (f"{BACKUP}::test_a_backup_that_is_complete_when_its_caller_is_cancelled_leaves_no_file",),
    ),
)
