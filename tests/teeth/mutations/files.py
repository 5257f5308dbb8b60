"""Journals in files: forked children, damage, clocks, and what is saved of a damaged one."""

from tests.teeth.mutations.mutation import Mutation

FORKS = "actors/storage/sqlite/forks.py"
CONNECTIONS = "actors/storage/sqlite/connection.py:Connections"
WAL = "tests/test_write_ahead_log.py"
FORKED = "tests/test_forked_hosts.py"

MUTATIONS = (
    Mutation(
        "files: a forked worker keeps the locks of its host",
        f"{FORKS}:_begin_child",
        "lock.close()",
        "pass",
        (
            f"{FORKED}::test_a_host_killed_in_a_write_is_taken_over_at_once_while_its_forked_workers_live",
            f"{FORKED}::test_a_host_killed_between_writes_is_taken_over_at_once_while_its_forked_workers_live",
        ),
    ),
    Mutation(
        "files: a forked child uses the connections of its parent",
        f"{FORKS}:Database.check_own",
        "self.is_inherited",
        "False",
        (f"{FORKED}::test_a_forked_child_cannot_use_or_close_the_journal_of_its_parent",),
    ),
    Mutation(
        "files: a damaged log is not looked at where a loss of power may cost events",
        f"{CONNECTIONS}._check_wal",
        "check_wal(self.path)",
        """
        if self._level == "power":
            check_wal(self.path)
        """,
        (
            f"{WAL}::test_a_journal_that_lost_acknowledged_events_is_copied_and_the_loss_is_logged_at_level_process",
        ),
    ),
    Mutation(
        "files: a journal is opened before there is a copy of its damaged log",
        "actors/storage/sqlite/evidence.py:keep_evidence",
        "_copy(source, target)",
        """
        try:
            _copy(source, target)
        except OSError:
            pass
        """,
        (f"{WAL}::test_a_journal_that_lost_acknowledged_events_is_not_opened_before_the_copy_is_complete",),
    ),
)
