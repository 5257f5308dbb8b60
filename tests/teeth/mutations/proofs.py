"""What kills, races, signals, clocks and long runs must show."""

from tests.teeth.mutations.mutation import Mutation

JOURNAL, SQLITE = "actors/journal.py", "actors/storage/sqlite/connection.py"
RECOVERY, CLOSING = "actors/recovery.py", "actors/core/closing.py"
KILLING, POWER = ("tests/test_killing.py",), ("tests/test_power_loss.py",)

MUTATIONS = (
    Mutation(
        "kills: what is written is told before it is committed",
        JOURNAL,
        "        try:\n            claimed, written =",
        "        ends = dict[str, int]()\n"
        "        for append in group.appends:\n"
        "            before = ends.get(append.session) or len(self._storage.read(append.session))\n"
        "            ends[append.session] = before + len(append.entry.events)\n"
        "            self._written(append, ends[append.session])\n"
        "        try:\n            claimed, written =",
        KILLING,
    ),
    Mutation(
        "kills: a call whose end was recorded runs again",
        RECOVERY,
        "for call in self.replay.repeatable if call.id in pending and self._fits(call)",
        "for call in calls if self._fits(call)",
        KILLING,
    ),
    Mutation(
        "kills: what may run once runs again beside what may run twice",
        RECOVERY,
        "await self._run_again(tuple(again), ledger)",
        "await self._run_again(calls, ledger)",
        KILLING,
    ),
    Mutation(
        "kills: what may run again does not",
        CLOSING,
        'known.status == "pending" and known.effects != "once"',
        'known.status == "pending" and known.effects == "pure"',
        KILLING,
    ),
    Mutation(
        "kills: what had begun is said never to have",
        RECOVERY,
        'if call_id not in kept], "outcome_unknown")',
        'if call_id not in kept], "never_started")',
        KILLING,
    ),
    Mutation(
        "power: level process syncs nothing at all",
        SQLITE,
        'else "NORMAL"',
        'else "OFF"',
        POWER,
    ),
)
