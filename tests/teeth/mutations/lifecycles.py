"""Mutations of the life of a session: its start, its state, and its end."""

from tests.teeth.mutations.mutation import Mutation

ONCE, TABLE = "tests/runtime/test_one_replay.py", "tests/core/test_lifecycle.py"
TARGETS = "tests/session/test_switching.py"

MUTATIONS = (
    Mutation(
        "lifecycle: a session with a failed journal keeps its actors' state",
        "actors/core/session/lifecycle.py:_ACTIONS",
        '("restart", "nothing", "nothing", None, "release")',
        '("restore", "nothing", "nothing", None, "release")',
        (
            f"{TABLE}::test_only_a_session_dropped_from_memory_or_suspended_by_a_journal_failure_reads_its_log",
        ),
    ),
    Mutation(
        "lifecycle: an ended session can be used again",
        "actors/core/session/lifecycle.py:_ACTIONS",
        '("refuse", "nothing", None, None, "nothing")',
        '("restart", "nothing", None, None, "nothing")',
        (f"{TABLE}::test_an_ended_session_stays_ended_and_releases_its_resources_once",),
    ),
    Mutation(
        "lifecycle: an ended session releases its toolsets twice",
        "actors/core/session/lifecycle.py:_ACTIONS",
        '("refuse", "nothing", None, None, "nothing")',
        '("refuse", "nothing", None, None, "release")',
        (f"{TABLE}::test_an_ended_session_stays_ended_and_releases_its_resources_once",),
    ),
    Mutation(
        "lifecycle: a target removed by a rollback is still shown",
        "actors/session/session_actor.py:SessionActor._continue_after_crash",
        "self._active_config.retarget(state.target)",
        "",
        (
            "tests/runtime/test_one_replay.py::test_the_target_is_read_again_from_a_log_that_lost_its_last_event",
        ),
    ),
    Mutation(
        "lifecycle: the actors of a resumed session read the log again",
        "actors/runtime/session_actors.py:SessionActors._make_ledger_actor",
        "self._generation.next_generation(replay)",
        "self._generation.next_generation()",
        (f"{ONCE}::test_resuming_a_session_with_a_truncated_log_reads_and_folds_the_log_once",),
    ),
    Mutation(
        "lifecycle: the resolver of an opened session is created again at its first use",
        "actors/runtime/lifecycle.py:SessionLifecycle.__init__",
        "self._resolver: Resolver | None = resolver",
        "self._resolver: Resolver | None = None",
        (f"{ONCE}::test_the_first_ask_of_a_resumed_session_reads_no_log",),
    ),
    Mutation(
        "lifecycle: the first use of a session reads its own new log",
        "actors/runtime/lifecycle.py:SessionLifecycle._make_actors",
        "self._replay or self.host.replay(self.name)",
        "self.host.replay(self.name)",
        (f"{ONCE}::test_the_first_ask_of_an_opened_session_reads_no_log",),
    ),
)
