"""Mistakes in the actors and what they stand on."""

from tests.teeth.mutations.mutation import Mutation

ACTIVATION = "tests/test_activation.py"
LEAVING = "tests/kernel/test_leaving.py"
EDGE = "tests/test_tools_at_the_edge.py"
HOST = "tests/test_host_operations.py"
ISOLATION = "tests/test_isolation.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "switch: one asked for during a turn is applied at once",
        "actors/session.py",
        '        if action == "apply":\n',
        "        if True:\n",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "switch: one that was held is forgotten at the boundary",
        "actors/session.py",
        "        if held is not None:\n            event = settled",
        "        if False:\n            event = settled",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "runtime: a target takes any number of tools",
        "actors/runtime.py",
        "if most is not None and (count := len(self._tools)) > most:",
        "if most is not None and (count := len(self._tools)) > most and False:",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "session: put away while an event is being written",
        "actors/session.py",
        '        return self._phase in ("idle", "ended") and self._log.is_settled',
        '        return self._phase in ("idle", "ended")',
        (f"{ACTIVATION}::test_a_session_whose_event_is_being_written_keeps_its_actors",),
    ),
    Mutation(
        "session: put away while a tool still runs",
        "actors/activation.py",
        "        if self._executor.running:\n",
        "        if False:\n",
        (
            f"{ACTIVATION}::test_a_tool_that_still_runs_keeps_its_sessions_actors_and_its_late_result_is_taken",
        ),
    ),
    Mutation(
        "session: its lanes are forgotten when it is put away",
        "actors/activation.py",
        "        return Asleep(state, renderer.lanes, cooldowns=head.cooldowns or None)",
        "        return Asleep(state, None, cooldowns=head.cooldowns or None)",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: its ledger is the one it began with when it is put away",
        "actors/activation.py",
        "        state = replace(head.state, ledger=ledger.known.ledger.unread())",
        "        state = head.state",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: lanes that were dropped are begun anew",
        "actors/activation.py",
        "        if self._dropped and self._state.session:\n",
        "        if False:\n",
        (f"{ACTIVATION}::test_sessions_that_are_put_away_after_each_use_go_on_as_if_they_had_not_been",),
    ),
    Mutation(
        "session: to be put away is to end",
        "actors/activation.py",
        "        self._unwatch()  # these ending does not end the session\n",
        "",
        (ACTIVATION,),
    ),
    Mutation(
        "session: something is written behind its end",
        "actors/session.py",
        "        await self._refs.ledger.ask(Shut())\n",
        "",
        (
            "tests/test_runtime.py::test_what_a_tool_returns_while_its_session_is_closed_is_not_written_behind_the_end",
        ),
    ),
    Mutation(
        "provider: a whole answer is lost when its time runs out behind its end",
        "actors/provider.py",
        "if patience.cancelled_caught and not self._decoder.ended:",
        "if patience.cancelled_caught:",
        ("tests/test_provider.py",),
    ),
    Mutation(
        "provider: a refusal whose words break off is tried again",
        "actors/provider.py",
        "        with suppress(ProviderFailed):  # the status has said what matters\n",
        "        with suppress():\n",
        ("tests/test_provider.py",),
    ),
    Mutation(
        "provider: a blank line is the beginning of a stream",
        "actors/provider.py",
        "if not is_begun and (begun := chunk.lstrip()):",
        "if not is_begun and (begun := chunk.lstrip() or chunk):",
        ("tests/test_provider.py",),
    ),
    Mutation(
        "leaving: a native cancellation of the caller takes it back",
        "actors/kernel/host.py",
        "                    struck = raised\n",
        "                    struck = raised\n                    break\n",
        (f"{LEAVING}::test_a_native_cancel_at_any_await_of_entering_or_leaving_leaves_nothing_running",),
    ),
    Mutation(
        "leaving: the host does not leave when its loop is shut down",
        "actors/kernel/host.py",
        "            except self._parking.cancelled:  # the loop is being shut down\n",
        "            except ZeroDivisionError:\n",
        ("tests/test_shutdowns.py::test_a_runtime_that_is_never_left_keeps_no_process_alive[asyncio]",),
    ),
    Mutation(
        "leaving: a task that is cancelled before it begins is never heard of again",
        "actors/kernel/tasks.py",
        "    coroutine.send(None)\n    return coroutine",
        "    return coroutine",
        (
            "tests/kernel/test_tasks.py::test_a_task_that_is_cancelled_natively_before_it_begins_says_that_it_ended",
        ),
    ),
    Mutation(
        "leaving: a runtime that was never entered gives back threads",
        "actors/runtime.py",
        "        if self._may_use_threads:  #",
        "        if True:  #",
        (f"{HOST}::test_a_runtime_whose_entering_is_cancelled_uses_no_threads_and_gives_none_back",),
    ),
    Mutation(
        "leaving: foreign code that will not end is waited for",
        "actors/kernel/contained.py",
        "        for contained in tuple(self._running):\n            contained.drop()\n",
        "",
        (f"{LEAVING}::test_leaving_does_not_wait_for_foreign_code_that_will_not_end[asyncio-shields]",),
    ),
    Mutation(
        "tools: on trio one runs in the nursery of all",
        "actors/kernel/contained.py",
        "            self._nursery.start_soon(self._contain, run, name, context)\n",
        "            _enter(self._nursery, run, name, context)\n",
        (f"{LEAVING}::test_foreign_code_spoils_its_own_task_and_nothing_else",),
    ),
    Mutation(
        "tools: one that swallows its cancellation is told again at each of its waits",
        "actors/kernel/contained.py",
        "        self._inner.shield = True\n",
        "        pass\n",
        (f"{EDGE}::test_a_tool_that_swallows_its_cancellation_is_told_no_more_once_its_call_is_closed",),
    ),
    Mutation(
        "tools: a call that was closed gives its thread's place away",
        "actors/threads.py",
        "            place.is_stuck = True\n            self.stuck += 1\n",
        "            place.is_over = True\n            self.taken -= 1\n",
        (f"{EDGE}::test_a_call_that_was_closed_keeps_its_place_until_its_thread_returns",),
    ),
    Mutation(
        "tools: a call waits for a thread that nobody will give back",
        "actors/threads.py",
        "            if self.stuck >= limit:\n",
        "            if False:\n",
        (f"{EDGE}::test_a_call_that_finds_every_thread_held_by_closed_calls_is_refused_at_once",),
    ),
    Mutation(
        "tools: a call has begun in the log while it waits for a thread",
        "actors/calls.py",
        "        self.is_begun = self.tool.is_async or self._place is not None\n",
        "        self.is_begun = True\n",
        (f"{EDGE}::test_a_call_is_started_in_the_log_when_it_begins_and_not_while_it_waits_for_a_thread",),
    ),
    Mutation(
        "tools: what a plain function returned to be awaited is not stopped",
        "actors/calls.py",
        "        finally:\n            self._thread = None\n",
        "        finally:\n            pass\n",
        (f"{EDGE}::test_what_a_plain_function_returned_is_stopped_and_timed_as_an_async_tool_is",),
    ),
    Mutation(
        "tools: the caller's context variables do not reach them",
        "actors/driver.py",
        "RunBatch(step.calls, self._driver.variables, self._log.prelude())",
        "RunBatch(step.calls, prelude=self._log.prelude())",
        (f"{EDGE}::test_tools_see_the_context_variables_of_whoever_asked",),
    ),
    Mutation(
        "tools: what one raises is told to nobody but the model",
        "actors/calls.py",
        "        self._tell(error)\n        return Failed(self.call.id, quote(for_model(error)))",
        "        return Failed(self.call.id, quote(for_model(error)))",
        (f"{EDGE}::test_what_a_tool_raises_is_logged_with_its_traceback_and_reaches_the_hook",),
    ),
    Mutation(
        "tools: the model is told what the runtime says to their author",
        "actors/calls.py",
        "    if isinstance(error, KernelError | OwnSession):\n",
        "    if False:\n",
        (
            f"{ISOLATION}::test_a_tool_that_uses_its_own_session_is_told_that_it_must_not_and_the_model_is_not",
        ),
    ),
    Mutation(
        "tools: one may use its own session",
        "actors/executor.py",
        "        if here.system is system and here.session == session:\n",
        "        if False:\n",
        (
            f"{ISOLATION}::test_a_tool_below_a_session_cannot_close_it_and_no_tool_asks_a_session_beside_its_own",
        ),
    ),
    Mutation(
        "tools: an approval is any answer that is true",
        "actors/calls.py",
        "        return answer is True\n",
        "        return bool(answer)\n",
        (f"{EDGE}::test_only_a_plain_yes_approves_and_whatever_an_approval_raises_ends_its_own_call",),
    ),
    Mutation(
        "runtime: a close ends with its caller",
        "actors/activation.py",
        "        await self._closing.wait()\n\n    async def settle",
        "        try:\n            await self._closing.wait()\n        except BaseException:\n"
        "            await self._end()\n            raise\n\n    async def settle",
        (f"{HOST}::test_a_close_whose_caller_is_cancelled_at_any_moment_leaves_no_turn_open",),
    ),
    Mutation(
        "runtime: leaving stops the actors of a turn in flight",
        "actors/activation.py",
        "                tasks.start_soon(activation.settle)\n",
        "                pass\n",
        (f"{HOST}::test_leaving_closes_the_turns_in_flight_in_the_log",),
    ),
    Mutation(
        "runtime: a forgotten log is kept",
        "actors/runtime.py",
        "                await host.journal.ask(Erase(id))\n",
        "                pass\n",
        (f"{HOST}::test_a_session_that_is_forgotten_has_ended_and_its_log_is_gone",),
    ),
    Mutation(
        "runtime: a call from a foreign loop is let in",
        "actors/activation.py",
        "        if running_loop() is not self.loop:\n",
        "        if False:\n",
        (f"{HOST}::test_a_call_from_another_thread_or_loop_is_a_typed_error_at_once",),
    ),
    Mutation(
        "session: a cancel that came too late says that it cancelled",
        "actors/session.py",
        "            reply.send(is_cancelled)\n",
        "            reply.send(True)\n",
        (f"{HOST}::test_a_cancel_that_came_too_late_says_so",),
    ),
    Mutation(
        "provider: a retry that waits keeps its place",
        "actors/provider.py",
        "            async with places:\n                failure = await self._attempt()\n",
        "            await places.acquire()\n            failure = await self._attempt()\n",
        ("tests/test_provider.py::test_a_retry_that_waits_gives_its_place_to_others",),
    ),
)
