"""Mistakes about the journal: what becomes of sessions when it cannot write."""

from tests.teeth.mutations.mutation import Mutation

_DISK = (
    "tests/test_unavailable.py::test_a_fault_of_the_disk_is_typed_loses_nothing_and_is_over_when_its_cause_is"
)
_ENDS = "tests/kernel/test_ends.py"
_BROKEN = "tests/test_journal.py::test_no_log_has_an_event_whose_forerunner_was_refused"

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
    Mutation(
        "an end is not reported as a crash",
        "actors/kernel/cell.py",
        "        if not self.is_end(error):\n            self.system.crashed",
        "        if True:\n            self.system.crashed",
        (_ENDS,),
    ),
    Mutation(
        "what comes behind an end is not reported as a crash",
        "actors/kernel/actor.py",
        "            elif not ref.is_end(error):",
        "            else:",
        (_ENDS,),
    ),
    Mutation(
        "who has mail where an end comes gets the error",
        "actors/kernel/cell.py",
        'else "stopped", why or self.gone())',
        'else "stopped", self.gone())',
        (_ENDS,),
    ),
    Mutation(
        "who waits for an answer where an end comes gets the error",
        "actors/kernel/cell.py",
        "        if self.is_end(cause):\n            return cause\n",
        "",
        (_ENDS,),
    ),
    Mutation(
        "an end ends the group at once",
        "actors/kernel/cell.py",
        "        if self.ended is not None or len(self.crashes)",
        "        if len(self.crashes)",
        (_ENDS,),
    ),
    Mutation(
        "what is sent behind an event that was refused is refused",
        "actors/journal.py",
        "            self._broken[command.session] = error\n",
        "            pass\n",
        (_BROKEN,),
    ),
    Mutation(
        "whoever reads a log makes up for nothing that was refused",
        "actors/journal.py",
        "        if not isinstance(command, ReadLog) or command.anew:",
        "        if True:",
        (_BROKEN,),
    ),
)
