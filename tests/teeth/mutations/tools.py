"""Mutations of the description of tools, their view of the session, ordered writes, and results."""

from tests.teeth.mutations.mutation import Mutation

ARGUMENTS = "tests/core/test_arguments.py"
UNCHECKED = "tests/core/test_unchecked_patterns.py"
CONTEXT = "tests/tools/test_tool_context.py"
EDGE = "tests/scheduler/test_tools_at_the_edge.py"
LARGE = "tests/scheduler/test_large_results.py"
OPTIONS = "tests/tools/test_tool_options.py"
ORDER = "tests/scheduler/test_resource_order.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "toolsets: a toolset that reports changes all the time blocks the event loop",
        "actors/tools/toolset_owner.py:ToolsetOwner._publish_changes",
        "published + UPDATE_INTERVAL - self._system.now()",
        "published - UPDATE_INTERVAL - self._system.now()",
        (
            "tests/tools/test_toolsets.py::"
            "test_a_toolset_that_reports_changes_all_the_time_does_not_block_the_event_loop",
        ),
    ),
    Mutation(
        "watchdog: it runs as long as a toolset is open",
        "actors/scheduler/watchdog.py:LoopWatch.is_needed",
        "self._contained_tasks.described_count > 0",
        "bool(self._contained_tasks.names)",
        ("tests/scheduler/test_runaway_tools.py",),
    ),
    Mutation(
        "watchdog: it runs although nothing can be due",
        "actors/scheduler/watchdog.py:LoopWatch.check",
        "return STALL",
        "return RECHECK",
        ("tests/scheduler/test_runaway_tools.py",),
    ),
    Mutation(
        "toolsets: a toolset being left after an error counts as open",
        "actors/tools/toolset_owner.py:ToolsetOwner._publish_until_closed",
        "isinstance(error, Exception) or not self._closing",
        "isinstance(error, Exception)",
        ("tests/tools/test_toolsets.py",),
    ),
    Mutation(
        "call_tool: a tool's progress is not shown",
        "actors/session/separate_turns.py:run_host_call",
        "RunBatch(*..., view, **..., approved=True)",
        "RunBatch(*..., **..., approved=True)",
        ("tests/session/test_call_tool.py",),
    ),
    Mutation(
        "call_tool: other readers of the session are left out",
        "actors/runtime/delivery.py:SessionCaller._run_operation",
        "Submit(message, shared_sink, *...)",
        "Submit(message, sink, *...)",
        ("tests/session/test_call_tool.py",),
    ),
    Mutation(
        "options: an unknown verdict allows the call",
        "actors/tools/tool.py:Tool.approval_of",
        'approval if approval in ("allow", "ask", "deny") else "deny"',
        "approval",
        (OPTIONS,),
    ),
    Mutation(
        "options: an untrusted tool runs without a question",
        "actors/tools/tool.py:default_approval",
        '"allow" if effects == "pure" else "ask"',
        '"""allow"""',
        (OPTIONS,),
    ),
    Mutation(
        "options: a pure tool may write to any resource",
        "actors/tools/tool.py:option_errors",
        'effects == "pure" and resources',
        'effects == "pure" and resources and False',
        (OPTIONS,),
    ),
    Mutation(
        "options: a description of any size is sent in each request",
        "actors/tools/tool.py:_definition_errors",
        "... or len(about) > MAX_DESCRIPTION",
        "... or False",
        (OPTIONS,),
    ),
    Mutation(
        "context: the model sees the context parameter",
        "actors/tools/signature.py:Parameters.from_function",
        "{key: each for key, each in _named_parameters(function, name).items() if key != context}",
        "{key: each for key, each in _named_parameters(function, name).items()}",
        (CONTEXT,),
    ),
    Mutation(
        "context: a model's argument of that name replaces it",
        "actors/scheduler/calls.py:CallExecution._call_tool",
        "{**arguments, name: context}",
        "{name: context, **arguments}",
        (CONTEXT,),
    ),
    Mutation(
        "context: a schema may have a field of its name",
        "actors/tools/tool.py:Tool.from_schema",
        "... in _property_names(new.schema)",
        "... in ()",
        (CONTEXT,),
    ),
    Mutation(
        "context: sessions with one id share their idempotency keys",
        "actors/scheduler/views.py:create_tool_context",
        'f"{executor.session}/{executor.key}/{call_id}"',
        'f"{executor.session}/{call_id}"',
        (CONTEXT,),
    ),
    Mutation(
        "context: the history grows while the turn runs",
        "actors/session/steps.py:TurnSteps._turn_view",
        "self._history",
        "self._log.state.history",
        (CONTEXT,),
    ),
    Mutation(
        "context: a call without remaining time is not cancelled",
        "actors/scheduler/calls.py:CallExecution.is_stop_requested",
        "self._is_stopped or self.has_timed_out",
        "self._is_stopped",
        (CONTEXT,),
    ),
    Mutation(
        "timeout: a cooperative thread gets no time to end",
        "actors/scheduler/calls.py:CallExecution._time_out",
        "self._thread is not None and self.tool.context_parameter is None",
        "self._thread is not None",
        (CONTEXT,),
    ),
    Mutation(
        "progress: each progress report of a thread wakes the event loop",
        "actors/scheduler/views.py:CallView.progress",
        """
        if not is_coming:
            ...
        """,
        """
        if not is_coming or True:
            self._turn.put(event)
            ...
        """,
        (CONTEXT,),
    ),
    Mutation(
        "progress: an ended call continues to report progress",
        "actors/scheduler/views.py:CallView._publish_progress",
        "event is not None and ... and (not self._ongoing.is_closed)",
        "event is not None and ...",
        (CONTEXT,),
    ),
    Mutation(
        "order: a writer does not wait for earlier writers",
        "actors/scheduler/calls.py:CallExecution.try_acquire",
        "self.tool.resources and self._must_wait_for_resources()",
        "self._must_wait_for_resources() and False",
        (ORDER,),
    ),
    Mutation(
        "order: a writer starts while a cancelled one still works",
        "actors/scheduler/ordering.py:ResourceWriter.wait_for_turn",
        "not writer.is_over",
        "not writer.is_over and False",
        (ORDER,),
    ),
    Mutation(
        "order: a waiting writer checks only the last refused one",
        "actors/scheduler/ordering.py:ResourceWriter.__init__",
        "order.get(key, ())",
        "order.get(key, ())[-1:]",
        (ORDER,),
    ),
    Mutation(
        "order: a call stopped before its start keeps its slot",
        "actors/scheduler/calls.py:CallExecution._run",
        """
        if self._writer is not None:
            self._writer.leave_order()
        """,
        "",
        (ORDER,),
    ),
    Mutation(
        "results: a large result is converted in the event loop",
        "actors/scheduler/calls.py:CallExecution._call_tool",
        "await self._convert_large(value) if is_large(value) else self._return_event(value)",
        "self._return_event(value)",
        (LARGE,),
    ),
    Mutation(
        "results: a result with custom code is converted in any thread",
        "actors/scheduler/calls.py:CallExecution._convert_large",
        "partial(self._return_event, value, plain_only=True)",
        "partial(self._return_event, value)",
        (LARGE,),
    ),
    Mutation(
        "results: objects inside plain data count as plain",
        "actors/core/data/ingest.py:PlainConversion._read_foreign",
        "self._plain_only and (not is_plain(kind))",
        "self._plain_only and depth == 0 and (not is_plain(kind))",
        (LARGE,),
    ),
    Mutation(
        "results: a cancel loses a returned result",
        "actors/scheduler/calls.py:CallExecution._convert_large",
        "BaseException",
        "ThreadsBusy",
        (LARGE,),
    ),
    Mutation(
        "results: the configured limit is ignored",
        "actors/runtime/hosting.py:make_host",
        "ToolLimits(*..., kept)",
        "ToolLimits(*...)",
        (LARGE,),
    ),
    Mutation(
        "results: a complete list is searched for media",
        "actors/core/turn/tool_output.py:split_output",
        "map(type, islice(items, limits.max_items))",
        "map(type, items)",
        (LARGE,),
    ),
    Mutation(
        "schemas: untrusted text reaches the terminal unescaped",
        "actors/core/schemas/arguments.py:compile_schema",
        r'printable(_clip(str(error).partition("\n")[0], 2 * _NAMED))',
        r'_clip(str(error).partition("\n")[0], 2 * _NAMED)',
        (ARGUMENTS,),
    ),
    Mutation(
        "patterns: a `not` without its pattern rejects everything",
        "actors/core/schemas/json_schema.py:_unsafe_keywords",
        '_may_accept_more(schema.get("not"), patterns)',
        "False",
        (UNCHECKED,),
    ),
    Mutation(
        "patterns: an `if` without its pattern accepts everything",
        "actors/core/schemas/json_schema.py:_unsafe_keywords",
        '_may_accept_more(schema.get("if"), patterns)',
        "False",
        (UNCHECKED,),
    ),
    Mutation(
        "patterns: more items match without the pattern than allowed",
        "actors/core/schemas/json_schema.py:_unsafe_keywords",
        '_may_accept_more(schema.get("contains"), patterns)',
        "False",
        (UNCHECKED,),
    ),
    Mutation(
        "patterns: a key that matched the pattern is surplus",
        "actors/core/schemas/json_schema.py:_unsafe_keywords",
        "isinstance(by_key, dict) and not patterns.isdisjoint(by_key)",
        "False",
        (UNCHECKED,),
    ),
    Mutation(
        "patterns: content that matched nothing else is rejected",
        "actors/core/schemas/json_schema.py:_unsafe_keywords",
        "_COUNTED.union",
        "frozenset",
        (UNCHECKED,),
    ),
    Mutation(
        "patterns: an alternative without its pattern excludes another",
        "actors/core/schemas/json_schema.py:_PatternRemover.finish",
        '"oneOf" in made and _may_accept_more(given["oneOf"], self._patterns)',
        "False",
        (UNCHECKED,),
    ),
    Mutation(
        "patterns: a reference to a pattern is not followed",
        "actors/core/schemas/json_schema.py:_may_accept_more",
        "not _CHANGED.isdisjoint(node) or patterns.intersection(patterns_of(node))",
        "patterns.intersection(patterns_of(node))",
        (UNCHECKED,),
    ),
    Mutation(
        "patterns: an answer schema may have a pattern that is never checked",
        "actors/session/output.py:Output.__init__",
        "convert is None",
        "False",
        (UNCHECKED,),
    ),
    Mutation(
        "context: a fraction is shown unchecked",
        "actors/scheduler/views.py:CallView._progress_event",
        "max(0.0, float(fraction))",
        "max(0.0, fraction)",
        (CONTEXT,),
    ),
    Mutation(
        "threads: a thread that cannot start keeps its slot",
        "actors/scheduler/threads.py:Threads._run",
        "slot.give_back()",
        "",
        (EDGE,),
    ),
    Mutation(
        "watchdog: a tool fails where no watchdog thread can start",
        "actors/scheduler/watchdog.py:Watchdog.ensure_running",
        "suppress(RuntimeError)",
        "suppress(LookupError)",
        (EDGE,),
    ),
    Mutation(
        "toolsets: a call runs although its tool has changed",
        "actors/tools/toolsets.py:_current_function",
        "current is checked or _definition(current) == _definition(checked)",
        "True",
        ("tests/scheduler/test_changed_tools.py",),
    ),
    Mutation(
        "toolsets: a recreated rule counts as changed",
        "actors/tools/toolsets.py:_comparable_rule",
        "code is None",
        "True",
        ("tests/scheduler/test_changed_tools.py",),
    ),
)
