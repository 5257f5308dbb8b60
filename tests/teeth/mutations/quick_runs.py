"""Mistakes in what a quick run of the tests leaves out."""

from tests.teeth.mutations.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "quick runs: a file that imports the SDK of a vendor is not long",
        "tests/conftest.py:LONG",
        "'strict/test_sdk_params_google.py'",
        "'testing/test_sdk_params.py'",
        ("tests/project/test_quick_runs.py::test_files_of_a_quick_run_import_no_sdk",),
    ),
)
