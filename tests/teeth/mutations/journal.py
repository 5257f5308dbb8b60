"""Mistakes about the journal: what becomes of sessions when it cannot write."""

from tests.teeth.mutations.mutation import Mutation

_DISK = (
    "tests/test_unavailable.py::test_a_fault_of_the_disk_is_typed_loses_nothing_and_is_over_when_its_cause_is"
)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "logs are read while nobody can write",
        "actors/storage/sqlite/connection.py",
        "                if self._writer is None:\n                    with self.transaction",
        "                if self._reader is None:\n                    with self.transaction",
        (_DISK,),
    ),
    Mutation(
        "a full disk is no damage",
        "actors/storage/sqlite/faults.py",
        '    sqlite3.SQLITE_FULL: "the disk is full; make room",\n',
        "",
        (_DISK,),
    ),
)
