"""Mutations of thousands of sessions in one process: memory, the garbage collector, the lag of the loop."""

from tests.teeth.mutations.mutation import Mutation

ROTATION, MACHINE = "tests/runtime/test_rotation.py", "tests/core/test_machine.py"
HOST, ACTIVATION = "actors/runtime/session_host.py", "actors/runtime/lifecycle.py"
THRASHES = f"{ROTATION}::test_a_runtime_with_too_little_memory_logs_the_shortage_once"
FITS = f"{MACHINE}::test_available_memory_is_the_smallest_limit_of_machine_and_containers"
COUNTED = f"{ROTATION}::test_reuse_and_rebuilds_of_sessions_are_counted"
LAG, GATE = "tests/runtime/test_loop_lag.py", "tests/kernel/test_turnstile.py"
TURNSTILE = "actors/kernel/turnstile.py"
COLLECTOR, GC = "tests/runtime/test_collector.py", "actors/runtime/collector.py"

MUTATIONS = (
    Mutation(
        "many sessions: sessions without actors always keep 16 MiB",
        "actors/runtime/residency.py:Residency.add_folded",
        "self.evict_replays(self.limits.memory)",
        "self.evict_replays(16 * 1024 * 1024)",
        (f"{ROTATION}::test_sessions_used_alternately_are_not_rebuilt_while_memory_suffices",),
    ),
    Mutation(
        "many sessions: actors are passivated although other sessions could be evicted",
        "actors/runtime/residency.py:Residency._evict_and_passivate",
        """
self.evict_replays(most)
for oldest in ...:
    ...
        """,
        """
        for oldest in ...:
            ...
        """,
        (f"{ROTATION}::test_passivated_sessions_are_evicted_before_active_sessions",),
    ),
    Mutation(
        "many sessions: the first use of a session counts as one in memory",
        "actors/runtime/lifecycle.py:SessionLifecycle.activate",
        "self._resolver is None",
        "True",
        (COUNTED,),
    ),
    Mutation(
        "many sessions: evicted state counts as never created",
        "actors/runtime/lifecycle.py:SessionLifecycle.activate",
        "self.host.residency.reuse.count_rebuild()",
        "pass",
        (COUNTED, THRASHES),
    ),
    Mutation(
        "many sessions: a thrashing host is reported repeatedly",
        "actors/runtime/residency.py:ReuseCounter.count_rebuild",
        "self._is_thrash_reported or self.rebuilds % REBUILDS",
        "self.rebuilds % REBUILDS",
        (THRASHES,),
    ),
    Mutation(
        "many sessions: every rebuild counts as thrashing",
        "actors/runtime/residency.py:ReuseCounter.count_rebuild",
        "self.hits - self._hits_before < HITS * REBUILDS",
        "True",
        (f"{ROTATION}::test_a_runtime_that_seldom_rebuilds_a_session_logs_nothing",),
    ),
    Mutation(
        "many sessions: memory limits of outer cgroups are ignored",
        "actors/runtime/machine.py:_group_and_ancestor_limits",
        "(group, *group.parents)",
        "(group,)",
        (FITS,),
    ),
    Mutation(
        "many sessions: limits of cgroup version 1 are ignored",
        "actors/runtime/machine.py:_group_limits",
        '"memory" in controllers.split(",")',
        "False",
        (FITS,),
    ),
    Mutation(
        "many sessions: a runtime's memory exceeds the machine",
        "actors/runtime/residency.py:machine_limits",
        "usable_memory()",
        "None",
        (f"{ROTATION}::test_the_memory_limit_defaults_to_half_of_the_memory_of_the_machine",),
    ),
    Mutation(
        "many sessions: every runtime tunes the collector of its host program",
        "actors/runtime/runtime.py:Runtime._start_host",
        "TUNING.begin_tuning(self._gc)",
        'TUNING.begin_tuning("tuned")',
        (f"{COLLECTOR}::test_a_runtime_does_not_change_garbage_collection_unless_asked",),
    ),
    Mutation(
        "many sessions: thresholds are restored by the first of several runtimes",
        f"{GC}:CollectorTuning.end_tuning",
        "not self._users and gc.get_threshold() == self._set",
        "gc.get_threshold() == self._set",
        (f"{COLLECTOR}::test_a_runtime_does_not_change_garbage_collection_unless_asked",),
    ),
    Mutation(
        "many sessions: thresholds changed by the program are replaced",
        f"{GC}:CollectorTuning.end_tuning",
        "not self._users and gc.get_threshold() == self._set",
        "not self._users",
        (f"{COLLECTOR}::test_thresholds_set_by_the_program_during_tuning_are_kept",),
    ),
    Mutation(
        "many sessions: a disabled collector is enabled",
        f"{GC}:CollectorTuning.begin_tuning",
        "(first, second, third) if before[0] else before",
        "(first, second, third)",
        (f"{COLLECTOR}::test_tuning_never_lowers_a_threshold_or_enables_a_disabled_collector",),
    ),
    Mutation(
        "many sessions: a forked child keeps its parent's thresholds",
        f"{GC}:CollectorTuning.reset_after_fork",
        "self._users and gc.get_threshold() == self._set",
        "False",
        (f"{COLLECTOR}::test_a_forked_child_starts_with_the_original_thresholds",),
    ),
    Mutation(
        "many sessions: a collector that takes a third of the time is not reported",
        "actors/runtime/residency.py:Residency.add_active",
        "TUNING.advise(MANY_SESSIONS)",
        "pass",
        (f"{COLLECTOR}::test_a_runtime_with_many_sessions_logs_advice_to_tune_the_collector",),
    ),
    Mutation(
        "many sessions: the advice is repeated after it was followed",
        f"{GC}:CollectorTuning.advise",
        "gc.isenabled() and 0 < gc.get_threshold()[0] < LOW_THRESHOLD",
        "True",
        (f"{COLLECTOR}::test_advice_to_tune_the_collector_is_logged_once_and_only_if_useful",),
    ),
    Mutation(
        "many sessions: actors run does not tune the collector",
        "actors/cli/conversation.py:open_conversation",
        'Runtime(config, journal=storage, gc="tuned")',
        "Runtime(config, journal=storage)",
        (f"{COLLECTOR}::test_the_run_command_tunes_the_collector",),
    ),
    Mutation(
        "many sessions: actors stress does not tune the collector",
        "actors/cli/stress.py:run",
        """
        partial(
            *...,
            config=options.config,
            tools=load_tools(options.tools),
            allow_network=options.allow_network,
            gc="tuned",
            **load,
        )
        """,
        """
        partial(
            *...,
            config=options.config,
            tools=load_tools(options.tools),
            allow_network=options.allow_network,
            **load,
        )
        """,
        (f"{COLLECTOR}::test_the_stress_command_tunes_the_collector",),
    ),
    Mutation(
        "loop lag: concurrent asks all start in one round of the loop",
        "actors/runtime/delivery.py:SessionCaller._submit",
        "await self._lifecycle.host.wait_to_begin(self._lifecycle.spec.tenant)",
        "",
        (f"{LAG}::test_only_a_few_of_many_simultaneous_opens_and_asks_begin_between_two_event_loop_polls",),
    ),
    Mutation(
        "loop lag: concurrent opens all finish in one round of the loop",
        "actors/runtime/opening.py:SessionOpener._admit",
        "await self._host.wait_to_begin(tenant)",
        "",
        (f"{LAG}::test_only_a_few_of_many_simultaneous_opens_and_asks_begin_between_two_event_loop_polls",),
    ),
    Mutation(
        "loop lag: concurrent answers are all read in one round of the loop",
        "actors/transport/connection.py:Connection.receive",
        "await self._turnstile.wait_to_continue()",
        "",
        (f"{LAG}::test_only_a_few_of_many_simultaneous_answers_are_read_between_two_event_loop_polls",),
    ),
    Mutation(
        "loop lag: all waiting work runs in one round of the loop",
        f"{TURNSTILE}:Turnstile._admit",
        "queue and self._passed < limit",
        "queue",
        (f"{GATE}::test_only_a_few_tasks_compute_between_two_polls_of_the_event_loop",),
    ),
    Mutation(
        "loop lag: later work overtakes waiting work",
        f"{TURNSTILE}:Turnstile._admit",
        "queue.popleft()",
        "queue.pop()",
        (f"{GATE}::test_waiting_tasks_continue_in_the_order_of_their_arrival",),
    ),
    Mutation(
        "loop lag: cancelled waiting work takes the next one's slot",
        f"{TURNSTILE}:Turnstile._admit",
        """
        if not waiter.done():
            waiter.set_result(None)
            self._passed += 1
        """,
        """
        self._passed += 1
        if not waiter.done():
            waiter.set_result(None)
        """,
        (f"{GATE}::test_a_task_cancelled_while_it_waits_blocks_no_other_task",),
    ),
    Mutation(
        "loop lag: new work runs in its turn although other work has started",
        f"{TURNSTILE}:Turnstile.wait_to_begin",
        "self._new.append(share, waiter := self._loop.waiter())",
        "self._waiting.append(waiter := self._loop.waiter())",
        (f"{GATE}::test_continuing_work_runs_first_and_new_work_keeps_a_quarter_of_the_places",),
    ),
    Mutation(
        "loop lag: new work waits as long as other work continues",
        f"{TURNSTILE}:Turnstile._on_next_turn",
        "self._admit(self._new, 1 if is_behind else self._width // 4)",
        "",
        (f"{GATE}::test_continuing_work_runs_first_and_new_work_keeps_a_quarter_of_the_places",),
    ),
    Mutation(
        "loop lag: new work starts although messages wait",
        f"{TURNSTILE}:Turnstile._on_next_turn",
        "any(dispatcher.has_ready_actors for dispatcher in self._dispatchers)",
        "False",
        (
            f"{GATE}::test_new_work_keeps_one_place_while_messages_wait",
            "tests/provider/test_finishing_turns.py::test_among_many_turns_some_end_before_others_have_begun",
        ),
    ),
    Mutation(
        "loop lag: a tenant's new work waits for another tenant's",
        f"{TURNSTILE}:_NewWorkQueue.append",
        "self._queues.setdefault(share, deque())",
        "self._queues.setdefault('', deque())",
        (f"{GATE}::test_new_work_of_several_tenants_begins_in_turn",),
    ),
    Mutation(
        "loop lag: the longest lag is the last one",
        f"{TURNSTILE}:LagCounts.count_turn",
        "max(self.longest, seconds)",
        "seconds",
        (f"{GATE}::test_the_duration_of_event_loop_iterations_is_measured",),
    ),
    Mutation(
        "loop lag: a long log is folded in one step",
        "actors/journal/log.py:fold_in_slices",
        "await turnstile().yield_turn()",
        "pass",
        (f"{LAG}::test_a_long_log_is_folded_in_slices_to_the_same_session",),
    ),
    Mutation(
        "loop lag: a long log in memory is folded in one step",
        "actors/runtime/session_host.py:SessionHost.replay",
        "len(events) > SLICE",
        "False",
        (f"{LAG}::test_a_reactivated_session_with_a_long_log_is_folded_in_slices",),
    ),
)
