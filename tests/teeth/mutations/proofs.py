"""Mutations found by kill sweeps, races, signals, clocks and long runs."""

from tests.teeth.mutations.mutation import Mutation

JOURNAL, SQLITE = "actors/journal/journal_actor.py", "actors/journal/storage/sqlite/connection.py"
RECOVERY, RECOVERY_RULES = "actors/session/child_tasks.py", "actors/core/session/open_asks.py"
FENCING, SIGNALS = ("tests/commands/test_fencing.py",), ("tests/commands/test_signals.py",)
ENDURANCE = ("tests/commands/test_endurance.py",)
CLOCKS = ("tests/project/test_clocks.py",)
KILLING, POWER = ("tests/commands/test_killing.py",), ("tests/commands/test_power_loss.py",)

MUTATIONS = (
    Mutation(
        "kills: an event is shown before its commit",
        f"{JOURNAL}:JournalActor._commit",
        """
        if not len(group):
            ...
        """,
        """
        if not len(group):
            ...
        ends = dict[str, int]()
        for append in group.appends:
            before = ends.get(append.session) or len(self._storage.read(append.session))
            ends[append.session] = before + len(append.entry.events)
            self._written(append, ends[append.session])
        """,
        KILLING,
    ),
    Mutation(
        "kills: a call with a recorded end runs again",
        f"{RECOVERY}:Recovery._close_calls",
        "[call for call in self.repeatable if call.id in pending and self._can_run_again(call)]",
        "[call for call in calls if self._can_run_again(call)]",
        KILLING,
    ),
    Mutation(
        "kills: a call that may run once runs again beside a repeatable one",
        f"{RECOVERY}:Recovery._close_calls",
        "self._run_again(tuple(again), ledger)",
        "self._run_again(calls, ledger)",
        KILLING,
    ),
    Mutation(
        "kills: a repeatable call does not run again",
        f"{RECOVERY_RULES}:_may_run_again",
        'known.effects != "once"',
        'known.effects == "pure"',
        KILLING,
    ),
    Mutation(
        "kills: an interrupted call counts as never started",
        f"{RECOVERY}:Recovery._close_calls",
        'self._close(*..., "outcome_unknown")',
        'self._close(*..., "never_started")',
        KILLING,
    ),
    Mutation(
        "power: durability process never syncs",
        f"{SQLITE}:Connections._configure_connection",
        '"FULL" if self._durability == "power" else "NORMAL"',
        '"FULL" if self._durability == "power" else "OFF"',
        POWER,
    ),
    Mutation(
        "fencing: two hosts may own one session",
        "actors/journal/storage/sqlite/storage.py:SqliteStorage._check_not_leased",
        "row.owner is None or ...",
        "row.last or row.owner is None or ...",
        FENCING,
    ),
    Mutation(
        "fencing: one runtime opens a session several times concurrently",
        "actors/runtime/registry.py:SessionRegistry.reserve",
        "self.is_taken(requested_id)",
        "requested_id in self.open",
        FENCING,
    ),
    Mutation(
        "signals: a signalled command leaves its turn open",
        "actors/cli/run.py:_Ask._cancel_turn",
        """
        if not await self._session.cancel():
            print_notice(MESSAGES[self._cancelled_by])
            scope.cancel()
        """,
        """
        print_notice(MESSAGES[self._cancelled_by])
        os._exit(self._cancelled_by)
        """,
        SIGNALS,
    ),
    Mutation(
        "signals: a signalled command reports success",
        "actors/cli/run.py:_Ask._exit_code",
        "return self._cancelled_by",
        "return Exit.FAILED",
        SIGNALS,
    ),
    Mutation(
        "clocks: a host's lease ends by the wall clock",
        "actors/journal/storage/sqlite/locks.py:monotonic",
        "from time import monotonic, sleep",
        "from time import sleep, time as monotonic",
        CLOCKS,
    ),
    Mutation(
        "clocks: a token's lifetime uses the wall clock",
        "actors/provider/configured_credentials.py:Tokens.headers",
        "self._clock() >= self._until",
        "self._now() >= self._until",
        CLOCKS,
    ),
    Mutation(
        "clocks: a deadline reads the wall clock itself",
        "actors/journal/storage/sqlite/locks.py:monotonic",
        "from time import monotonic, sleep",
        """
        from time import sleep
        from time import time as monotonic
        """,
        CLOCKS,
    ),
    Mutation(
        "endurance: the results of asks are kept forever",
        "actors/runtime/handle.py:Session.ask",
        "sink = AnswerSink(self._ended_error)",
        """
        sink = AnswerSink(self._ended_error)
        vars(build_host_call).setdefault("kept", []).append(sink)
        """,
        ENDURANCE,
    ),
)
