"""Mutations of passivated sessions: their state in memory, the replay of their logs, and limits."""

from tests.teeth.mutations.mutation import Mutation

STATE = "tests/core/test_state.py"
SLEEP, HOST = "tests/runtime/test_hibernation.py", "actors/runtime/session_host.py"

MUTATIONS = (
    Mutation(
        "leaving: a waiting turn is cancelled together with the asks behind it",
        "actors/runtime/session_actors.py:SessionActors.interrupt",
        "self.pending.current",
        "self.pending",
        (
            "tests/session/test_resumed_asks.py::"
            "test_exiting_the_runtime_drops_asks_queued_after_a_waiting_turn",
        ),
    ),
    Mutation(
        "waking: lanes are rendered although no request needs one",
        "actors/core/session/lanes.py:Lanes.apply",
        "self._defer(event.binding, sent)",
        """
        self._defer(event.binding, sent)
        self.blocks_of(event.binding)
        """,
        (STATE,),
    ),
    Mutation(
        "waking: each request is rendered separately",
        "actors/core/session/lanes.py:RequestRun.try_merge",
        "self.has_seals or ...",
        "self or ...",
        (STATE,),
    ),
    Mutation(
        "waking: a call with a sent synthetic result shows its late result",
        "actors/core/session/lanes.py:RequestRun.try_merge",
        "self.has_seals or len(self.ledger.late) != len(other.ledger.late)",
        "len(self.lengths) > 99",
        (STATE, "tests/core/test_lane.py"),
    ),
    Mutation(
        "waking: a late result appears in a different request",
        "actors/core/session/lanes.py:Lanes._replay_requests",
        "is_pinned and state.outdated is None and (state.late_count == len(ledger.late))",
        "is_pinned and state.outdated is None",
        (STATE, "tests/core/test_lane.py"),
    ),
    Mutation(
        "waking: the backend chosen by a gateway is known too early",
        "actors/core/session/lanes.py:Lanes._replay_requests",
        'dialect.reasoning.binding != "upstream" or state.upstream is not None',
        'dialect.family != ""',
        (STATE, "tests/core/test_lane.py"),
    ),
    Mutation(
        "waking: an epoch begins at the last of several requests",
        "actors/core/session/lanes.py:Lanes._replay_requests",
        "is_pinned and state.outdated is None and ...",
        "is_pinned and ...",
        (STATE, "tests/core/test_lane.py", "tests/core/test_compaction.py", "tests/core/test_outdated.py"),
    ),
    Mutation(
        "waking: consecutive requests are one that ends once",
        "actors/core/render/walk.py:RenderWalk.write_fragments",
        """
        if at in self._ends:
            self._end_transcript()
            self._expect_images(at)
        """,
        "",
        (STATE,),
    ),
    Mutation(
        "waking: the ledger receives call events after the request that seals them",
        "actors/core/session/lanes.py:LogReplay.add",
        """
        state = state.with_call_events(happened)
        happened = []
        """,
        "pass",
        (STATE,),
    ),
    Mutation(
        "sleep: the state of sleeping sessions is unbounded",
        "actors/runtime/residency.py:Residency.evict_replays",
        "self.held.total > max_bytes and self.folded",
        "False",
        (f"{SLEEP}::test_the_memory_used_for_passivated_sessions_is_limited",),
    ),
    Mutation(
        "sleep: a turn does not wait while its log is read",
        "actors/session/session_actor.py:SessionActor.__init__",
        """
if state.session:
    ...
        """,
        """
if True:
    ...
        """,
        (f"{SLEEP}::test_a_waiting_turn_survives_hibernation",),
    ),
    Mutation(
        "sleep: a damaged log crashes the session until it has ended",
        "actors/runtime/session_actors.py:RESTART",
        "(JournalError,)",
        "(ShuttingDown,)",
        (f"{SLEEP}::test_a_hibernated_session_wakes_once_its_unreadable_log_is_readable_again",),
    ),
    Mutation(
        "sleep: sessions are passivated only when others are used",
        "actors/session/pending.py:PendingAsks.deliver_result",
        "self.on_ask_end()",
        "",
        (
            f"{SLEEP}::test_sessions_are_passivated_after_a_burst_of_asks",
            f"{SLEEP}::test_the_least_recently_used_session_is_hibernated_to_free_memory",
        ),
    ),
    Mutation(
        "memory: an ended session keeps its memory",
        "actors/runtime/lifecycle.py:SessionLifecycle.end",
        "self.memory_use.release()",
        "",
        (f"{SLEEP}::test_logs_in_memory_storage_count_as_memory_that_hibernation_cannot_free",),
    ),
    Mutation(
        "memory: logs in memory are not counted while a session sleeps",
        "actors/runtime/lifecycle.py:SessionLifecycle._count_evicted",
        """
        if self.host.is_durable:
            self.memory_use.release()
        """,
        "self.memory_use.release()",
        (f"{SLEEP}::test_logs_in_memory_storage_count_as_memory_that_hibernation_cannot_free",),
    ),
    Mutation(
        "memory: it is never exhausted",
        f"{HOST}:SessionHost.check_capacity",
        "not self.residency.free_memory()",
        "False",
        (f"{SLEEP}::test_new_asks_are_rejected_while_busy_sessions_use_all_memory",),
    ),
    Mutation(
        "memory: it is exhausted although sessions are idle",
        "actors/runtime/residency.py:Residency.free_memory",
        "self.held.total < self.limits.memory or self._evict_and_passivate()",
        "self.held.total < self.limits.memory",
        (f"{SLEEP}::test_new_asks_are_rejected_while_busy_sessions_use_all_memory",),
    ),
    Mutation(
        "limits: one session more than the limit may be open",
        "actors/runtime/registry.py:SessionRegistry.ensure_room",
        "... >= most",
        "... > most",
        (f"{SLEEP}::test_the_number_of_open_sessions_is_limited",),
    ),
    Mutation(
        "memory: the calls of a log are not counted",
        "actors/core/ledger.py:Ledger.apply",
        "size += more",
        "",
        (STATE,),
    ),
    Mutation(
        "memory: compacted messages are still counted",
        "actors/core/session/state.py:SessionState._with_history",
        "sum(map(size_of, packed_messages(history)))",
        "self.size",
        (STATE,),
    ),
    Mutation(
        "memory: a session's lanes are not counted",
        "actors/renderer/renderer_actor.py:RendererActor.receive",
        "self._record_size()",
        "",
        (
            f"{SLEEP}::test_the_least_recently_used_session_is_hibernated_to_free_memory",
            "tests/commands/test_simulation.py",
        ),
    ),
    Mutation(
        "sleep: a waiting turn does not count as waiting while its session sleeps",
        "actors/runtime/lifecycle.py:SessionLifecycle.pending_calls",
        "self.record.pending_calls",
        '() if self._state == "stored" else self.record.pending_calls',
        (f"{SLEEP}::test_a_waiting_turn_survives_hibernation",),
    ),
)
