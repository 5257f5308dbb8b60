"""Mistakes in who owns what: claims, logs that are being written, storages, sessions that several callers have."""

from tests.teeth.mutations.mutation import Mutation

TESTS = "tests/test_ownership.py"
CLAIMS, SESSIONS = "actors/hosting/claims.py", "actors/hosting/sessions.py"
OPEN = (f"{TESTS}::test_an_open_that_is_cancelled_at_any_await_leaves_nothing_claimed",)
FORK = (
    f"{TESTS}::test_a_fork_that_is_cancelled_at_any_await_leaves_nothing_claimed_and_no_log_that_nobody_knows",
)

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
)
