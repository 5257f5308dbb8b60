"""Mistakes with thousands of sessions in one process: what stays in memory, the collector, the lag of the loop."""

from tests.teeth.mutations.mutation import Mutation

ROTATION, MACHINE = "tests/runtime/test_rotation.py", "tests/core/test_machine.py"
HOST, ACTIVATION = "actors/runtime/session_host.py", "actors/runtime/lifecycle.py"
THRASHES = f"{ROTATION}::test_a_host_whose_memory_is_too_small_for_its_sessions_says_so_once"
FITS = f"{MACHINE}::test_the_memory_of_a_process_is_the_least_that_its_machine_and_its_containers_have"
COUNTED = f"{ROTATION}::test_uses_that_find_a_session_in_memory_and_those_that_make_it_again_are_counted"
LAG, GATE = "tests/runtime/test_loop_lag.py", "tests/kernel/test_turnstile.py"
TURNSTILE = "actors/kernel/turnstile.py"
COLLECTOR, GC = "tests/runtime/test_collector.py", "actors/runtime/collector.py"

MUTATIONS = (
    Mutation(
        "many sessions: those without actors keep 16 MiB, however much memory there is",
        "actors/runtime/residency.py:Residency.add_folded",
        "self.evict_folds(self.limits.memory)",
        "self.evict_folds(16 * 1024 * 1024)",
        (
            f"{ROTATION}::"
            "test_sessions_that_take_turns_are_not_made_of_their_logs_again_while_there_is_memory",
        ),
    ),
    Mutation(
        "many sessions: actors are put away although others could make room",
        "actors/runtime/residency.py:Residency._make_room",
        """
self.evict_folds(most)
for oldest in ...:
    ...
        """,
        """
        for oldest in ...:
            ...
        """,
        (f"{ROTATION}::test_what_has_no_actors_makes_room_before_what_has_some",),
    ),
    Mutation(
        "many sessions: the first use of a session counts as one of a session in memory",
        "actors/runtime/lifecycle.py:SessionLifecycle.activate",
        "self._resolver is None",
        "True",
        (COUNTED,),
    ),
    Mutation(
        "many sessions: what had to make room is taken for what was never made",
        "actors/runtime/lifecycle.py:SessionLifecycle.activate",
        "self.host.residency.reuse.rebuild()",
        "pass",
        (COUNTED, THRASHES),
    ),
    Mutation(
        "many sessions: a host that thrashes says so again and again",
        "actors/runtime/reuse.py:Reuse.rebuild",
        "self._is_noted or self.rebuilds % REBUILDS",
        "self.rebuilds % REBUILDS",
        (THRASHES,),
    ),
    Mutation(
        "many sessions: any rebuilds are taken for thrashing",
        "actors/runtime/reuse.py:Reuse.rebuild",
        "self.hits - self._hits_before < HITS * REBUILDS",
        "True",
        (f"{ROTATION}::test_a_host_that_seldom_makes_a_session_again_says_nothing",),
    ),
    Mutation(
        "many sessions: the limits of groups around the process's own do not count",
        "actors/runtime/machine.py:_limits_above",
        "(group, *group.parents)",
        "(group,)",
        (FITS,),
    ),
    Mutation(
        "many sessions: the limits of version 1 do not count",
        "actors/runtime/machine.py:_limits",
        '"memory" in controllers.split(",")',
        "False",
        (FITS,),
    ),
    Mutation(
        "many sessions: the memory of a runtime does not fit the machine",
        "actors/runtime/limits.py:fitted_limits",
        "usable_memory()",
        "None",
        (f"{ROTATION}::test_the_memory_of_a_runtime_fits_the_machine_if_nothing_else_is_said",),
    ),
    Mutation(
        "many sessions: any runtime tunes the collector of the program that embeds it",
        "actors/runtime/runtime.py:Runtime._begin",
        "TUNING.enter(self._gc)",
        'TUNING.enter("tuned")',
        (f"{COLLECTOR}::test_a_runtime_leaves_the_collector_alone_unless_it_is_told_otherwise",),
    ),
    Mutation(
        "many sessions: thresholds come back with the first of several runtimes",
        f"{GC}:CollectorTuning.leave",
        "not self._users and gc.get_threshold() == self._set",
        "gc.get_threshold() == self._set",
        (f"{COLLECTOR}::test_a_runtime_leaves_the_collector_alone_unless_it_is_told_otherwise",),
    ),
    Mutation(
        "many sessions: thresholds that the program set meanwhile are replaced",
        f"{GC}:CollectorTuning.leave",
        "not self._users and gc.get_threshold() == self._set",
        "not self._users",
        (f"{COLLECTOR}::test_thresholds_that_the_program_sets_meanwhile_stay",),
    ),
    Mutation(
        "many sessions: a collector that is off is switched on",
        f"{GC}:CollectorTuning.enter",
        "(first, second, third) if before[0] else before",
        "(first, second, third)",
        (f"{COLLECTOR}::test_no_threshold_is_lowered_and_a_collector_that_is_off_stays_off",),
    ),
    Mutation(
        "many sessions: a forked child keeps the thresholds of its parent's runtimes",
        f"{GC}:CollectorTuning.forget_parent",
        "self._users and gc.get_threshold() == self._set",
        "False",
        (f"{COLLECTOR}::test_a_forked_child_begins_with_the_thresholds_from_before",),
    ),
    Mutation(
        "many sessions: nobody is told that the collector takes a third of the time",
        "actors/runtime/residency.py:Residency.add_active",
        "TUNING.advise(CROWD)",
        "pass",
        (f"{COLLECTOR}::test_a_runtime_with_many_sessions_gives_the_advice",),
    ),
    Mutation(
        "many sessions: the advice is given to who has followed it",
        f"{GC}:CollectorTuning.advise",
        "gc.isenabled() and 0 < gc.get_threshold()[0] < LOW",
        "True",
        (f"{COLLECTOR}::test_the_advice_is_given_once_and_only_where_it_helps",),
    ),
    Mutation(
        "many sessions: actors run leaves the collector alone",
        "actors/cli/conversation.py:conversation",
        'Runtime(config, journal=storage, gc="tuned")',
        "Runtime(config, journal=storage)",
        (f"{COLLECTOR}::test_actors_run_tunes_it",),
    ),
    Mutation(
        "many sessions: actors stress leaves the collector alone",
        "actors/cli/stress.py:run",
        """
        partial(
            *...,
            config=options.config,
            tools=tools(options.tools),
            allow_network=options.allow_network,
            gc="tuned",
            **load,
        )
        """,
        """
        partial(
            *...,
            config=options.config,
            tools=tools(options.tools),
            allow_network=options.allow_network,
            **load,
        )
        """,
        (f"{COLLECTOR}::test_actors_stress_tunes_it",),
    ),
    Mutation(
        "loop lag: all sessions that are asked together begin before the loop comes round",
        "actors/runtime/delivery.py:SessionCaller._submit",
        "await self._lifecycle.host.begin(self._lifecycle.spec.tenant)",
        "",
        (f"{LAG}::test_of_sessions_that_are_opened_and_asked_together_few_begin_between_two_polls",),
    ),
    Mutation(
        "loop lag: all sessions that are opened together are so before the loop comes round",
        "actors/runtime/opening.py:SessionOpener._admit",
        "await self._host.begin(tenant)",
        "",
        (f"{LAG}::test_of_sessions_that_are_opened_and_asked_together_few_begin_between_two_polls",),
    ),
    Mutation(
        "loop lag: all answers that arrive together are read before the loop comes round",
        "actors/transport/connection.py:Connection.receive",
        "await turnstile().enter()",
        "",
        (f"{LAG}::test_of_answers_that_arrive_together_few_are_read_between_two_polls",),
    ),
    Mutation(
        "loop lag: all who wait go through at once when the loop comes round",
        f"{TURNSTILE}:Turnstile._let_through",
        "queue and self._passed < most",
        "queue",
        (f"{GATE}::test_few_tasks_compute_between_two_polls_and_each_in_its_turn",),
    ),
    Mutation(
        "loop lag: who comes later goes ahead of those who wait",
        f"{TURNSTILE}:Turnstile._let_through",
        "queue.popleft()",
        "queue.pop()",
        (f"{GATE}::test_who_waits_goes_through_in_the_order_in_which_he_came",),
    ),
    Mutation(
        "loop lag: who was cancelled while he waited takes the place of the next",
        f"{TURNSTILE}:Turnstile._let_through",
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
        (f"{GATE}::test_who_is_cancelled_while_he_waits_holds_up_nobody",),
    ),
    Mutation(
        "loop lag: new work passes in its turn, whatever has begun already",
        f"{TURNSTILE}:Turnstile.begin",
        "self._new.append(share, waiter := self._loop.waiter())",
        "self._waiting.append(waiter := self._loop.waiter())",
        (f"{GATE}::test_work_that_goes_on_passes_before_new_work_which_keeps_a_quarter_of_the_places",),
    ),
    Mutation(
        "loop lag: new work waits for as long as other work goes on",
        f"{TURNSTILE}:Turnstile._turn",
        "self._let_through(self._new, 1 if is_behind else self._width // 4)",
        "",
        (f"{GATE}::test_work_that_goes_on_passes_before_new_work_which_keeps_a_quarter_of_the_places",),
    ),
    Mutation(
        "loop lag: new work begins as if no messages waited",
        f"{TURNSTILE}:Turnstile._turn",
        "any(dispatcher.is_behind for dispatcher in self._dispatchers)",
        "False",
        (
            f"{GATE}::test_where_messages_wait_new_work_keeps_one_place",
            "tests/provider/test_finishing_turns.py::test_in_a_crowd_turns_end_while_others_have_not_begun",
        ),
    ),
    Mutation(
        "loop lag: the new work of one tenant waits for that of another",
        f"{TURNSTILE}:_NewWork.append",
        "self._queues.setdefault(share, deque())",
        "self._queues.setdefault('', deque())",
        (f"{GATE}::test_tenants_begin_in_turn",),
    ),
    Mutation(
        "loop lag: the longest is the last one",
        f"{TURNSTILE}:LagCounts.note",
        "max(self.longest, seconds)",
        "seconds",
        (f"{GATE}::test_what_the_loop_takes_to_come_round_is_counted",),
    ),
    Mutation(
        "loop lag: a long log is folded in one go",
        "actors/journal/log.py:fold_in_slices",
        "await turnstile().give_way()",
        "pass",
        (f"{LAG}::test_a_long_log_is_folded_slice_by_slice_to_the_same_session",),
    ),
    Mutation(
        "loop lag: a long log in memory is folded in one go",
        "actors/runtime/session_host.py:SessionHost.replay",
        "len(events) > SLICE",
        "False",
        (f"{LAG}::test_a_session_with_a_long_log_that_is_used_again_is_folded_slice_by_slice",),
    ),
)
