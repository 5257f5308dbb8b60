"""The API for every day: texts, one question, programs without an event loop."""

from tests.teeth.mutations.mutation import Mutation

TEXTS, SYNC = "tests/session/test_stream_text.py", "tests/runtime/test_sync.py"
CHAT = "tests/cli/test_chat_terminal.py"
QUEUE, FIELDS = "tests/session/test_queue_limits.py", "tests/config/test_named_fields.py"
STREAM, LOOP = "actors/session/streams.py:TextStream", "actors/kernel/loop_thread.py"
WEB = "docs/examples/with_uvicorn/conversations.py"
JOURNEY = (
    "tests/journeys/test_web_servers.py::test_a_web_application_serves_conversations_ends_at_once_and_goes_on"
)

MUTATIONS = (
    Mutation(
        "everyday: a text whose ask fails ends as if all were well",
        f"{STREAM}.__anext__",
        "self._checked(event.result)",
        "event.result",
        (f"{TEXTS}::test_a_failed_ask_raises_after_the_text_that_came_before",),
    ),
    Mutation(
        "everyday: a slow reader misses a part of the text",
        f"{STREAM}._text",
        "self._separate(text, event.turn, event.round)",
        """\"\"""",
        (f"{TEXTS}::test_a_reader_that_is_too_slow_misses_no_text",),
    ),
    Mutation(
        "everyday: the texts of two rounds run together",
        f"{STREAM}._separate",
        'f"{BETWEEN}{text}" if is_further else text',
        "text",
        (f"{TEXTS}::test_the_text_of_all_rounds_arrives_in_pieces_and_thinking_does_not",),
    ),
    Mutation(
        "everyday: a text is asked for with the variables of its reader",
        "actors/runtime/delivery.py:SessionCaller._submit",
        "Submit(packed, sink, variables, asked=said, output=form)",
        "Submit(packed, sink, copy_context(), asked=said, output=form)",
        (f"{TEXTS}::test_tools_see_the_context_variables_of_the_call",),
    ),
    Mutation(
        "everyday: settings of a text are checked when it is read",
        "actors/runtime/handle.py:Session.stream_text",
        "self._lifecycle.configuration.check(parse_settings(settings))",
        "",
        (f"{TEXTS}::test_settings_are_checked_at_once_and_what_refuses_the_ask_is_raised_in_the_loop",),
    ),
    Mutation(
        "everyday: an interrupted caller leaves its ask running",
        "actors/sync.py:InterruptibleAsk.interrupt",
        "await self._session.cancel()",
        "pass",
        (f"{SYNC}::test_an_interrupt_of_the_caller_cancels_the_ask_and_closes_its_calls",),
    ),
    Mutation(
        "everyday: an interrupted ask that waits has another cancelled",
        "actors/sync.py:InterruptibleAsk.interrupt",
        "await stream.wait_begun()",
        "",
        (f"{SYNC}::test_an_interrupted_ask_that_waits_is_cancelled_when_it_begins_and_no_other_is",),
    ),
    Mutation(
        "everyday: a call from the loop's own thread waits for itself",
        f"{LOOP}:LoopThread._check",
        "threading.current_thread() is self._thread",
        "False",
        (f"{SYNC}::test_a_call_from_the_loop_of_a_runtime_is_refused",),
    ),
    Mutation(
        "everyday: a call runs without the variables of its caller",
        f"{LOOP}:LoopThread.start",
        "context.run(self._begin, function, call)",
        "self._begin(function, call)",
        (f"{SYNC}::test_a_script_asks_and_streams_without_an_event_loop",),
    ),
    Mutation(
        "everyday: a call below another library's loop is taken for one of that library",
        f"{LOOP}:LoopThread._begin",
        "sniffio.current_async_library_cvar.set(self._backend)",
        "pass",
        (f"{SYNC}::test_it_works_below_a_loop_that_runs_in_the_callers_thread",),
    ),
    Mutation(
        "everyday: an exit exception of host code ends the loop",
        f"{LOOP}:_outcome",
        "return None, error",
        "raise",
        (f"{SYNC}::test_what_a_function_on_the_loop_raises_is_raised_and_the_loop_goes_on",),
    ),
    Mutation(
        "everyday: a runtime that nobody has stays for ever",
        "actors/sync.py:BlockingRuntime.__init__",
        "finalize(self, self._loop.stop).atexit = False",
        "",
        (f"{SYNC}::test_a_runtime_that_nobody_has_any_more_is_left",),
    ),
    Mutation(
        "everyday: a forked child waits for a thread that it does not have",
        f"{LOOP}:LoopThread._check",
        "os.getpid() != self._process",
        "False",
        (f"{SYNC}::test_a_forked_process_is_refused",),
    ),
    Mutation(
        "everyday: a program that ends waits for its runtimes",
        f"{LOOP}:RunningLoops._stop_at_exit",
        "loop.stop()",
        "pass",
        (f"{SYNC}::test_a_program_that_ends_leaves_its_runtime_in_order_and_a_forked_child_has_none",),
    ),
    Mutation(
        "everyday: one question waits in the journal of the file",
        "actors/runtime/once.py:run",
        "MemoryStorage()",
        "None",
        (f"{SYNC}::test_one_question_is_kept_nowhere",),
    ),
    Mutation(
        "everyday: of first requests that come at once all but one are refused",
        f"{WEB}:Conversations.answer",
        "self._runtime.open(TARGET, id=name, resume=True)",
        "self._runtime.open(TARGET, id=name)",
        (JOURNEY,),
    ),
    Mutation(
        "everyday: an open stream of events keeps the server from ending",
        f"{WEB}:conversations",
        "call_at_signal(ending.set)",
        "",
        (JOURNEY,),
    ),
    Mutation(
        "everyday: an ask waits for ever behind a turn that waits for an approval",
        "actors/session/session_actor.py:SessionActor._submit",
        "self._queue_limits.begin(self._live_context, (command,))",
        "pass",
        (f"{QUEUE}::test_an_ask_behind_a_turn_that_waits_for_an_approval_is_bounded_by_its_total",),
    ),
    Mutation(
        "everyday: an ask that waited before the turn did waits for ever",
        "actors/session/session_actor.py:SessionActor._let_wait",
        "self._queue_limits.begin(self._live_context, self._pending.waiting)",
        "",
        (f"{QUEUE}::test_an_ask_that_waits_already_when_the_turn_begins_to_wait_is_bounded_too",),
    ),
    Mutation(
        "everyday: time in the queue counts although the turn ahead goes on",
        "actors/session/session_actor.py:SessionActor._go_on_with",
        "self._queue_limits.end()",
        "",
        (f"{QUEUE}::test_time_in_the_queue_does_not_count_once_the_turn_goes_on",),
    ),
    Mutation(
        "everyday: a misspelt argument is not compared with the fields that there are",
        "actors/core/schemas/arguments.py:_unknown_field",
        "close is None",
        "True",
        (f"{FIELDS}::test_a_misspelt_argument_is_named_with_the_field_that_it_stands_for",),
    ),
    Mutation(
        "everyday: a field that is given is suggested",
        "actors/core/schemas/arguments.py:_missing_fields",
        "name not in given and len(name) <= _FIELD",
        "len(name) <= _FIELD",
        (f"{FIELDS}::test_a_field_that_is_given_is_not_suggested",),
    ),
    Mutation(
        "everyday: a missing field is compared with all fields that are unknown",
        "actors/core/schemas/arguments.py:_likely_misspelling",
        "islice((each for each in unknown if len(each) <= _FIELD), _FIELDS)",
        "(each for each in unknown if len(each) <= _FIELD)",
        (f"{FIELDS}::test_many_and_long_unknown_fields_are_compared_with_a_bounded_number",),
    ),
    Mutation(
        "everyday: a long unknown field is compared with the fields that there are",
        "actors/core/schemas/arguments.py:_unknown_field",
        "len(name) <= _FIELD",
        "True",
        (f"{FIELDS}::test_many_and_long_unknown_fields_are_compared_with_a_bounded_number",),
    ),
    Mutation(
        "everyday: a misspelt key of a file is not named where the right one is missing",
        "actors/config/complaints.py:_misspelling_hint",
        "owner == [*table]",
        "False",
        (f"{FIELDS}::test_a_misspelt_key_of_a_file_is_named_where_the_right_one_is_missing",),
    ),
    Mutation(
        "everyday: links of the README lead nowhere on a package index",
        "hatch_build.py:LongDescription.update",
        "long_description(readme)",
        "readme",
        ("tests/project/test_packaging.py::test_the_text_on_a_package_index_has_no_relative_link",),
    ),
    Mutation(
        "everyday: a cancelled turn takes the lines that wait with it",
        "actors/cli/chat/loop.py:Chat._interrupt",
        'self._terminal.print("  cancelling the turn; Ctrl-C again ends the process", "yellow")',
        "self._queued.clear()",
        (f"{CHAT}::test_queued_lines_are_asked_after_a_cancelled_turn",),
    ),
    Mutation(
        "everyday: the time that a person takes to approve is run time",
        "actors/cli/chat/view.py:View.waiting",
        "call.began = self._clock()",
        "pass",
        ("tests/cli/test_chat_view.py::test_waiting_for_the_person_is_not_run_time",),
    ),
)
