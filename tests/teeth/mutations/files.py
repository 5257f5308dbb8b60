"""Journals in files: forked children, damage, clocks, and what is saved of a damaged one."""

from tests.teeth.mutations.mutation import Mutation

FORKS = "actors/storage/sqlite/forks.py"
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
)
