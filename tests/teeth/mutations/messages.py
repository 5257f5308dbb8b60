"""Mutations of the messages between the actors of a session."""

from tests.teeth.mutations.mutation import Mutation

COUNTS = ("tests/session/test_message_counts.py",)
HELD = (
    "tests/journal/test_journal.py::test_held_events_are_written_before_later_events_with_their_own_numbers",
)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "outbox: held events are written after later ones",
        "actors/journal/log.py:Outbox.append",
        "(*held, *events)",
        "(*events, *held)",
        HELD,
    ),
    Mutation(
        "outbox: the callback of a held event gets another event's number",
        "actors/journal/commands.py:Append.finish",
        "call(first + index)",
        "call(last_seq)",
        HELD,
    ),
    Mutation(
        "outbox: an append leaves its events in the outbox",
        "actors/journal/log.py:Outbox.append",
        "self._events, self._callbacks = [], []",
        "pass",
        HELD,
    ),
    Mutation(
        "session: the snapshot in the answer to a seal is ignored",
        "actors/session/inflight.py:SessionLedger.seal",
        "self.keep_newer(answer.snapshot)",
        "pass",
        COUNTS,
    ),
    Mutation(
        "session: the snapshot at the end of a batch is ignored",
        "actors/session/steps.py:TurnSteps._run_batch",
        "self._ask.ledger.keep_newer(ended.snapshot)",
        "pass",
        COUNTS,
    ),
    Mutation(
        "session: an older snapshot replaces a newer one",
        "actors/session/inflight.py:SessionLedger.keep_newer",
        "snapshot.version > self.snapshot.version",
        "True",
        ("tests/session/test_message_counts.py::test_the_session_keeps_the_newest_snapshot_of_its_ledger",),
    ),
    Mutation(
        "renderer: a lane is read without the requests sent since its last command",
        "actors/renderer/renderer_actor.py:RendererActor.lanes",
        "self._lanes.adopt(binding, lane)",
        "pass",
        ("tests/runtime/test_rebuild.py",),
    ),
    Mutation(
        "session: a lane's bytes count only from the renderer's next command",
        "actors/journal/log.py:Generation.store_sent_lane",
        'self.memory_use.record_size("lanes", ...)',
        "pass",
        (
            "tests/session/test_message_counts.py::test_the_memory_use_of_a_session_includes_a_lane_once_the_lane_is_sent",
        ),
    ),
    Mutation(
        "session: a change received while an ask's end was queued waits for the next ask",
        "actors/session/session_actor.py:SessionActor._finish_ask",
        "not self._held.is_empty",
        "False",
        ("tests/session/test_message_counts.py::test_a_switch_just_before_the_end_of_an_ask_is_applied",),
    ),
    Mutation(
        "session: the end of an ask is reported twice after a held switch",
        "actors/session/held_changes.py:HeldChanges.apply_waiting",
        "await self._log.write(event)",
        "await self._log.write(event); return",
        (
            "tests/session/test_message_counts.py::test_changes_queued_during_an_ask_are_applied_together_at_its_end",
        ),
    ),
    Mutation(
        "scheduler: a batch in which all calls wait sends an empty record",
        "actors/scheduler/scheduler_actor.py:_Batch._record",
        "not events",
        "False",
        ("tests/session/test_approvals.py::test_an_approved_call_runs_when_a_thread_becomes_free",),
    ),
)
