"""What kills, races, signals, clocks and long runs must show."""

from tests.teeth.mutations.mutation import Mutation

JOURNAL, SQLITE = "actors/journal.py", "actors/storage/sqlite/connection.py"
RECOVERY, CLOSING = "actors/turns/recovery.py", "actors/core/closing.py"
FENCING, SIGNALS = ("tests/test_fencing.py",), ("tests/test_signals.py",)
ENDURANCE = ("tests/test_endurance.py",)
CLOCKS = ("tests/test_clocks.py",)
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
        "for call in self.repeatable if call.id in pending and self._fits(call)",
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
    Mutation(
        "fencing: two hosts may have one session",
        "actors/storage/sqlite/storage.py",
        "if row.owner is None or row.owner == self._hosts.name:",
        "if row.last or row.owner is None or row.owner == self._hosts.name:",
        FENCING,
    ),
    Mutation(
        "fencing: one runtime opens a session as often as it is asked meanwhile",
        "actors/hosting/sessions.py",
        "if given in self._open or given in self._reserved:",
        "if given in self._open:",
        FENCING,
    ),
    Mutation(
        "signals: a command that is told to end leaves its turn as it is",
        "actors/cli/run.py",
        "        if not await self._session.cancel():\n            complain(WORD_OF[self._stopped])\n"
        "            scope.cancel()",
        "        complain(WORD_OF[self._stopped])\n        os._exit(self._stopped)",
        SIGNALS,
    ),
    Mutation(
        "signals: a command that is told to end says that it was done",
        "actors/cli/run.py",
        "return self._stopped\n        if code is Exit.OK and",
        "return Exit.FAILED\n        if code is Exit.OK and",
        SIGNALS,
    ),
    Mutation(
        "clocks: a host's lease ends by the wall clock",
        "actors/storage/sqlite/hosts.py",
        "from time import monotonic",
        "from actors.wall import wall as monotonic",
        CLOCKS,
    ),
    Mutation(
        "clocks: a token lasts by the wall clock",
        "actors/credentials/tokens.py",
        "clock: Callable[[], float] = time.monotonic,",
        "clock: Callable[[], float] = wall,",
        CLOCKS,
    ),
    Mutation(
        "clocks: a deadline reads the wall clock itself",
        "actors/storage/sqlite/locks.py",
        "from time import monotonic, sleep",
        "from time import sleep\nfrom time import time as monotonic",
        CLOCKS,
    ),
    Mutation(
        "endurance: what an ask came to is kept for ever",
        "actors/handle.py",
        "        await self._submit(words, sink, output, settings)\n        return",
        "        vars(again).setdefault('kept', []).append(sink)\n"
        "        await self._submit(words, sink, output, settings)\n        return",
        ENDURANCE,
    ),
)
