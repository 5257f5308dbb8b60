"""Mutations of the selection of tests in a quick run."""

from tests.teeth.mutations.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "quick runs: a file that imports a vendor SDK is not long",
        "tests/conftest.py:LONG",
        "'strict/test_sdk_params_google.py'",
        "'testing/test_sdk_params.py'",
        ("tests/project/test_quick_runs.py::test_no_test_file_of_a_quick_run_imports_an_sdk",),
    ),
)
