"""Mistakes in who is served next where many wait, and in what forked processes share."""

from tests.teeth.mutations.mutation import Mutation

FORKED = "tests/test_forked_children.py::test_a_forked_child_has_threads_of_its_own"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "forked: a child remembers its parent's threads",
        "actors/kernel/forking.py:reset_after_fork",
        "os.register_at_fork(after_in_child=reset)",
        "pass",
        (FORKED,),
    ),
    Mutation(
        "forked: a child takes its parent's watchdog for its own",
        "actors/execution/watchdog.py:Watchdog.reset",
        "self._thread: threading.Thread | None = None",
        "self._thread: threading.Thread | None = getattr(self, '_thread', None)",
        (FORKED,),
    ),
)
