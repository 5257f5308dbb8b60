"""Mutations of the everyday API: texts, single questions, programs without an event loop."""

from tests.teeth.mutations.mutation import Mutation

TEXTS, SYNC = "tests/session/test_stream_text.py", "tests/runtime/test_sync.py"
CHAT = "tests/cli/test_chat_terminal.py"
QUEUE, FIELDS = "tests/session/test_queue_limits.py", "tests/config/test_named_fields.py"
STREAM, LOOP = "actors/session/streams.py:TextStream", "actors/kernel/loop_thread.py"
WEB = "docs/examples/with_uvicorn/conversations.py"
JOURNEY = "tests/journeys/test_web_servers.py::test_a_web_application_serves_stops_and_resumes_conversations"

MUTATIONS = (
    Mutation(
        "everyday: a text of a failed ask ends normally",
        f"{STREAM}.__anext__",
        "self._checked(event.result)",
        "event.result",
        (f"{TEXTS}::test_a_failed_ask_raises_after_the_text_that_preceded_it",),
    ),
    Mutation(
        "everyday: a slow reader misses a part of the text",
        f"{STREAM}._new_text",
        "self._with_separator(text, event.turn, event.round)",
        """\"\"""",
        (f"{TEXTS}::test_a_slow_reader_of_a_text_stream_misses_no_text",),
    ),
    Mutation(
        "everyday: the texts of two rounds are joined",
        f"{STREAM}._with_separator",
        'f"{BETWEEN}{text}" if is_further else text',
        "text",
        (f"{TEXTS}::test_the_text_of_all_rounds_arrives_in_pieces_without_thinking",),
    ),
    Mutation(
        "everyday: a text is requested in its reader's context",
        "actors/runtime/delivery.py:SessionCaller._submit",
        "Submit(packed, sink, variables, asked=said, output=form, key=named, own=ask_sink)",
        "Submit(packed, sink, copy_context(), asked=said, output=form, key=named, own=ask_sink)",
        (f"{TEXTS}::test_tools_see_the_context_variables_of_the_caller",),
    ),
    Mutation(
        "everyday: the settings of a text are checked when it is read",
        "actors/runtime/handle.py:Session.stream_text",
        "self._lifecycle.configuration.check_forced_tool(parse_settings(settings))",
        "",
        (f"{TEXTS}::test_stream_text_raises_for_bad_settings_at_once_and_for_bad_asks_on_iteration",),
    ),
    Mutation(
        "everyday: an interrupted caller leaves its ask running",
        "actors/sync/ask.py:InterruptibleAsk.interrupt",
        "await self._session.cancel()",
        "pass",
        (f"{SYNC}::test_an_interrupt_cancels_the_ask_and_closes_its_calls",),
    ),
    Mutation(
        "everyday: an interrupted waiting ask cancels another one",
        "actors/sync/ask.py:InterruptibleAsk.interrupt",
        "await stream.wait_begun()",
        "",
        (f"{SYNC}::test_an_interrupted_queued_ask_is_cancelled_when_it_begins",),
    ),
    Mutation(
        "everyday: a call from the loop's own thread waits for itself",
        f"{LOOP}:LoopThread._check_caller",
        "threading.current_thread() is self._thread",
        "False",
        (f"{SYNC}::test_a_sync_runtime_rejects_a_call_from_a_function_that_it_runs",),
    ),
    Mutation(
        "everyday: a call runs without its caller's context",
        f"{LOOP}:LoopThread.start",
        "context.run(self._start_call, function, call)",
        "self._start_call(function, call)",
        (f"{SYNC}::test_a_script_asks_and_streams_without_an_event_loop",),
    ),
    Mutation(
        "everyday: a call under another library's loop is attributed to that library",
        f"{LOOP}:LoopThread._start_call",
        "sniffio.current_async_library_cvar.set(self._backend)",
        "pass",
        (f"{SYNC}::test_the_sync_facade_works_in_a_thread_with_a_running_event_loop",),
    ),
    Mutation(
        "everyday: an exit exception of host code ends the loop",
        f"{LOOP}:_outcome_of",
        "return None, error",
        "raise",
        (f"{SYNC}::test_an_exception_raised_by_a_function_on_the_event_loop_reaches_its_caller",),
    ),
    Mutation(
        "everyday: an unreferenced runtime stays forever",
        "actors/sync/calls.py:BlockingCalls.__init__",
        "finalize(self, loop.stop).atexit = False",
        "",
        (f"{SYNC}::test_a_sync_runtime_without_references_is_closed",),
    ),
    Mutation(
        "everyday: a forked child waits for a thread that it does not have",
        f"{LOOP}:LoopThread._check_caller",
        "os.getpid() != self._process",
        "False",
        (f"{SYNC}::test_a_sync_runtime_rejects_calls_from_a_forked_process",),
    ),
    Mutation(
        "everyday: an ending program waits for its runtimes",
        f"{LOOP}:RunningLoops._stop_at_exit",
        "loop.stop()",
        "pass",
        (f"{SYNC}::test_a_program_that_ends_closes_its_runtime_and_forked_children_do_not",),
    ),
    Mutation(
        "everyday: a single question waits for the journal of the file",
        "actors/runtime/once.py:run",
        "MemoryStorage()",
        "None",
        (f"{SYNC}::test_sync_run_writes_no_journal",),
    ),
    Mutation(
        "everyday: all but one of concurrent first requests are refused",
        f"{WEB}:Conversations.answer",
        "self._runtime.open(TARGET, id=name, resume=True)",
        "self._runtime.open(TARGET, id=name)",
        (JOURNEY,),
    ),
    Mutation(
        "everyday: an open event stream keeps the server running",
        f"{WEB}:conversations",
        "call_at_signal(ending.set)",
        "",
        (JOURNEY,),
    ),
    Mutation(
        "everyday: an ask waits forever behind a turn that waits for an approval",
        "actors/session/session_actor.py:SessionActor._accept",
        "self._queue_limits.start_timers(self._live_context, (command,))",
        "pass",
        (f"{QUEUE}::test_the_timeout_of_an_ask_applies_while_it_waits_for_a_turn_with_a_pending_approval",),
    ),
    Mutation(
        "everyday: an ask that waited before the turn waits forever",
        "actors/session/session_actor.py:SessionActor._limit_queue",
        "self._queue_limits.start_timers(self._live_context, self._pending.waiting)",
        "",
        (f"{QUEUE}::test_the_timeout_of_a_queued_ask_applies_once_the_running_turn_waits_for_its_caller",),
    ),
    Mutation(
        "everyday: queue time counts although the turn ahead continues",
        "actors/session/session_actor.py:SessionActor._continue_turn",
        "self._queue_limits.stop_timers()",
        "",
        (f"{QUEUE}::test_time_in_the_queue_is_not_limited_once_the_turn_continues",),
    ),
    Mutation(
        "everyday: a misspelt argument is not compared with the known fields",
        "actors/core/schemas/arguments.py:_unknown_field_message",
        "close is None",
        "True",
        (f"{FIELDS}::test_a_misspelt_argument_is_reported_with_the_nearest_field",),
    ),
    Mutation(
        "everyday: a present field is suggested",
        "actors/core/schemas/arguments.py:_missing_fields",
        "name not in given and len(name) <= _FIELD",
        "len(name) <= _FIELD",
        (f"{FIELDS}::test_a_field_that_is_already_set_is_not_suggested",),
    ),
    Mutation(
        "everyday: a missing field is compared with all unknown fields",
        "actors/core/schemas/arguments.py:_likely_misspelling",
        "islice((each for each in unknown if len(each) <= _FIELD), _FIELDS)",
        "(each for each in unknown if len(each) <= _FIELD)",
        (f"{FIELDS}::test_comparisons_of_unknown_fields_are_bounded",),
    ),
    Mutation(
        "everyday: a long unknown field is compared with the known fields",
        "actors/core/schemas/arguments.py:_unknown_field_message",
        "len(name) <= _FIELD",
        "True",
        (f"{FIELDS}::test_comparisons_of_unknown_fields_are_bounded",),
    ),
    Mutation(
        "everyday: a misspelt key of a file is not reported with the missing key",
        "actors/config/complaints.py:_misspelling_hint",
        "owner == [*table]",
        "False",
        (f"{FIELDS}::test_a_missing_key_in_a_file_is_reported_together_with_a_misspelt_key",),
    ),
    Mutation(
        "everyday: the README's links are broken on a package index",
        "hatch_build.py:LongDescription.update",
        "long_description(readme)",
        "readme",
        ("tests/project/test_packaging.py::test_the_package_index_text_has_no_relative_link",),
    ),
    Mutation(
        "everyday: a cancelled turn drops the queued lines",
        "actors/cli/chat/loop.py:Chat._handle_interrupt",
        'self._terminal.print("  cancelling the turn; Ctrl-C again ends the process", "yellow")',
        "self._queued.clear()",
        (f"{CHAT}::test_queued_input_lines_are_sent_after_a_cancelled_turn",),
    ),
    Mutation(
        "everyday: the time for an approval counts as run time",
        "actors/cli/chat/view.py:ChatView.mark_waiting",
        "call.began = self._clock()",
        "pass",
        ("tests/cli/test_chat_view.py::test_time_spent_waiting_for_an_approval_is_not_run_time",),
    ),
)
