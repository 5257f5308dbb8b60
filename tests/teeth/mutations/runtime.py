"""Mutations of the actors and their foundations."""

from tests.teeth.mutations.mutation import Mutation

ACTIVATION = "tests/runtime/test_activation.py"
LEAVING = "tests/kernel/test_leaving.py"
EDGE = "tests/scheduler/test_tools_at_the_edge.py"
HOST = "tests/runtime/test_host_operations.py"
ISOLATION = "tests/scheduler/test_isolation.py"
OAUTH = "tests/provider/test_oauth_accounts.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "runtime: a session that releases its log at the journal's end is reported as a crash",
        "actors/runtime/session_host.py:SessionHost._release",
        """
        with suppress(ActorStopped, ShuttingDown):
            await self.journal.send(command)
        """,
        "await self.journal.send(command)",
        (
            "tests/runtime/test_host_operations.py::test_no_actor_crashes_if_the_runtime_exits_while_sessions_release_their_logs",
        ),
    ),
    Mutation(
        "refusal: a provider's calls are named by their native ids",
        "actors/core/lanes/lane.py:refusal_report",
        'used.get(word) or used.get(word.rstrip(".:"))',
        "word",
        ("tests/session/test_refusals.py",),
    ),
    Mutation(
        "refusal: measures taken for a request are not logged",
        "actors/telemetry/logger.py:transcript_refused",
        "emit(*..., **..., dedupe=...)",
        "emit(*..., **..., duplicates=...)",
        ("tests/session/test_refusals.py",),
    ),
    Mutation(
        "driver: a cut answer is complete",
        "actors/session/inflight.py:AskTotals.record_round",
        "(*..., generated.cut)",
        "(*..., None)",
        ("tests/session/test_cut_answers.py",),
    ),
    Mutation(
        "provider: parts omitted from an answer are not reported",
        "actors/provider/rounds.py:Round._report_left_out",
        "tuple(counts.items())",
        "()",
        ("tests/session/test_cut_answers.py",),
    ),
    Mutation(
        "preview: a call about to run is lost",
        "actors/core/session/state.py:SessionState.ledger_with_open_calls",
        "ledger.apply(*coming)",
        "ledger",
        ("tests/session/test_while_tools_run.py",),
    ),
    Mutation(
        "log: a message is decoded to be stored",
        "actors/core/session/state.py:SessionState._end_round",
        "event.message is None",
        """event.message is None or not __import__(
            "actors.core.values.packed", fromlist=["unpack"]
        ).unpack(event.message).blocks""",
        ("tests/core/test_one_form.py",),
    ),
    Mutation(
        "switch: a switch requested during a turn is applied at once",
        "actors/session/held_changes.py:HeldChanges.switch",
        "at_once",
        "True",
        ("tests/session/test_switching.py",),
    ),
    Mutation(
        "switch: a held switch is not applied at the end of the ask",
        "actors/session/held_changes.py:HeldChanges._next_event",
        "resolve_switch(held, self._active_config.resolver.pool)",
        'SwitchFailed(held, "")',
        ("tests/session/test_switching.py",),
    ),
    Mutation(
        "runtime: a target accepts any number of tools",
        "actors/provider/resolver.py:Resolver._check_tool_count",
        "most is not None and ...",
        "most is not None and ... and False",
        ("tests/session/test_switching.py",),
    ),
    Mutation(
        "session: passivated while an event is being written",
        "actors/session/session_actor.py:SessionActor.idle",
        "rests and self._log.is_settled",
        "rests",
        (f"{ACTIVATION}::test_a_session_keeps_its_actors_while_its_event_is_written",),
    ),
    Mutation(
        "session: passivated while a tool still runs",
        "actors/runtime/session_actors.py:SessionActors.passivate",
        "self._executor.running",
        "False",
        (f"{ACTIVATION}::test_a_session_keeps_its_actors_while_a_tool_still_runs_after_a_cancel",),
    ),
    Mutation(
        "session: its lanes are forgotten on passivation",
        "actors/runtime/session_actors.py:SessionActors.passivate",
        "Replay(*..., renderer.lanes)",
        "Replay(*..., Lanes(self._host.backends.rules))",
        (f"{ACTIVATION}::test_sessions_continue_normally_after_passivation",),
    ),
    Mutation(
        "session: its ledger is reset on passivation",
        "actors/runtime/session_actors.py:SessionActors.passivate",
        "Replay(replace(self.state, ledger=ledger.current.ledger), *...)",
        "Replay(self.state, *...)",
        (f"{ACTIVATION}::test_sessions_continue_normally_after_passivation",),
    ),
    Mutation(
        "session: dropped lanes start again",
        "actors/runtime/session_host.py:SessionHost.replay",
        "rebuild(events, self.backends.rules)",
        "(rebuild(events, self.backends.rules)[0], rebuild((), self.backends.rules)[1])",
        (f"{ACTIVATION}::test_sessions_continue_normally_after_passivation",),
    ),
    Mutation(
        "session: passivation ends it",
        "actors/kernel/system.py:System.passivate",
        "cell.watchers = None",
        "",
        (ACTIVATION,),
    ),
    Mutation(
        "session: an event follows its end",
        "actors/session/child_tasks.py:ChildTasks._close_log",
        "await self._refs.ledger.ask(StopRecording())",
        "",
        (
            "tests/runtime/test_runtime.py::test_a_result_that_arrives_during_a_close_is_not_logged_after_the_closed_event",
        ),
    ),
    Mutation(
        "provider: a complete answer is lost when its timeout passes after its end",
        "actors/provider/rounds.py:Round._send_and_read",
        "scope.cancelled_caught and (not self._decoder.ended)",
        "scope.cancelled_caught",
        ("tests/provider/test_provider.py",),
    ),
    Mutation(
        "provider: a refusal with a broken body is retried",
        "actors/provider/rounds.py:Round._read_rejection",
        "suppress(ProviderFailed)",
        "suppress()",
        ("tests/provider/test_provider.py",),
    ),
    Mutation(
        "provider: a blank line starts a stream",
        "actors/provider/rounds.py:Round._read_answer",
        "chunk.lstrip()",
        "chunk.lstrip() or chunk",
        ("tests/provider/test_provider.py",),
    ),
    Mutation(
        "leaving: native cancellation of the caller revokes it",
        "actors/kernel/system.py:SystemHost.shut_down",
        "struck = raised",
        """
        struck = raised
        break
        """,
        (f"{LEAVING}::test_a_native_cancel_at_any_await_of_an_actor_system_leaves_nothing_running",),
    ),
    Mutation(
        "leaving: the host does not leave when its loop is shut down",
        "actors/kernel/system.py:SystemHost._run",
        "self._loop.cancelled",
        "ZeroDivisionError",
        (
            "tests/commands/test_shutdowns.py::test_a_runtime_that_is_never_exited_does_not_keep_the_process_alive[asyncio]",
        ),
    ),
    Mutation(
        "leaving: a task cancelled before its start is never reported",
        "actors/kernel/tasks.py:prime",
        "coroutine.send(None)",
        "",
        (
            "tests/kernel/test_tasks.py::test_a_task_that_was_cancelled_natively_before_it_began_reports_its_end",
        ),
    ),
    Mutation(
        "leaving: a runtime that was never entered returns threads",
        "actors/runtime/runtime.py:Runtime._release_resources",
        """
        if self._may_use_threads:
            ...
        """,
        """
        if True:
            ...
        """,
        (f"{HOST}::test_a_runtime_cancelled_while_entering_releases_its_threads",),
    ),
    Mutation(
        "leaving: foreign code that does not end is waited for",
        "actors/kernel/tasks.py:ContainedTasks.close",
        """
        for contained in tuple(self._running):
            contained.close_coroutine()
        """,
        "",
        (
            f"{LEAVING}::test_exiting_an_actor_system_does_not_wait_for_host_code_that_never_ends[asyncio-shields]",
        ),
    ),
    Mutation(
        "tools: on trio, a tool runs in the shared nursery",
        "actors/kernel/tasks.py:ContainedTasks.start",
        "contextvars.Context().run(self._nursery.start_soon, self._run_containing_task, *...)",
        "_start_in_nursery(self._nursery, *...)",
        (f"{LEAVING}::test_damage_that_host_code_does_to_its_task_affects_no_other_task",),
    ),
    Mutation(
        "tools: a tool that swallows cancellation is cancelled again at each wait",
        "actors/kernel/tasks.py:ContainedTask.detach",
        "self._inner.shield = True",
        "pass",
        (f"{EDGE}::test_a_tool_that_swallows_cancellation_is_not_woken_after_its_call_is_closed",),
    ),
    Mutation(
        "tools: a closed call gives away its thread's slot",
        "actors/scheduler/threads.py:Threads._mark_abandoned",
        """
        slot.is_stuck = True
        self.stuck += 1
        """,
        """
        slot.is_over = True
        self.taken -= 1
        """,
        (f"{EDGE}::test_a_closed_call_keeps_its_thread_slot_until_its_tool_returns",),
    ),
    Mutation(
        "tools: a call waits for a thread that is never returned",
        "actors/scheduler/threads.py:Threads.request_slot",
        "self.stuck >= request.limit",
        "False",
        (f"{EDGE}::test_a_call_is_rejected_if_tools_of_closed_calls_block_every_thread",),
    ),
    Mutation(
        "tools: a call waiting for a thread counts as started in the log",
        "actors/scheduler/calls.py:CallExecution.try_acquire",
        "self.tool.is_async or self._slot is not None",
        "True",
        (f"{EDGE}::test_a_call_that_waits_for_a_thread_is_not_logged_as_started",),
    ),
    Mutation(
        "tools: an awaitable returned by a plain function is not stopped",
        "actors/scheduler/calls.py:CallExecution._run_in_thread",
        "self._thread = None",
        "pass",
        (f"{EDGE}::test_an_awaitable_returned_by_a_function_is_subject_to_its_timeout",),
    ),
    Mutation(
        "tools: the caller's context variables do not reach them",
        "actors/session/steps.py:TurnSteps._run_batch",
        "RunBatch(step.calls, self._ask.variables, *..., counts=self.backend.counts)",
        "RunBatch(step.calls, type(self._ask.variables)(), *..., counts=self.backend.counts)",
        (f"{EDGE}::test_tools_see_the_context_variables_of_the_caller_of_their_ask",),
    ),
    Mutation(
        "tools: only the model sees an exception of a tool",
        "actors/scheduler/calls.py:CallExecution._failure_event",
        "self._report_error(error)",
        "",
        (f"{EDGE}::test_an_exception_of_a_tool_is_logged_and_passed_to_the_hook",),
    ),
    Mutation(
        "tools: the model sees the advice for a tool's author",
        "actors/scheduler/failures.py:_describe_error",
        "isinstance(error, KernelError | ReentrantCall)",
        "False",
        (f"{ISOLATION}::test_a_tool_that_uses_its_own_session_gets_an_error_without_details",),
    ),
    Mutation(
        "tools: a tool may use its own session",
        "actors/scheduler/executor.py:is_called_from_tool",
        "session in sessions_in_call(system)",
        "False",
        (f"{ISOLATION}::test_a_tool_cannot_close_a_parent_session_or_ask_a_sibling",),
    ),
    Mutation(
        "tools: any truthy answer is an approval",
        "actors/scheduler/calls.py:CallExecution._run_to_end",
        "self._needs_approval and (answer := (await self._ask_approval())) is not True",
        "self._needs_approval and (not (answer := (await self._ask_approval())))",
        (f"{EDGE}::test_an_approval_hook_approves_only_with_true_and_its_error_affects_one_call",),
    ),
    Mutation(
        "runtime: a close ends with its caller",
        "actors/runtime/lifecycle.py:SessionLifecycle.close",
        "await closing.result()",
        """
try:
    await closing.result()
except Exception:
    raise
except BaseException:
    from actors.runtime.session_actors import _stop
    await _stop(self)
    raise
        """,
        (f"{HOST}::test_a_close_cancelled_at_any_moment_leaves_no_turn_open",),
    ),
    Mutation(
        "runtime: leaving stops the actors of a running turn",
        "actors/runtime/session_host.py:SessionHost.cancel_asks",
        "tasks.start_soon(session.interrupt_asks)",
        "pass",
        (f"{HOST}::test_exiting_the_runtime_closes_running_turns_in_the_log",),
    ),
    Mutation(
        "runtime: a request's head is kept by its first caller",
        "actors/adapters/settings.py:fit_settings",
        "def fit_settings(settings: Settings, dialect: Dialect) -> ...: ...",
        """
        @__import__("functools").lru_cache
        def fit_settings(settings: Settings, dialect: Dialect) -> ...: ...
        """,
        (f"{HOST}::test_no_text_of_a_deleted_session_stays_in_memory",),
    ),
    Mutation(
        "runtime: a nursery for tools keeps the context of its first tool",
        "actors/kernel/tasks.py:ContainedTasks._run_containing_task",
        "del run, context",
        "del run",
        (f"{HOST}::test_no_text_of_a_deleted_session_stays_in_memory",),
    ),
    Mutation(
        "runtime: the evidence of a deleted session is kept",
        "actors/runtime/journal_admin.py:JournalAdmin._drop_refusals",
        """
        self._refusals.clear()
        self._refusals.extend(kept)
        """,
        "del kept",
        (
            "tests/session/test_refusals.py::test_a_transcript_refused_by_the_strict_rules_names_the_calls_of_the_history",
        ),
    ),
    Mutation(
        "runtime: a deleted log is kept",
        "actors/runtime/deletion.py:delete_logs",
        "await journal.ask(DeleteLog(name))",
        "pass",
        (f"{HOST}::test_deleting_a_session_closes_the_session_and_removes_its_log",),
    ),
    Mutation(
        "runtime: a call from a foreign loop is accepted",
        "actors/runtime/session_host.py:SessionHost.check_event_loop",
        "running_loop() is not self.loop",
        "False",
        (f"{HOST}::test_a_call_from_another_thread_or_loop_raises_wrong_event_loop",),
    ),
    Mutation(
        "session: a late cancel reports success",
        "actors/session/session_actor.py:SessionActor._deliver_result",
        "reply.send(is_cancelled)",
        "reply.send(True)",
        (f"{HOST}::test_cancelling_an_ask_that_has_just_ended_returns_false",),
    ),
    Mutation(
        "headers: a value repeated by a server is shown",
        "actors/provider/rounds.py:Round.run",
        "without_secrets(failure, (*self._auth_headers, *self._extra_headers))",
        "without_secrets(failure, self._auth_headers)",
        (f"{OAUTH}::test_a_header_that_a_server_echoes_is_removed_from_the_result",),
    ),
    Mutation(
        "headers: defaults are sent beside the caller's values",
        "actors/provider/attempts.py:merged_headers",
        """
        if not overrides:
            return defaults
        """,
        """
        if True:
            return (*defaults, *overrides)
        """,
        (f"{OAUTH}::test_a_header_is_resolved_per_request_and_replaces_the_default",),
    ),
    Mutation(
        "token: a refused token is sent again",
        "actors/provider/configured_credentials.py:Tokens.record_rejection",
        "self._until = -math.inf",
        "pass",
        (f"{OAUTH}::test_five_turns_of_parallel_calls_survive_an_expiring_token",),
    ),
)
