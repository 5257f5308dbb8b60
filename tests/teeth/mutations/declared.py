"""Mistakes in what is declared twice, so that type checkers know it."""

from tests.teeth.mutations.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "declared: the blocking `run` drops a parameter",
        "actors/sync/runtime.py:run",
        "once.run(*..., **..., approve=approve, **...)",
        "once.run(*..., **..., **...)",
        ("tests/runtime/test_sync.py::test_sync_run_passes_every_parameter_to_the_async_run",),
    ),
)
