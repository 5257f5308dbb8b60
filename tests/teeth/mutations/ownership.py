"""Mistakes in who owns what: claims, logs that are being written, storages, sessions that several callers have."""

from tests.teeth.mutations.mutation import Mutation

TESTS = "tests/test_ownership.py"
CLAIMS, SESSIONS = "actors/hosting/claims.py", "actors/hosting/sessions.py"
OPEN = (f"{TESTS}::test_an_open_that_is_cancelled_at_any_await_leaves_nothing_claimed",)
FORK = (
    f"{TESTS}::test_a_fork_that_is_cancelled_at_any_await_leaves_nothing_claimed_and_no_log_that_nobody_knows",
)
LATE = (f"{TESTS}::test_a_storage_is_closed_though_those_who_wait_for_it_are_cancelled",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "ownership: a claim that is made when its caller has gone is kept",
        f"{CLAIMS}:_PendingClaim.take",
        "self._release()",
        "pass",
        OPEN,
    ),
    Mutation(
        "ownership: a claim whose answer was lost is kept",
        f"{CLAIMS}:_PendingClaim.abandon",
        "self._release()",
        "pass",
        OPEN,
    ),
    Mutation(
        "ownership: the log of an open that was cancelled stays",
        f"{SESSIONS}:_erase",
        "await host.journal.ask(Erase(name))",
        "pass",
        OPEN,
    ),
    Mutation(
        "ownership: a fork that was cancelled stays, and nobody knows its id",
        f"{CLAIMS}:drafts",
        'host.start(made.drop, "drafts")',
        "made.release()",
        FORK,
    ),
    Mutation(
        "ownership: a storage that is opened when its runtime was left stays open",
        "actors/hosting/storage_owner.py:StorageOwner._open",
        "not self._is_closed",
        "True",
        LATE,
    ),
    Mutation(
        "ownership: a storage whose close was cancelled stays open",
        "actors/hosting/storage_owner.py:StorageOwner.close",
        "not self._is_closed",
        "False",
        LATE,
    ),
    Mutation(
        "ownership: a connection to a file that is no journal stays open",
        "actors/storage/sqlite/connection.py:Connections._connected",
        "connection.close()",
        "pass",
        (f"{TESTS}::test_a_runtime_whose_journal_cannot_be_opened_leaves_nothing_open",),
    ),
    Mutation(
        "ownership: a runtime whose entering was cancelled leaves its journal open",
        "actors/runtime.py:Runtime.__aenter__",
        "await self.system.__aexit__(type(error), error, error.__traceback__)",
        "pass",
        (f"{TESTS}::test_a_runtime_that_is_cancelled_at_any_await_of_its_life_leaves_nothing_open",),
    ),
)
